// SPDX-License-Identifier: Apache-2.0
// Types of the tensor IR: element type and shape. Tensors are dense and row-major.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/id.h"

namespace lockstep::graph {

/// Element types. What takes less than 4 bytes is storage alone: such elements lie packed in words, the first one in the lowest bits, and
/// every op but those that move or choose elements computes in another type, by `cast`. A bool in memory is a u32 of 0 or 1.
enum class DType : uint8_t { F32, I32, U32, Bool, F16, BF16, I8, U8, U16 };
inline constexpr std::array kDTypes{DType::F32,  DType::I32, DType::U32, DType::Bool, DType::F16,
                                    DType::BF16, DType::I8,  DType::U8,  DType::U16};

/// What there is to know of an element type.
struct DTypeFacts {
  std::string_view name;
  uint32_t bytes = 4;          ///< of an element in memory
  DType compute = DType::F32;  ///< the type of an element in a register, which holds each of its values
  bool is_float = false;
  int64_t lowest = 0, highest = 0;  ///< of integers and bool
};
const DTypeFacts& factsOf(DType dtype);

std::string_view toString(DType dtype);  ///< "f32", "bf16", "bool"
std::optional<DType> findDType(std::string_view text);
inline uint64_t byteSize(DType dtype) { return factsOf(dtype).bytes; }
/// Whether several elements share a word.
inline bool isPacked(DType dtype) { return factsOf(dtype).bytes < 4; }
/// Of a word.
inline int64_t elementsPerWord(DType dtype) { return 4 / factsOf(dtype).bytes; }
inline bool isFloat(DType dtype) { return factsOf(dtype).is_float; }
/// Whether ops compute with it: f32, i32 or u32.
inline bool isNumber(DType dtype) { return dtype != DType::Bool && !isPacked(dtype); }
/// The nearest value that the type has: floats are rounded to nearest even, what is too large becomes infinite. Integers as they are.
double roundedTo(DType dtype, double value);

/// The bits of one element, in the low ones of a word; integers modulo 2^32.
uint32_t encodeElement(DType dtype, double value);
/// Its value.
double decodeElement(DType dtype, uint32_t bits);

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
  /// Whole words: packed elements may leave the end of the last one empty.
  [[nodiscard]] uint64_t byteSize() const { return (static_cast<uint64_t>(shape.elementCount()) * graph::byteSize(dtype) + 3) / 4 * 4; }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string toString(const TensorType& type);  ///< "f32[256,64]"

/// NumPy broadcasting of two shapes; nullopt when they do not match.
std::optional<Shape> broadcastShapes(const Shape& a, const Shape& b);

}  // namespace lockstep::graph
