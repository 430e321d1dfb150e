// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/common.h"

namespace lockstep::graph {

extern const OpDef kLogOp;
constexpr OpDef kLogOp{
    .name = "log",
    .summary = "Natural logarithm.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("log", c, {DType::F32}); },
    .gradient = GradientFn([](const GradientContext& g) { return std::vector{g.builder.div(g.cotangents[0], g.operands[0])}; }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Log, {e.operand(0)}); },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::log(x); }); },
    .cases = [] { return elementCases(1, 0.1, 9, 1e-6, "WGSL log: 3 units in the last place, and 2^-21 near 1"); },
};

}  // namespace lockstep::graph
