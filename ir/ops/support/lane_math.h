// SPDX-License-Identifier: Apache-2.0
// Arithmetic for lowerings that are longer than one instruction: every value is the emitted lanes of one element type. A NaN is told by its
// bits, in integers: a device may take it that no float is one.
#pragma once

#include <span>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

class Lanes {
 public:
  using Id = kernel::ValueId;
  explicit Lanes(ElementEmitter& emitter) : Lanes(emitter.builder(), emitter.width()) {}
  Lanes(kernel::Builder& builder, uint32_t width) : builder_(builder), width_(width) {}

  Id number(double value);  ///< f32
  Id integer(int32_t value);

  Id make(kernel::Op op, std::vector<Id> operands) { return builder_.make(op, std::move(operands)); }
  Id add(Id a, Id b) { return make(kernel::Op::Add, {a, b}); }
  Id sub(Id a, Id b) { return make(kernel::Op::Sub, {a, b}); }
  Id mul(Id a, Id b) { return make(kernel::Op::Mul, {a, b}); }
  Id div(Id a, Id b) { return make(kernel::Op::Div, {a, b}); }
  Id add(Id a, double b) { return add(a, number(b)); }
  Id sub(Id a, double b) { return sub(a, number(b)); }
  Id mul(Id a, double b) { return mul(a, number(b)); }
  Id neg(Id a) { return make(kernel::Op::Neg, {a}); }
  Id abs(Id a) { return make(kernel::Op::Abs, {a}); }
  Id round(Id a) { return make(kernel::Op::Round, {a}); }

  Id less(Id a, double b) { return make(kernel::Op::Lt, {a, number(b)}); }
  Id greater(Id a, double b) { return make(kernel::Op::Gt, {a, number(b)}); }
  Id equal(Id a, double b) { return make(kernel::Op::Eq, {a, number(b)}); }
  Id both(Id a, Id b) { return make(kernel::Op::And, {a, b}); }
  Id either(Id a, Id b) { return make(kernel::Op::Or, {a, b}); }
  Id isNaN(Id x);
  Id orNaN(Id x, Id value) { return select(isNaN(x), x, value); }  ///< the value, or x where that is NaN
  /// condition ? yes : no
  Id select(Id condition, Id yes, Id no) { return make(kernel::Op::Select, {no, yes, condition}); }
  /// x within [lo, hi]; a NaN stays one, which the builtins do not promise.
  Id atLeast(Id x, double lo);
  Id atMost(Id x, double hi);
  Id within(Id x, double lo, double hi);
  /// The larger or smaller of two; NaN where one of them is.
  Id larger(Id a, Id b) { return extremum(kernel::Op::Max, a, b); }
  Id smaller(Id a, Id b) { return extremum(kernel::Op::Min, a, b); }
  /// `magnitude`, negated where `sign` is below 0.
  Id withSign(Id magnitude, Id sign);

  Id bits(Id x);           ///< of f32 as i32
  Id fromBits(Id bits);    ///< of i32 as f32
  Id leading12Bits(Id x);  ///< x with the rest of its significand as 0: the product of two such numbers is exact
  Id toInteger(Id x);      ///< f32 to i32
  Id toFloat(Id x);        ///< i32 to f32
  Id shiftLeft(Id x, uint32_t count);
  Id shiftRight(Id x, uint32_t count);  ///< arithmetic
  Id masked(Id x, int32_t mask) { return make(kernel::Op::And, {x, integer(mask)}); }
  Id powerOfTwo(Id exponent);  ///< 2^exponent for i32 exponents in [-126, 127]

  /// c0 + x (c1 + x (c2 + ...)), by Horner.
  Id polynomial(Id x, std::span<const float> coefficients);

 private:
  kernel::TypeId type(kernel::Scalar scalar) { return builder_.types().scalarOrVector(scalar, width_); }
  Id constant(Id scalar);
  Id extremum(kernel::Op op, Id a, Id b);

  kernel::Builder& builder_;
  uint32_t width_;
};

}  // namespace lockstep::graph
