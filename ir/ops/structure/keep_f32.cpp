// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::keep_f32_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "keep_f32",
    .summary = "The operand itself, which mixed precision does not round.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) -> Result<std::vector<TensorType>> {
      if (c.operands[0].dtype != DType::F32)
        return violated("keep_f32", "C1", fmt::format("operand is {}, wanted f32", toString(c.operands[0])));
      return std::vector{c.operands[0]};
    },
    .gradient = GradientFn([](const GradientContext& g) { return std::vector{g.cotangents[0]}; }),
    .lower = ViewLowering{.map = [](const Graph& graph, const Node& node) { return identityMap(graph.shapeOf(node.results[0]).rank()); }},
    .alias = AliasView{},
    .evaluate = [](const EvaluateContext& c) { return std::vector{Tensor{c.results[0], c.operands[0]->data}}; },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
    .mixed = MixedRole::Exempt,
};

}  // namespace lockstep::graph::keep_f32_op
