// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/largest_smallest.h"

namespace lockstep::graph::argmax_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "argmax",
    .summary =
        "Position of the largest element along an axis, which is dropped; the lowest position where several are equal, and that of the "
        "first NaN where there is one.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "the axis is within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis that is searched"}},
    .infer = [](const InferContext& c) { return inferArgument("argmax", c); },
    .gradient = NotDifferentiable{"the result is a position"},
    .lower = DecomposeLowering{.decompose =
                                   [](Builder& b, const Node& node, std::span<const ValueId> operands) {
                                     return decomposeArgument(b, node, operands[0], "reduce_max");
                                   }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) { return evaluateArgument(c, [](double candidate, double best) { return candidate > best; }); },
    .cases = argumentCases,
    .range = rangeOfPlaces,
    .open = [](const OpenContext& c) { return openArgument(c, true); },
};

}  // namespace lockstep::graph::argmax_op
