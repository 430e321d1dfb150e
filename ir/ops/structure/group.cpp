// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::group_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "group",
    .summary = "Members that become one kernel; made by fuse, computed by its region.",
    .constraints = ConstantList<Constraint>{{"C1", "a group is made by fuse, with its region and result types"}},
    .operands = ConstantList<std::string_view>{"inputs..."},
    .attributes = ConstantList<AttributeDef>{{"kind", AttributeKind::String, "what the members have in common: how the kernel is made"}},
    .infer = [](const InferContext&) -> Result<std::vector<TensorType>> {
      return violated("group", "C1", "the types of a group come from its region, not from its operands");
    },
    .gradient = NotDifferentiable{"groups are made after gradients"},
    .lower = RegionLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
};

}  // namespace lockstep::graph::group_op
