// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::state_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkValue("state", "C2", c.attributes.get<double>("init"), c.attributes.get<DType>("dtype")));
  return inferLeaf("state", c);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "state",
    .summary = "A tensor that lasts from step to step, by its name; filled with init when it is allocated or reset.",
    .constraints = ConstantList<Constraint>{kLeafExtents, {"C2", "init is a value of the element type"}},
    .operands = ConstantList<std::string_view>{},
    .attributes = ConstantList<AttributeDef>{{"name", AttributeKind::String, "name of the state"},
                                             {"dtype", AttributeKind::DType, "element type"},
                                             {"shape", AttributeKind::Integers, "shape"},
                                             {"init", AttributeKind::Float, "value of all elements before the first step"}},
    .infer = infer,
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = StorageLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
    .leaf = LeafKind::State,
};

}  // namespace lockstep::graph::state_op
