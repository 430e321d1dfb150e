// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph {

extern const OpDef kInputOp;
constexpr OpDef kInputOp{
    .name = "input",
    .summary = "Data of one call, by its name.",
    .constraints = ConstantList<Constraint>{kLeafExtents},
    .operands = ConstantList<std::string_view>{},
    .attributes = leafAttributes("name of the input"),
    .infer = [](const InferContext& c) { return inferLeaf("input", c); },
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = StorageLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
    .leaf = LeafKind::Input,
};

}  // namespace lockstep::graph
