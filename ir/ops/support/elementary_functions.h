// SPDX-License-Identifier: Apache-2.0
// Elementary functions out of multiplications, additions and bits, to be emitted where WGSL's builtins are too weak: their error may be
// absolute (sin, cos, log near 1), grow with the argument (exp) or overflow (tanh). The errors named here are measured against f64 on the
// reference, in units in the last place (ulp) of the result (tests/differential/accuracy_test.cpp); they hold with products fused or not.
//
// Coefficients: minimax fits of the named function by Lawson's iteration (weighted least squares on 2000 Chebyshev nodes in f64 of a
// 40-digit function), rounded to f32. A NaN gives a NaN.
#pragma once

#include "ir/ops/support/lane_math.h"

namespace lockstep::graph {

/// e^x: overflows to infinity, underflows through the subnormals (which a device may flush) to 0.
Lanes::Id emitExp(Lanes& m, Lanes::Id x);
/// e^x - 1, also near 0.
Lanes::Id emitExpm1(Lanes& m, Lanes::Id x);
/// log(1 + x), also near 0; -infinity at -1 and NaN below it. Above 2^126 WGSL's log decides.
Lanes::Id emitLog1p(Lanes& m, Lanes::Id x);
/// log x of a positive normal f32, to 2 ulp also near 1. A NaN or any other x gives an arbitrary number.
Lanes::Id emitLog(Lanes& m, Lanes::Id x);
/// sin and cos for |x| <= 12800, also near their zeros; beyond, WGSL's builtin.
Lanes::Id emitSin(Lanes& m, Lanes::Id x);
Lanes::Id emitCos(Lanes& m, Lanes::Id x);
Lanes::Id emitTanh(Lanes& m, Lanes::Id x);
/// 1 / (1 + e^-x), small values too: sigmoid(-80) is e^-80.
Lanes::Id emitSigmoid(Lanes& m, Lanes::Id x);
Lanes::Id emitErf(Lanes& m, Lanes::Id x);
/// e^(-factor x^2) for finite x with factor x^2 <= 105; factor is 1 or a power of 2.
Lanes::Id emitGaussian(Lanes& m, Lanes::Id x, double factor);
/// The scaled complementary error function e^(t^2) (1 - erf(t)) for t in [0, 10.1].
Lanes::Id emitErfcx(Lanes& m, Lanes::Id t);

/// For results that are rounded to 16 bits: e^(-x^2 / 2), and the normal distribution function of -|x|, which is within 2^-15 of itself
/// down to 1e-38. Of a NaN, neither need be one.
struct CoarseNormal {
  Lanes::Id bell, tail;
};
CoarseNormal emitCoarseNormal(Lanes& m, Lanes::Id x);

}  // namespace lockstep::graph
