// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::cotangent_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkExtents("cotangent", "C1", c.attributes.get<std::vector<int64_t>>("shape")));
  return std::vector{f32(Shape(c.attributes.get<std::vector<int64_t>>("shape")))};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "cotangent",
    .summary =
        "Stands for the cotangent of a result in the gradient that a custom_gradient brings along; 0 wherever it is computed itself.",
    .constraints = ConstantList<Constraint>{kLeafExtents},
    .operands = ConstantList<std::string_view>{},
    .attributes = ConstantList<AttributeDef>{{"shape", AttributeKind::Integers, "shape of the result"}},
    .infer = infer,
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return laneConstant(e, DType::F32, 0); }, .cheap = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return std::vector{Tensor{c.results[0], std::vector<double>(static_cast<size_t>(c.results[0].shape.elementCount()), 0.0)}};
        },
    .cases = [] { return std::vector{OpCase{"zeros", {}, {{"shape", std::vector<int64_t>{3, 5}}}, 0, "all elements are 0"}}; },
};

}  // namespace lockstep::graph::cotangent_op
