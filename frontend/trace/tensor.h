// SPDX-License-Identifier: Apache-2.0
// Tensor: a small value that stands for one tensor of the program being traced. It has a type and no data; data lives in modules,
// batches and results. All operators record nodes in the trace that is active on this thread (compile() makes one).
#pragma once

#include <cstdint>
#include <type_traits>

#include "ir/graph/type.h"
#include "ir/support/where.h"

namespace lockstep {

using graph::DType;
using graph::Shape;
using graph::TensorType;

/// As an extent in the declaration of an input: whatever the batch brings. At most one an input; all of one call must agree.
inline constexpr int64_t dynamic = -1;

/// An element type: makes tensor types for declarations, f32(256, 1), u8(128, 8), bf16(dynamic, 4), f32() for a scalar, and stands for
/// itself, as in cast(x, f32).
struct ElementType {
  DType dtype = DType::F32;
  template <class... Extents>
  TensorType operator()(Extents... extents) const {
    return {dtype, Shape{graph::Dim(static_cast<int64_t>(extents))...}};
  }
  constexpr operator DType() const { return dtype; }
};
inline constexpr ElementType f32{DType::F32}, i32{DType::I32}, u32{DType::U32};
// Of fewer than 32 bits. They are for memory: an op that computes takes what cast() makes of them.
inline constexpr ElementType f16{DType::F16}, bf16{DType::BF16}, i8{DType::I8}, u8{DType::U8}, u16{DType::U16};

/// Valid during the trace that made it; using it in another one, or outside, throws Error "trace.foreign" or "trace.inactive".
/// A default-constructed Tensor belongs to no trace.
class Tensor {
 public:
  Tensor() = default;
  Tensor(uint64_t trace, uint32_t value) : trace_(trace), value_(value) {}

  [[nodiscard]] const TensorType& type(Where where = Where::current()) const;
  [[nodiscard]] const Shape& shape(Where where = Where::current()) const { return type(where).shape; }
  [[nodiscard]] DType dtype(Where where = Where::current()) const { return type(where).dtype; }
  [[nodiscard]] int64_t rank(Where where = Where::current()) const;
  /// Extent of an axis; a negative axis counts from the end. Error "tensor.axis" outside the rank.
  [[nodiscard]] int64_t extent(int64_t axis, Where where = Where::current()) const;

  [[nodiscard]] uint64_t trace() const { return trace_; }
  [[nodiscard]] uint32_t value() const { return value_; }

 private:
  uint64_t trace_ = 0;  ///< serial number of the trace; 0 = none
  uint32_t value_ = UINT32_MAX;
};

class Parameter;
class Buffer;

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// An argument that is a tensor or a number and remembers where it was written: operators cannot have a defaulted location themselves.
class Operand {
 public:
  Operand(const Tensor& tensor, Where where = Where::current()) : tensor_(tensor), where_(where) {}
  Operand(const Parameter& parameter, Where where = Where::current());
  Operand(const Buffer& buffer, Where where = Where::current());
  template <Number T>
  Operand(T number, Where where = Where::current()) : number_(static_cast<double>(number)), is_number_(true), where_(where) {}

  [[nodiscard]] bool isNumber() const { return is_number_; }
  [[nodiscard]] double number() const { return number_; }
  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] const Where& where() const { return where_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  bool is_number_ = false;
  Where where_;
};

// Element by element with full broadcasting; a number takes the tensor's element type and must be exact in it. Same as the functions
// add, sub, mul, div, neg, less, less_equal, greater and greater_equal of ops.h.
Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);
Tensor operator-(Operand a);
Tensor operator<(Operand a, Operand b);
Tensor operator>(Operand a, Operand b);
Tensor operator<=(Operand a, Operand b);
Tensor operator>=(Operand a, Operand b);
inline Tensor& operator+=(Tensor& a, Operand b) { return a = Operand(a, b.where()) + b; }
inline Tensor& operator-=(Tensor& a, Operand b) { return a = Operand(a, b.where()) - b; }
inline Tensor& operator*=(Tensor& a, Operand b) { return a = Operand(a, b.where()) * b; }
inline Tensor& operator/=(Tensor& a, Operand b) { return a = Operand(a, b.where()) / b; }

}  // namespace lockstep

namespace ls = lockstep;
