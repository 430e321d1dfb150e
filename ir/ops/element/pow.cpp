// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::pow_op {
namespace {

using Id = Lanes::Id;

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId base = g.operands[0], exponent = g.operands[1], dy = g.cotangents[0];
  ValueId zero = b.constant(0, b.typeOf(base));
  // Where a power or a logarithm of 0 would be infinite but its factor is 0, the gradient is 0.
  ValueId slope = b.mul(exponent, b.make("pow", {base, b.add(exponent, -1.0)}));
  ValueId is_constant = b.make("equal", {exponent, zero});
  ValueId by_base = b.make("where", {is_constant, zero, b.mul(dy, slope)});
  ValueId growth = b.mul(g.results[0], b.make("log", {base}));
  ValueId base_is_zero = b.make("equal", {base, zero});
  ValueId stays_zero = b.make("logical_and", {base_is_zero, b.make("greater_equal", {exponent, zero})});
  ValueId by_exponent = b.make("where", {stays_zero, zero, b.mul(dy, growth)});
  return {by_base, by_exponent};
}

/// A number as the sum of two, the first of 12 bits.
struct Parts {
  Id high, low;
};

// log2 of a positive number to about 2^-30: x = 2^k z with z in [sqrt(1/2), sqrt(2)), and with s = (z - 1) / (z + 1)
// log2 z = 2 / ln 2 (s + s^3 / 3 + ...). The first term needs s in two parts; the tail is a polynomial, fitted as in elementary.h.
// The form is that of FreeBSD's msun/src/e_powf.c.
Parts emitLog2(Lanes& m, Id x) {
  static constexpr std::array kTail{0.961796641f, 0.577084303f, 0.41162917f, 0.341497183f};  // (log2 z - 2 s / ln 2) / s^3, in s^2
  constexpr int32_t kRootHalf = 0x3f3504f3;
  constexpr double kHigh = 2.88476562, kLow = 0.000624456792;  // 2 / ln 2, its leading 12 bits and the rest
  Id exponent = m.shiftRight(m.sub(m.bits(x), m.integer(kRootHalf)), 23);
  Id z = m.fromBits(m.sub(m.bits(x), m.shiftLeft(exponent, 23)));
  Id f = m.sub(z, 1.0), sum = m.add(z, 1.0), sum_high = m.leading12Bits(sum);
  Id sum_low = m.sub(z, m.sub(sum_high, 1.0));
  Id s = m.div(f, sum), s_high = m.leading12Bits(s);
  Id rest = m.sub(f, m.mul(s_high, sum_high));
  rest = m.sub(rest, m.mul(s_high, sum_low));
  Id s_low = m.div(rest, sum);
  Id square = m.mul(s, s), cube = m.mul(square, s);
  Id tail = m.mul(cube, m.polynomial(square, kTail));
  tail = m.add(tail, m.mul(s_low, 2.88539004));
  tail = m.add(tail, m.mul(s_high, kLow));
  Id head = m.mul(s_high, kHigh), k = m.toFloat(exponent);
  Id high = m.leading12Bits(m.add(m.add(k, head), tail));
  Id low = m.add(m.add(m.sub(k, high), head), tail);
  return {high, low};
}

/// 2^(high + low), 0 or infinity for |high| from 160 on.
Id emitExp2(Lanes& m, Parts x) {
  static constexpr std::array kExp2{0.693147182f,   0.240226507f,   0.0555032119f,
                                    0.00961799547f, 0.00134029461f, 0.000154788329f};  // (2^r - 1) / r for |r| <= 0.51
  Id beyond = m.greater(m.abs(x.high), 160);
  Id high = m.within(x.high, -160, 160), zero = m.number(0);
  Id low = m.select(beyond, zero, x.low);
  Id n = m.round(high);
  Id r = m.add(m.sub(high, n), low);
  Id value = m.add(m.mul(r, m.polynomial(r, kExp2)), 1.0);
  Id exponent = m.toInteger(n), first = m.shiftRight(exponent, 1), second = m.sub(exponent, first);
  value = m.mul(value, m.powerOfTwo(first));
  return m.mul(value, m.powerOfTwo(second));
}

// |a|^b = 2^(b log2 |a|), where the product is made of parts, so that its error does not grow with it.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Id base = e.operand(0), exponent = e.operand(1), magnitude = m.abs(base);
  Parts log = emitLog2(m, magnitude);
  // Zero (and what a device may flush to it) and infinity have logarithms so large that only the sign of the exponent counts.
  Id zero = m.number(0), lowest = m.number(-0x1p86), highest = m.number(0x1p86);
  Id is_zero = m.less(magnitude, 0x1p-126), is_infinite = m.greater(magnitude, 3.40282347e38);
  log.high = m.select(is_zero, lowest, m.select(is_infinite, highest, log.high));
  log.low = m.select(m.either(is_zero, is_infinite), zero, log.low);
  // From 2^32 on every power of a f32 other than 1 is 0 or infinity; the bound keeps infinities out of the products.
  Id bounded = m.within(exponent, -0x1p39, 0x1p39), high = m.leading12Bits(bounded), low = m.sub(bounded, high);
  Id main = m.mul(high, log.high), rest = m.mul(low, log.high);
  rest = m.add(rest, m.mul(bounded, log.low));
  Id value = emitExp2(m, {main, rest});
  // A negative base has whole powers only.
  Id negated = m.neg(value), none = m.number(std::numeric_limits<double>::quiet_NaN()), half = m.mul(exponent, 0.5);
  Id whole = m.make(kernel::Op::Eq, {m.make(kernel::Op::Floor, {exponent}), exponent});
  Id even = m.make(kernel::Op::Eq, {m.make(kernel::Op::Floor, {half}), half});
  Id of_negative = m.select(whole, m.select(even, value, negated), none);
  value = m.select(m.less(base, 0), of_negative, value);
  value = m.select(m.isNaN(base), base, value);
  Id one = m.number(1);
  return m.select(m.equal(exponent, 0), one, value);
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const Shape& shape, double lo, double hi) {
    return OpCase{name, {{f32(shape), 0.3, 3}, {f32(shape), lo, hi}}, {}, 3e-7, "a few units in the last place"};
  };
  return {make("small", {3, 5}, -2, 2), make("odd", {257}, -3, 3), make("four", {2, 3, 4, 5}, 0, 4), make("scalar", {}, 2, 2)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "pow",
    .summary =
        "a to the power of b, element by element; a negative a has whole powers only and else gives NaN, and every a has 1 for b = 0.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("pow", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return std::pow(a, b); }); },
    .cases = cases,
};

}  // namespace lockstep::graph::pow_op
