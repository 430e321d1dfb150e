// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/elementary_functions.h"

#include <array>
#include <limits>
#include <numbers>

namespace lockstep::graph {

using kernel::Op;
using Id = Lanes::Id;

namespace {

// The bits of sqrt(1/2): in the difference to those of x = 2^k r with r in [sqrt(1/2), sqrt(2)), the exponent field is k.
constexpr int32_t kRootHalf = 0x3f3504f3;

struct ReducedExp {
  Id exponent;  ///< k, i32
  Id expm1;     ///< e^r - 1 with x = k ln 2 + r, |r| <= ln 2 / 2
};

// ln 2 in two parts, the first of 15 bits: its product with k is exact. `low` is a small addend of x that x has no digits for.
ReducedExp reduceExp(Lanes& m, Id x, Id low = {}) {
  static constexpr std::array kExpm1{0.5f, 0.166665435f, 0.0416662842f, 0.00836656522f, 0.00139464124f};  // (e^r - 1 - r) / r^2
  Id k = m.round(m.mul(x, 1.44269504));
  Id r = m.sub(x, m.mul(k, 0.693145752));
  r = m.sub(r, m.mul(k, 1.42860677e-6));
  if (low.valid()) r = m.add(r, low);
  Id square = m.mul(r, r);
  Id tail = m.mul(square, m.polynomial(r, kExpm1));
  return {m.toInteger(k), m.add(r, tail)};
}

struct Angle {
  Id quadrant;  ///< i32, modulo 4
  Id sin, cos;  ///< of what remains, within [-pi/4, pi/4]
};

// pi / 2 in four parts, the first three of 11 bits: for |k| < 2^13 their products with k are exact, and so are the differences until the
// remainder has shrunk to its true size.
Angle reduceAngle(Lanes& m, Id x) {
  static constexpr std::array kSin{-0.166666552f, 0.00833217613f, -0.000195169763f};  // (sin r - r) / r^3, in r^2
  static constexpr std::array kCos{0.0416666456f, -0.00138873642f, 2.44380899e-05f};  // (cos r - 1 + r^2 / 2) / r^4, in r^2
  Id k = m.round(m.mul(x, 0.636619772)), r = x;
  for (double part : {1.5703125, 0.000483751297, 7.54953362e-08, 2.56334407e-12}) {
    Id product = m.mul(k, part);
    r = m.sub(r, product);
  }
  Id square = m.mul(r, r);
  Id sin_tail = m.mul(square, m.polynomial(square, kSin));
  Id sin = m.add(r, m.mul(r, sin_tail));
  Id fourth = m.mul(square, square);
  Id cos_tail = m.mul(fourth, m.polynomial(square, kCos));
  Id half = m.mul(square, 0.5);
  Id parabola = m.sub(m.number(1), half);
  Id cos = m.add(parabola, cos_tail);
  return {m.toInteger(k), sin, cos};
}

/// sin(x + turns pi / 2)
Id emitTurned(Lanes& m, Id x, int32_t turns, Op builtin) {
  Angle angle = reduceAngle(m, x);
  Id quadrant = m.add(angle.quadrant, m.integer(turns));
  Id odd = m.make(Op::Ne, {m.masked(quadrant, 1), m.integer(0)});
  Id value = m.select(odd, angle.cos, angle.sin);
  Id lower = m.make(Op::Ne, {m.masked(quadrant, 2), m.integer(0)});
  Id negated = m.neg(value);
  value = m.select(lower, negated, value);
  Id other = m.make(builtin, {x});
  return m.select(m.greater(m.abs(x), 12800), other, value);
}

// The scale goes on in two steps: 2^128 and 2^-149 are no normal numbers.
Id scaledExp(Lanes& m, const ReducedExp& reduced) {
  Id first = m.shiftRight(reduced.exponent, 1);
  Id second = m.sub(reduced.exponent, first);
  Id value = m.add(reduced.expm1, 1.0);
  value = m.mul(value, m.powerOfTwo(first));
  return m.mul(value, m.powerOfTwo(second));
}

}  // namespace

Id emitExp(Lanes& m, Id x) {
  Id bounded = m.within(x, -105, 89);
  return scaledExp(m, reduceExp(m, bounded));
}

// The square in two parts: rounded to one it would cost half of itself in units in the last place of the result.
Id emitGaussian(Lanes& m, Id x, double factor) {
  Id high = m.leading12Bits(x);
  Id main = m.mul(m.mul(high, high), -factor);
  Id difference = m.sub(x, high);
  Id rest = m.mul(difference, m.add(x, high));
  return scaledExp(m, reduceExp(m, main, m.mul(rest, -factor)));
}

// 2^k (e^r - 1) + (2^k - 1), at half the size since 2^128 is no number.
Id emitExpm1(Lanes& m, Id x) {
  Id bounded = m.within(x, -25, 89);
  ReducedExp reduced = reduceExp(m, bounded);
  Id below = m.sub(reduced.exponent, m.integer(1));
  Id half_scale = m.powerOfTwo(below);
  Id scaled = m.mul(reduced.expm1, half_scale);
  Id offset = m.sub(half_scale, 0.5);
  return m.mul(m.add(scaled, offset), 2.0);
}

// 1 + x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). Scaling is exact, so f = 2^-k x + (2^-k - 1) is rounded once and is x for k = 0.
Id emitLog1p(Lanes& m, Id x) {
  static constexpr std::array kLog{0.333333105f,  -0.249999866f, 0.200022191f,  -0.166692451f, 0.142187804f,
                                   -0.123844944f, 0.118723094f,  -0.117887996f, 0.0691557825f};  // (log(1 + f) - f + f^2 / 2) / f^3
  Id u = m.add(x, 1.0);
  Id exponent = m.shiftRight(m.sub(m.bits(u), m.integer(kRootHalf)), 23);
  Id scale = m.powerOfTwo(m.make(Op::Neg, {exponent}));
  Id scaled = m.mul(x, scale);
  Id f = m.add(scaled, m.sub(scale, 1.0));
  Id square = m.mul(f, f);
  Id cube = m.mul(f, square);
  Id tail = m.mul(cube, m.polynomial(f, kLog));
  // k ln 2 in two parts, the first of 10 bits and so exact; summed from small to large.
  Id k = m.toFloat(exponent);
  Id low = m.mul(k, -2.12194440e-4);
  Id half = m.mul(square, 0.5);
  Id small = m.sub(m.add(tail, low), half);
  Id high = m.mul(k, 0.693359375);
  Id value = m.add(m.add(small, f), high);
  Id positive = m.greater(u, 0);
  Id usual = m.both(positive, m.less(u, 0x1p126));
  // GLSL's Log is open for 0, negative numbers and NaN; SwiftShader gives numbers there.
  Id infinite = m.number(-std::numeric_limits<double>::infinity()), none = m.number(std::numeric_limits<double>::quiet_NaN());
  Id end = m.select(m.equal(u, 0), infinite, none);
  return m.select(usual, value, m.select(positive, m.make(Op::Log, {u}), end));
}

// x = r 2^k with r in [sqrt(1/2), sqrt(2)); log r = 2 atanh(s) with s = (r - 1) / (r + 1), |s| < 0.172: the next term of the series is
// below 2^-32.
Id emitLog(Lanes& m, Id x) {
  static constexpr std::array kAtanh{2.0f, 2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9};  // 2 atanh(s) / s, in s^2
  Id shifted = m.sub(m.bits(x), m.integer(kRootHalf));
  Id exponent = m.shiftRight(shifted, 23);
  Id r = m.fromBits(m.add(m.masked(shifted, 0x7fffff), m.integer(kRootHalf)));
  Id below = m.sub(r, 1.0);
  Id s = m.div(below, m.add(r, 1.0));
  Id mantissa = m.mul(m.polynomial(m.mul(s, s), kAtanh), s);
  // k ln 2 in two parts, the first of 10 bits and so exact.
  Id k = m.toFloat(exponent);
  Id low = m.add(m.mul(k, -2.12194440e-4), mantissa);
  Id high = m.mul(k, 0.693359375);
  return m.add(high, low);
}

Id emitSin(Lanes& m, Id x) { return emitTurned(m, x, 0, Op::Sin); }
Id emitCos(Lanes& m, Id x) { return emitTurned(m, x, 1, Op::Cos); }

// tanh t = (e^2t - 1) / (e^2t + 1); from 10 on it is 1 in f32, and the division stays in the range that WGSL bounds.
Id emitTanh(Lanes& m, Id x) {
  Id magnitude = m.atMost(m.abs(x), 10);
  Id grown = emitExpm1(m, m.mul(magnitude, 2.0));
  Id value = m.div(grown, m.add(grown, 2.0));
  return m.withSign(value, x);
}

Id emitSigmoid(Lanes& m, Id x) {
  Id decayed = emitExp(m, m.neg(m.abs(x)));
  Id one = m.number(1);
  Id numerator = m.select(m.less(x, 0), decayed, one);
  return m.div(numerator, m.add(decayed, 1.0));
}

Id emitErf(Lanes& m, Id x) {
  static constexpr std::array kErf{0.128379166f,   -0.3761262f,    0.112833932f,
                                   -0.0268354341f, 0.00511598168f, -0.000676109572f};  // erf(x) / x - 1 for |x| <= 3/4, in x^2
  Id square = m.mul(x, x);
  Id small = m.add(x, m.mul(x, m.polynomial(square, kErf)));
  Id magnitude = m.abs(x);
  Id bounded = m.atMost(magnitude, 4);  // 1 - erf(4) = 1.5e-8: from 4 on erf is 1 in f32
  Id bell = emitGaussian(m, bounded, 1);
  Id tail = m.mul(bell, emitErfcx(m, bounded));
  Id large = m.withSign(m.sub(m.number(1), tail), x);
  return m.select(m.less(magnitude, 0.75), small, large);
}

// A polynomial in z = (t - 2) / (t + 2).
Id emitErfcx(Lanes& m, Id t) {
  static constexpr std::array kErfcx{0.255395681f,     -0.427185863f,    0.241658255f,    -0.078978017f,   0.00373169058f, 0.00699259574f,
                                     -0.000840808614f, -0.000963036611f, 3.25362016e-05f, 0.000138504576f, 2.68177573e-05f};
  Id below = m.sub(t, 2.0);
  Id z = m.div(below, m.add(t, 2.0));
  return m.polynomial(z, kErfcx);
}

// e^(x^2 / 2) F(-x) = t (c0 + t (c1 + ...)) with t = 1 / (1 + 0.46 x), within 8.6e-6 of itself for x in [0, 14.3]; what the builtins and
// the rounding of the exponent add is 1.5e-5 at most there.
CoarseNormal emitCoarseNormal(Lanes& m, Id x) {
  static constexpr std::array kTail{0.183346357f, 0.187066473f, 0.116107782f, 0.177798818f, -0.236542342f, 0.0722271926f};
  const Id root = m.make(Op::InverseSqrt, {m.add(m.mul(m.abs(x), 0.46), 1)});
  const Id t = m.mul(root, root);
  const Id bell = m.make(Op::Exp2, {m.mul(m.mul(x, x), -0.5 * std::numbers::log2e)});
  return {.bell = bell, .tail = m.mul(bell, m.mul(t, m.polynomial(t, kTail)))};
}

}  // namespace lockstep::graph
