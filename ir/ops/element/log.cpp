// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::log_op {
namespace {

using kernel::Op;

// WGSL's log is open for everything but positive numbers, and drivers give numbers there; told by the bits, in which they come first.
kernel::ValueId emit(ElementEmitter& e) {
  constexpr int32_t kInfinity = 0x7f800000;
  Lanes m(e);
  Lanes::Id x = e.operand(0), word = m.bits(x);
  Lanes::Id positive = m.make(Op::Gt, {word, m.integer(0)}), finite = m.make(Op::Lt, {word, m.integer(kInfinity)});
  Lanes::Id zero = m.make(Op::Eq, {m.masked(word, INT32_MAX), m.integer(0)});
  Lanes::Id lowest = m.number(-std::numeric_limits<double>::infinity()), none = m.number(std::numeric_limits<double>::quiet_NaN());
  Lanes::Id of_negative = m.select(zero, lowest, none);
  Lanes::Id end = m.select(positive, x, of_negative);
  Lanes::Id ordinary = m.both(positive, finite);
  return m.select(ordinary, m.make(Op::Log, {x}), end);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "log",
    .summary = "Natural logarithm; -infinity of 0, NaN below it.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("log", c, {DType::F32}); },
    .gradient = GradientFn([](const GradientContext& g) { return std::vector{g.builder.div(g.cotangents[0], g.operands[0])}; }),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::log(x); }); },
    .cases = [] { return elementCases(1, 0.1, 9, 1e-6, "WGSL log: 3 units in the last place, and 2^-21 near 1"); },
};

}  // namespace lockstep::graph::log_op
