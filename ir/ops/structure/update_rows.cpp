// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"
#include "ir/ops/support/row_updates.h"

namespace lockstep::graph::update_rows_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "update_rows",
    .summary = "write_rows on a state: its next version, of which the rows alone are written.",
    .constraints = ConstantList<Constraint>{{"C1", kRowsRule},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "the rows have the shape of the state but along the axis, where they are no more"},
                                            {"C4", kPlaceRule}},
    .operands = ConstantList<std::string_view>{"state", "rows", "at"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of the rows"}},
    .infer = [](const InferContext& c) { return inferRowUpdate("update_rows", c); },
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = StorageLowering{},
    .alias = AliasUpdate{.at_index = true},
    .evaluate = evaluateRowUpdate,
    .cases = noCases,
};

}  // namespace lockstep::graph::update_rows_op
