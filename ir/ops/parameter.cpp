// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"
#include "ir/ops/leaf.h"

namespace lockstep::graph {

extern const OpDef kParameterOp;
const OpDef kParameterOp{
    .name = "parameter",
    .summary = "A trainable tensor of the module, by its path name.",
    .constraints = std::vector<Constraint>{{"C1", "every extent is at least 1 and the element count fits in 32 bits"}},
    .operands = std::vector<std::string_view>{},
    .attributes = std::vector<AttributeDef>{{"name", AttributeKind::String, "path in the module"},
                                            {"dtype", AttributeKind::DType, "element type"},
                                            {"shape", AttributeKind::Integers, "shape"}},
    .infer = [](const InferContext& c) { return inferLeaf("parameter", c); },
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = StorageLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
};

}  // namespace lockstep::graph
