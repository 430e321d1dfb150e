// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/lanes.h"

#include "ir/ops/common.h"

namespace lockstep::graph {

using kernel::Op;
using kernel::Scalar;
using Id = Lanes::Id;

Id Lanes::number(double value) { return laneConstant(emitter_, DType::F32, value); }
Id Lanes::integer(int32_t value) { return laneConstant(emitter_, DType::I32, value); }

Id Lanes::isNaN(Id x) {
  Id magnitude = masked(bits(x), 0x7fffffff);
  return make(Op::Gt, {magnitude, integer(0x7f800000)});
}

Id Lanes::atLeast(Id x, double lo) {
  Id bound = number(lo);
  return select(less(x, lo), bound, x);
}

Id Lanes::atMost(Id x, double hi) {
  Id bound = number(hi);
  return select(greater(x, hi), bound, x);
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
Id Lanes::shiftLeft(Id x, uint32_t count) { return make(Op::Shl, {x, laneConstant(emitter_, DType::U32, count)}); }
Id Lanes::shiftRight(Id x, uint32_t count) { return make(Op::Shr, {x, laneConstant(emitter_, DType::U32, count)}); }

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
