// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/host_values.h"

#include <fmt/format.h>

#include <cstring>

#include "frontend/trace/throw_error.h"
#include "ir/support/diagnostic.h"

namespace lockstep {

using detail::rejectAt;
using graph::DType;

namespace {

/// As the type of a register has them, which holds every value of a packed one.
template <class T>
std::vector<T> valuesOf(const graph::TensorType& type, std::span<const std::byte> bytes) {
  std::vector<T> values(static_cast<size_t>(type.shape.elementCount()));
  if (!graph::isPacked(type.dtype)) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  const size_t size = graph::byteSize(type.dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    values[i] = static_cast<T>(graph::decodeElement(type.dtype, bits));
  }
  return values;
}

}  // namespace

HostTensor::HostTensor(std::string name, graph::TensorType type, std::span<const std::byte> bytes)
    : name_(std::move(name)), type_(std::move(type)) {
  const DType compute = graph::factsOf(type_.dtype).compute;
  if (compute == DType::F32) {
    data_ = valuesOf<float>(type_, bytes);
  } else if (compute == DType::I32) {
    data_ = valuesOf<int32_t>(type_, bytes);
  } else {
    data_ = valuesOf<uint32_t>(type_, bytes);
  }
}

namespace {

template <class T, class Data>
std::span<const T> viewOf(const Data& data, const HostTensor& tensor, std::string_view wanted, const Where& where) {
  const auto* values = std::get_if<std::vector<T>>(&data);
  if (values == nullptr) {
    rejectAt(where, "value.type", fmt::format("'{}' is {}, not {}", tensor.name(), toString(tensor.type()), wanted),
             "read it with floats(), ints() or uints(), whichever its type needs; doubles() takes any");
  }
  return *values;
}

template <class T>
std::vector<T> copyOf(std::span<const T> values) {
  return {values.begin(), values.end()};
}

}  // namespace

std::span<const float> HostTensor::floats(Where where) const& { return viewOf<float>(data_, *this, "f32, f16 or bf16", where); }
std::span<const int32_t> HostTensor::ints(Where where) const& { return viewOf<int32_t>(data_, *this, "i32 or i8", where); }
std::span<const uint32_t> HostTensor::uints(Where where) const& { return viewOf<uint32_t>(data_, *this, "u32, u16, u8 or bool", where); }
std::vector<float> HostTensor::floats(Where where) && { return copyOf(std::as_const(*this).floats(where)); }
std::vector<int32_t> HostTensor::ints(Where where) && { return copyOf(std::as_const(*this).ints(where)); }
std::vector<uint32_t> HostTensor::uints(Where where) && { return copyOf(std::as_const(*this).uints(where)); }

std::vector<double> HostTensor::doubles() const {
  return std::visit([](const auto& values) { return std::vector<double>(values.begin(), values.end()); }, data_);
}

Captures::Captures(std::vector<HostTensor> values) {
  for (HostTensor& value : values) {
    std::string name = value.name();
    values_.emplace(std::move(name), std::move(value));
  }
}

bool Captures::has(std::string_view name) const { return values_.find(name) != values_.end(); }

const HostTensor& Captures::get(std::string_view name, Where where) const {
  auto found = values_.find(name);
  if (found == values_.end()) {
    rejectAt(where, "capture.unknown", fmt::format("there is no capture '{}'", name),
             values_.empty() ? "call capture(name, tensor) in the traced function, and ask for captures with {.captures = true}"
                             : fmt::format("known: {}", fmt::join(names(), ", ")));
  }
  return found->second;
}

std::vector<std::string> Captures::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

std::vector<std::vector<float>> Captures::per_head(std::string_view name, Where where) const {
  const HostTensor& value = get(name, where);
  std::vector<int64_t> extents = value.shape().extents();
  if (!graph::isFloat(value.type().dtype) || extents.size() < 2) {
    rejectAt(where, "capture.heads", fmt::format("capture '{}' is {}, wanted floats of two axes or more", name, toString(value.type())),
             "capture the weights of attention, [heads, ...] or [1, heads, ...]");
  }
  size_t heads = static_cast<size_t>(extents[0] == 1 && extents.size() > 2 ? extents[1] : extents[0]);
  std::span<const float> all = value.floats();
  size_t each = all.size() / heads;
  std::vector<std::vector<float>> parts;
  for (size_t head = 0; head < heads; ++head) {
    std::span<const float> part = all.subspan(head * each, each);
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

namespace {

/// Elements from `offset` on along the axes from `axis` on; `stride` elements in all.
std::string elementsText(const std::vector<double>& data, const std::vector<int64_t>& extents, size_t axis, size_t offset, size_t stride) {
  constexpr int64_t kShown = 8, kEnds = 3;
  if (axis == extents.size()) return fmt::format("{}", static_cast<float>(data[offset]));
  std::string text = "[";
  size_t inner = stride / static_cast<size_t>(extents[axis]);
  for (int64_t i = 0; i < extents[axis]; ++i) {
    if (i > 0) text += ", ";
    if (extents[axis] > kShown && i == kEnds) {
      text += "..., ";
      i = extents[axis] - kEnds;
    }
    text += elementsText(data, extents, axis + 1, offset + static_cast<size_t>(i) * inner, inner);
  }
  return text + "]";
}

}  // namespace

std::string to_string(const HostTensor& tensor) {
  const std::vector<double> data = tensor.doubles();
  return fmt::format("{} {}", graph::toString(tensor.type()), elementsText(data, tensor.shape().extents(), 0, 0, data.size()));
}

}  // namespace lockstep
