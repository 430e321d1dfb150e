// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::input_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const Attribute* below = c.attributes.find("below");
  const DType dtype = c.attributes.get<DType>("dtype");
  if (below != nullptr || c.attributes.find("ignored") != nullptr) {
    if (dtype != DType::I32 && dtype != DType::U32)
      return violated("input", "C2", fmt::format("an input of {} has no range", toString(dtype)));
    if (below != nullptr && std::get<int64_t>(*below) < 1) return violated("input", "C2", "no number is right");
  }
  return inferLeaf("input", c);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "input",
    .summary = "Data of one call, by its name.",
    .constraints = ConstantList<Constraint>{kLeafExtents, {"C2", "below and ignored are for integers; below is at least 1"}},
    .operands = ConstantList<std::string_view>{},
    .attributes = ConstantList<AttributeDef>{{"name", AttributeKind::String, "name of the input"},
                                             {"dtype", AttributeKind::DType, "element type"},
                                             {"shape", AttributeKind::Integers, "shape"},
                                             {"below", AttributeKind::Integer, "all elements are 0 to below - 1", false},
                                             {"ignored", AttributeKind::Integer, "or this number", false}},
    .infer = infer,
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = StorageLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
    .leaf = LeafKind::Input,
};

}  // namespace lockstep::graph::input_op
