// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

namespace lockstep::graph::stop_gradient_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "stop_gradient",
    .summary = "The operand itself; nothing flows back through it.",
    .constraints = ConstantList<Constraint>{},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"of_gradient", AttributeKind::Boolean,
                                              "a gradient made it, for what it takes over from the forward computation", false}},
    .infer = [](const InferContext& c) -> Result<std::vector<TensorType>> { return std::vector{c.operands[0]}; },
    .gradient = NotDifferentiable{.reason = "it stops the gradient by definition", .is_meant = true},
    .lower = ViewLowering{.map = [](const Graph& graph, const Node& node) { return identityMap(graph.shapeOf(node.results[0]).rank()); }},
    .alias = AliasView{},
    .evaluate = [](const EvaluateContext& c) { return std::vector{Tensor{c.results[0], c.operands[0]->data}}; },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
};

}  // namespace lockstep::graph::stop_gradient_op
