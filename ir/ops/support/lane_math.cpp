// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph {

using kernel::Op;
using kernel::Scalar;
using Id = Lanes::Id;

Id Lanes::constant(Id scalar) {
  if (width_ == 1) return scalar;
  return builder_.composite(type(builder_.typeOf(scalar).scalar), std::vector(width_, scalar));
}

Id Lanes::number(double value) { return constant(builder_.f32(static_cast<float>(value))); }
Id Lanes::integer(int32_t value) { return constant(builder_.i32(value)); }

Id Lanes::isNaN(Id x) {
  Id magnitude = masked(bits(x), 0x7fffffff);
  return make(Op::Gt, {magnitude, integer(0x7f800000)});
}

Id Lanes::atLeast(Id x, double lo) { return orNaN(x, make(Op::Max, {x, number(lo)})); }
Id Lanes::atMost(Id x, double hi) { return orNaN(x, make(Op::Min, {x, number(hi)})); }

Id Lanes::within(Id x, double lo, double hi) {
  Id raised = make(Op::Max, {x, number(lo)});
  return orNaN(x, make(Op::Min, {raised, number(hi)}));
}

// The sum of the magnitudes is NaN where one of the two is, and only there; else its sign bit is 0.
Id Lanes::extremum(Op op, Id a, Id b) {
  Id magnitude_a = abs(a), magnitude_b = abs(b);
  Id sum = add(magnitude_a, magnitude_b);
  Id word = builder_.makeAs(Op::Bitcast, type(Scalar::U32), {sum});
  Id none = make(Op::Gt, {word, constant(builder_.u32(0x7f800000u))});
  return select(none, sum, make(op, {a, b}));
}

Id Lanes::withSign(Id magnitude, Id sign) {
  Id negated = neg(magnitude);
  return select(less(sign, 0), negated, magnitude);
}

Id Lanes::bits(Id x) { return builder_.makeAs(Op::Bitcast, type(Scalar::I32), {x}); }
Id Lanes::fromBits(Id bits) { return builder_.makeAs(Op::Bitcast, type(Scalar::F32), {bits}); }
Id Lanes::leading12Bits(Id x) { return fromBits(masked(bits(x), static_cast<int32_t>(0xfffff000u))); }
Id Lanes::toInteger(Id x) { return builder_.convert(type(Scalar::I32), x); }
Id Lanes::toFloat(Id x) { return builder_.convert(type(Scalar::F32), x); }
Id Lanes::shiftLeft(Id x, uint32_t count) { return make(Op::Shl, {x, constant(builder_.u32(count))}); }
Id Lanes::shiftRight(Id x, uint32_t count) { return make(Op::Shr, {x, constant(builder_.u32(count))}); }

Id Lanes::powerOfTwo(Id exponent) {
  Id biased = add(exponent, integer(127));
  return fromBits(shiftLeft(biased, 23));
}

Id Lanes::polynomial(Id x, std::span<const float> coefficients) {
  Id sum = number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) {
    Id product = mul(sum, x);
    sum = add(product, coefficients[i]);
  }
  return sum;
}

}  // namespace lockstep::graph
