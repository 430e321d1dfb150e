// SPDX-License-Identifier: Apache-2.0
#include "frontend/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "frontend/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep {

using detail::toLocation;

Module::Module(Module& parent, std::string name, std::source_location where) : name_(std::move(name)) {
  parent.registerPart({name_, this, nullptr}, where);
  parent_ = &parent;
}

// Members die before their parent's Module part, so what is still registered is never dangling.
Module::~Module() {
  if (parent_ != nullptr) std::erase_if(parent_->entries_, [this](const Entry& entry) { return entry.child == this; });
  for (Entry& entry : entries_) {
    if (entry.child != nullptr) entry.child->parent_ = nullptr;
  }
}

void Module::registerPart(Entry entry, const std::source_location& where) {
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

std::string Module::path() const {
  if (parent_ == nullptr) return name_;
  std::string prefix = parent_->path();
  return prefix.empty() ? name_ : prefix + "." + name_;
}

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& into) const {
  for (const Entry& entry : entries_) {
    if (entry.parameter != nullptr) into.push_back({prefix + entry.name, entry.parameter});
    if (entry.child != nullptr) entry.child->collect(prefix + entry.name + ".", into);
  }
}

std::vector<NamedParameter> Module::parameters() const {
  std::vector<NamedParameter> all;
  collect("", all);
  return all;
}

namespace {

int64_t fanIn(const Shape& shape, int64_t stated) {
  if (stated > 0) return stated;
  return shape.rank() == 0 ? 1 : shape.elementCount() / shape.extent(shape.rank() - 1);
}

}  // namespace

Parameter::Parameter(Module& owner, std::string name, std::vector<int64_t> shape, Initializer initializer, ParameterOptions options,
                     std::source_location where)
    : owner_(&owner),
      name_(std::move(name)),
      type_{DType::F32, Shape(shape)},
      initializer_(std::move(initializer)),
      decay_(options.decay.value_or(decaysByDefault(initializer_))),
      fan_in_(0),
      where_(where) {
  if (std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 1; })) {
    throw Error({.code = "parameter.shape",
                 .message = fmt::format("parameter '{}' has shape [{}], but every extent must be at least 1", name_, fmt::join(shape, ",")),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = {}});
  }
  fan_in_ = fanIn(type_.shape, options.fan_in);
  size_t count = static_cast<size_t>(type_.shape.elementCount());
  if (initializer_.kind == Initializer::Kind::Literal && initializer_.literal.size() != count) {
    throw Error({.code = "parameter.literal",
                 .message = fmt::format("parameter '{}' of {} elements is given {} values", name_, count, initializer_.literal.size()),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = {}});
  }
  owner.registerPart({name_, nullptr, this}, where);
}

std::string Parameter::path() const {
  std::string prefix = owner_->path();
  return prefix.empty() ? name_ : prefix + "." + name_;
}

Tensor Parameter::tensor(std::source_location where) const { return detail::Trace::require("parameter", where).parameter(*this, where); }

}  // namespace lockstep
