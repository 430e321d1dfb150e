// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/type.h"

#include <algorithm>
#include <array>
#include <bit>

#include "ir/support/diagnostic.h"
#include "ir/support/narrow_float.h"

namespace lockstep::graph {

namespace {

constexpr std::array kFacts{
    DTypeFacts{.name = "f32", .is_float = true},
    DTypeFacts{.name = "i32", .compute = DType::I32, .lowest = INT32_MIN, .highest = INT32_MAX},
    DTypeFacts{.name = "u32", .compute = DType::U32, .highest = UINT32_MAX},
    DTypeFacts{.name = "bool", .compute = DType::Bool, .highest = 1},
    DTypeFacts{.name = "f16", .bytes = 2, .is_float = true},
    DTypeFacts{.name = "bf16", .bytes = 2, .is_float = true},
    DTypeFacts{.name = "i8", .bytes = 1, .compute = DType::I32, .lowest = INT8_MIN, .highest = INT8_MAX},
    DTypeFacts{.name = "u8", .bytes = 1, .compute = DType::U32, .highest = UINT8_MAX},
    DTypeFacts{.name = "u16", .bytes = 2, .compute = DType::U32, .highest = UINT16_MAX},
};
static_assert(kFacts.size() == kDTypes.size());
constexpr DTypeFacts kNoFacts{.name = "<invalid>"};

}  // namespace

const DTypeFacts& factsOf(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < kFacts.size() ? kFacts[index] : kNoFacts;
}

std::string_view toString(DType dtype) { return factsOf(dtype).name; }

std::optional<DType> findDType(std::string_view text) {
  const auto* found = std::ranges::find(kFacts, text, &DTypeFacts::name);
  return found == kFacts.end() ? std::nullopt : std::optional(kDTypes[static_cast<size_t>(found - kFacts.begin())]);
}

double roundedTo(DType dtype, double value) { return isFloat(dtype) ? decodeElement(dtype, encodeElement(dtype, value)) : value; }

uint32_t encodeElement(DType dtype, double value) {
  if (dtype == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (dtype == DType::F16) return doubleToHalf(value);
  if (dtype == DType::BF16) return doubleToBfloat16(value);
  const auto word = static_cast<uint32_t>(static_cast<int64_t>(value));
  return isPacked(dtype) ? word & ((1u << 8 * factsOf(dtype).bytes) - 1) : word;
}

double decodeElement(DType dtype, uint32_t bits) {
  switch (dtype) {
    case DType::F32:
      return std::bit_cast<float>(bits);
    case DType::F16:
      return halfToFloat(static_cast<uint16_t>(bits));
    case DType::BF16:
      return bfloat16ToFloat(static_cast<uint16_t>(bits));
    case DType::I32:
      return static_cast<int32_t>(bits);
    case DType::I8:
      return static_cast<int8_t>(bits);
    case DType::U8:
      return static_cast<uint8_t>(bits);
    case DType::U16:
      return static_cast<uint16_t>(bits);
    case DType::U32:
    case DType::Bool:
      return bits;
  }
  internalError("unknown element type");
}

namespace {

/// Shapes are what a user wrote, so this is no bug of ours.
[[noreturn]] void tooLarge(const Shape& shape) {
  throw Error({.code = "tensor.size",
               .message = fmt::format("a tensor of shape {} has more elements than 64 bits can count", toString(shape)),
               .where = {},
               .notes = {},
               .remedy = "look for an extent that was meant to be smaller"});
}

}  // namespace

std::vector<int64_t> Shape::extents() const {
  std::vector<int64_t> extents;
  extents.reserve(dims_.size());
  for (const Dim& dim : dims_) extents.push_back(dim.maximum());
  return extents;
}

int64_t Shape::elementCount() const {
  int64_t count = 1;
  for (const Dim& dim : dims_) {
    if (__builtin_mul_overflow(count, dim.maximum(), &count)) tooLarge(*this);
  }
  return count;
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> strides(dims_.size(), 1);
  for (size_t axis = dims_.size(); axis-- > 1;) {
    if (__builtin_mul_overflow(strides[axis], dims_[axis].maximum(), &strides[axis - 1])) {
      tooLarge(*this);
    }
  }
  return strides;
}

std::string toString(const Shape& shape) {
  std::string text = "[";
  for (const Dim& dim : shape.dims()) {
    if (text.size() > 1) text += ',';
    // The name of a symbol belongs to the graph; without it a symbol shows as its index and maximum.
    if (dim.isSymbol()) text += "?" + std::to_string(dim.symbol().value) + "<=";
    text += std::to_string(dim.maximum());
  }
  return text + "]";
}

std::string toString(const TensorType& type) { return std::string(toString(type.dtype)) + toString(type.shape); }

std::optional<Shape> broadcastShapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  const Dim one(1);
  std::vector<Dim> dims(rank, one);
  for (size_t i = 0; i < rank; ++i) {  // from the last axis
    const Dim& left = i < a.rank() ? a[a.rank() - 1 - i] : one;
    const Dim& right = i < b.rank() ? b[b.rank() - 1 - i] : one;
    if (left != right && left != one && right != one) return std::nullopt;
    dims[rank - 1 - i] = left == one ? right : left;
  }
  return Shape(std::move(dims));
}

}  // namespace lockstep::graph
