// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_array.h"

#include <array>
#include <cstring>

namespace lockstep::detail {

using graph::DType;

namespace {

template <class Number>
io::Array encode(const graph::TensorType& type, std::span<const Number> values) {
  io::Array array = zeroArray(type);
  const size_t size = graph::byteSize(type.dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = graph::encodeElement(type.dtype, static_cast<double>(values[i]));
    std::memcpy(array.data.data() + i * size, &bits, size);
  }
  return array;
}

}  // namespace

io::ElementType elementType(DType dtype) {
  // In the order of DType.
  static constexpr std::array kTypes{io::ElementType::F32, io::ElementType::I32, io::ElementType::U32,
                                     io::ElementType::U32, io::ElementType::F16, io::ElementType::BF16,
                                     io::ElementType::I8,  io::ElementType::U8,  io::ElementType::U16};
  static_assert(kTypes.size() == graph::kDTypes.size());
  return kTypes[static_cast<size_t>(dtype)];
}

uint64_t elementBytes(const graph::TensorType& type) {
  return static_cast<uint64_t>(type.shape.elementCount()) * graph::byteSize(type.dtype);
}

io::Array zeroArray(const graph::TensorType& type) { return io::Array::zeros(elementType(type.dtype), type.shape.extents()); }

io::Array arrayIn(const graph::TensorType& type, std::span<const std::byte> memory) {
  const auto elements = memory.first(elementBytes(type));
  return {.type = elementType(type.dtype), .shape = type.shape.extents(), .data = {elements.begin(), elements.end()}};
}

io::Array encodeArray(const graph::TensorType& type, std::span<const double> values) { return encode(type, values); }
io::Array encodeArray(const graph::TensorType& type, std::span<const float> values) { return encode(type, values); }

std::vector<double> decodeMemory(const graph::TensorType& type, std::span<const std::byte> memory) {
  std::vector<double> values(static_cast<size_t>(type.shape.elementCount()));
  const size_t size = graph::byteSize(type.dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, memory.data() + i * size, size);
    values[i] = graph::decodeElement(type.dtype, bits);
  }
  return values;
}

}  // namespace lockstep::detail
