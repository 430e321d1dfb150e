// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/type.h"

#include <algorithm>
#include <array>

#include "ir/support/diagnostic.h"

namespace lockstep::graph {

namespace {

constexpr std::array<std::string_view, 4> kDTypeNames{"f32", "i32", "u32", "bool"};

}  // namespace

std::string_view toString(DType dtype) {
  auto index = static_cast<size_t>(dtype);
  return index < kDTypeNames.size() ? kDTypeNames[index] : "<invalid>";
}

std::optional<DType> findDType(std::string_view text) {
  for (size_t i = 0; i < kDTypeNames.size(); ++i) {
    if (kDTypeNames[i] == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

uint64_t byteSize(DType) { return 4; }

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
