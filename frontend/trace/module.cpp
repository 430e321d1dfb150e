// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep {

using detail::toLocation;

Module::Module(Module& parent, std::string name, Where where) : name_(std::move(name)) {
  parent.registerPart({.name = name_, .child = this, .parameter = nullptr, .buffer = nullptr}, where);
  parent_ = &parent;
}

// Members die before their parent's Module part, so what is still registered is never dangling.
Module::~Module() {
  if (parent_ != nullptr) std::erase_if(parent_->entries_, [this](const Entry& entry) { return entry.child == this; });
  for (Entry& entry : entries_) {
    if (entry.child != nullptr) entry.child->parent_ = nullptr;
  }
}

void Module::registerPart(Entry entry, const Where& where) {
  bool plain = !entry.name.empty() && std::all_of(entry.name.begin(), entry.name.end(),
                                                  [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!plain) {
    throw Error({.code = "module.name",
                 .message = fmt::format("'{}' is not a name for a part of a module", entry.name),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "use letters, digits and '_'; dots separate the levels of a path"});
  }
  for (const Entry& known : entries_) {
    if (known.name == entry.name) {
      std::string owner = path();
      throw Error({.code = "module.name",
                   .message = fmt::format("{} has two parts named '{}'", owner.empty() ? "the model" : fmt::format("module '{}'", owner),
                                          entry.name),
                   .where = toLocation(where),
                   .notes = {},
                   .remedy = "give each child and parameter of a module its own name"});
    }
  }
  entries_.push_back(std::move(entry));
}

void Module::checkIndex(const ModuleIndex& index, size_t size) const {
  if (index.value() < size) return;
  throw Error({.code = "module.index",
               .message = fmt::format("there is no part {} of '{}', which has {}", static_cast<int64_t>(index.value()), path(), size),
               .where = toLocation(index.where()),
               .notes = {},
               .remedy = "parts are numbered from 0"});
}

std::string Module::path() const {
  if (parent_ == nullptr) return name_;
  std::string prefix = parent_->path();
  return prefix.empty() ? name_ : prefix + "." + name_;
}

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& parameters, std::vector<NamedBuffer>& buffers) const {
  for (const Entry& entry : entries_) {
    if (entry.parameter != nullptr) parameters.push_back({prefix + entry.name, entry.parameter});
    if (entry.buffer != nullptr) buffers.push_back({prefix + entry.name, entry.buffer});
    if (entry.child != nullptr) entry.child->collect(prefix + entry.name + ".", parameters, buffers);
  }
}

std::vector<NamedParameter> Module::parameters() const {
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;
  collect("", parameters, buffers);
  return parameters;
}

std::vector<NamedBuffer> Module::buffers() const {
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;
  collect("", parameters, buffers);
  return buffers;
}

bool is_training(Where where) { return detail::Trace::require("is_training", where).training(); }

namespace {

Fans matrixFans(const Shape& shape) {
  if (shape.rank() == 0) return {};
  int64_t out = shape.extent(shape.rank() - 1);
  return {.in = shape.elementCount() / out, .out = out};
}

void checkShape(std::string_view kind, const std::string& name, const std::vector<int64_t>& shape, const Where& where) {
  if (std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent >= 1; })) {
    uint64_t count = 1;
    for (const int64_t extent : shape) {
      if (!__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count) && count <= UINT32_MAX) continue;
      throw Error({.code = "parameter.shape",
                   .message = fmt::format("{} '{}' has shape [{}], which is 2^32 elements or more", kind, name, fmt::join(shape, ",")),
                   .where = toLocation(where),
                   .notes = {},
                   .remedy = "make it smaller, or split it into several"});
    }
    return;
  }
  throw Error({.code = "parameter.shape",
               .message = fmt::format("{} '{}' has shape [{}], but every extent must be at least 1", kind, name, fmt::join(shape, ",")),
               .where = toLocation(where),
               .notes = {},
               .remedy = "give every axis an extent of 1 or more; a scalar has the shape {}"});
}

}  // namespace

Parameter::Parameter(Module& owner, std::string name, const std::vector<int64_t>& shape, Initializer initializer, ParameterOptions options,
                     Where where)
    : owner_(&owner),
      name_(std::move(name)),
      type_{DType::F32, Shape(shape)},
      initializer_(std::move(initializer)),
      decay_(options.decay.value_or(decaysByDefault(initializer_))),
      fans_(options.fans.value_or(Fans{})),
      where_(where) {
  checkShape("parameter", name_, shape, where);
  if (!options.fans) fans_ = matrixFans(type_.shape);
  if (initializer_.kind == Initializer::Kind::Orthogonal && type_.shape.rank() < 2) {
    throw Error({.code = "parameter.shape",
                 .message = fmt::format("parameter '{}' is {}, but orthogonal values need two axes", name_, toString(type_)),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "use another initializer, such as init::randn, for vectors"});
  }
  size_t count = static_cast<size_t>(type_.shape.elementCount());
  if (initializer_.kind == Initializer::Kind::Literal && initializer_.literal.size() != count) {
    throw Error({.code = "parameter.literal",
                 .message = fmt::format("parameter '{}' of {} elements is given {} values", name_, count, initializer_.literal.size()),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "give one value per element, in row-major order"});
  }
  owner.registerPart({.name = name_, .child = nullptr, .parameter = this, .buffer = nullptr}, where);
}

std::string Parameter::path() const {
  std::string prefix = owner_->path();
  return prefix.empty() ? name_ : prefix + "." + name_;
}

Buffer::Buffer(Module& owner, std::string name, const std::vector<int64_t>& shape, double initial, DType dtype, Where where)
    : owner_(&owner),
      name_(std::move(name)),
      type_{dtype, Shape(shape)},
      initial_(graph::isPacked(dtype) ? graph::roundedTo(dtype, initial) : initial),
      where_(where) {
  checkShape("buffer", name_, shape, where);
  auto reject = [&](std::string code, std::string message, std::string remedy) {
    throw Error(
        {.code = std::move(code), .message = std::move(message), .where = toLocation(where), .notes = {}, .remedy = std::move(remedy)});
  };
  if (dtype == DType::Bool)
    reject("buffer.type", fmt::format("buffer '{}' is bool, but a buffer holds numbers", name_), "keep it as i32 or u8, 0 or 1");
  const graph::DTypeFacts& facts = graph::factsOf(dtype);
  const bool whole =
      std::trunc(initial) == initial && initial >= static_cast<double>(facts.lowest) && initial <= static_cast<double>(facts.highest);
  if (facts.is_float ? std::isinf(initial_) && !std::isinf(initial) : !whole)
    reject("buffer.initial", fmt::format("buffer '{}' is {} but starts at {}", name_, toString(type_), initial),
           "start it at a number that the type has, or make it f32");
  owner.registerPart({.name = name_, .child = nullptr, .parameter = nullptr, .buffer = this}, where);
}

std::string Buffer::path() const {
  std::string prefix = owner_->path();
  return prefix.empty() ? name_ : prefix + "." + name_;
}

Tensor Buffer::tensor(Where where) const { return detail::Trace::require("buffer", where).buffer(*this, where); }

void Buffer::update(const Tensor& next, Where where) const { detail::Trace::require("buffer", where).updateBuffer(*this, next, where); }

Tensor Parameter::tensor(Where where) const { return detail::Trace::require("parameter", where).parameter(*this, where); }

}  // namespace lockstep
