// SPDX-License-Identifier: Apache-2.0
// Types of the tensor IR: element type and shape. Tensors are dense and row-major.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/id.h"

namespace lockstep::graph {

/// Element types; every one takes 4 bytes in memory (a bool is a u32 of 0 or 1).
enum class DType : uint8_t { F32, I32, U32, Bool };
std::string_view toString(DType dtype);  ///< "f32", "i32", "u32", "bool"
std::optional<DType> findDType(std::string_view text);
uint64_t byteSize(DType dtype);

using SymbolId = Id<struct SymbolTag>;

/// The extent of one axis: an integer >= 1, or a symbol of the graph with a maximum. Only integers are accepted by the passes today.
class Dim {
 public:
  constexpr Dim(int64_t extent) : extent_(extent) {}
  static constexpr Dim named(SymbolId symbol, int64_t maximum) {
    Dim dim(maximum);
    dim.symbol_ = symbol;
    return dim;
  }
  [[nodiscard]] constexpr bool isSymbol() const { return symbol_.valid(); }
  [[nodiscard]] constexpr SymbolId symbol() const { return symbol_; }
  /// The integer, or the maximum of the symbol: what memory is planned for.
  [[nodiscard]] constexpr int64_t maximum() const { return extent_; }
  friend constexpr bool operator==(const Dim&, const Dim&) = default;

 private:
  int64_t extent_;
  SymbolId symbol_;
};

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  explicit Shape(const std::vector<int64_t>& dims) : dims_(dims.begin(), dims.end()) {}

  [[nodiscard]] size_t rank() const { return dims_.size(); }
  [[nodiscard]] const Dim& operator[](size_t axis) const { return dims_[axis]; }
  [[nodiscard]] const std::vector<Dim>& dims() const { return dims_; }
  /// Extent of an axis as an integer (the maximum of a symbol).
  [[nodiscard]] int64_t extent(size_t axis) const { return dims_[axis].maximum(); }
  [[nodiscard]] std::vector<int64_t> extents() const;
  [[nodiscard]] int64_t elementCount() const;
  /// Row-major strides in elements.
  [[nodiscard]] std::vector<int64_t> strides() const;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<Dim> dims_;
};
std::string toString(const Shape& shape);  ///< "[256,64]"

struct TensorType {
  DType dtype = DType::F32;
  Shape shape;
  [[nodiscard]] uint64_t byteSize() const { return static_cast<uint64_t>(shape.elementCount()) * graph::byteSize(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string toString(const TensorType& type);  ///< "f32[256,64]"

/// NumPy broadcasting of two shapes; nullopt when they do not match.
std::optional<Shape> broadcastShapes(const Shape& a, const Shape& b);

}  // namespace lockstep::graph
