// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::parameter_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "parameter",
    .summary = "A trainable tensor of the module, by its path name.",
    .constraints = ConstantList<Constraint>{kLeafExtents},
    .operands = ConstantList<std::string_view>{},
    .attributes = leafAttributes("path in the module"),
    .infer = [](const InferContext& c) { return inferLeaf("parameter", c); },
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = StorageLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
    .leaf = LeafKind::Parameter,
};

}  // namespace lockstep::graph::parameter_op
