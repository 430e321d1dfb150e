// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::constant_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkValue("constant", "C2", c.attributes.get<double>("value"), c.attributes.get<DType>("dtype")));
  return inferLeaf("constant", c);
}

kernel::ValueId emit(ElementEmitter& e) {
  return laneConstant(e, e.graph().typeOf(e.node().results[0]).dtype, e.node().attributes.get<double>("value"));
}

std::vector<Tensor> evaluateConstant(const EvaluateContext& c) {
  const TensorType& type = c.results[0];
  return {Tensor{type, std::vector<double>(static_cast<size_t>(type.shape.elementCount()), c.node.attributes.get<double>("value"))}};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, double value, DType dtype, std::vector<int64_t> shape) {
    return OpCase{name, {}, {{"value", value}, {"dtype", dtype}, {"shape", std::move(shape)}}, 6e-8, "the value is rounded to the type"};
  };
  return {make("fraction", 0.1, DType::F32, {3, 5}), make("scalar", -2.5, DType::F32, {}), make("integer", -7, DType::I32, {33}),
          make("unsigned", 4294967295.0, DType::U32, {5})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "constant",
    .summary = "A tensor whose elements all have one value.",
    .constraints = ConstantList<Constraint>{{"C1", "every extent is at least 1 and the element count is at most 2^31 - 1"},
                                            {"C2", "the value is a value of the element type"}},
    .operands = ConstantList<std::string_view>{},
    .attributes = ConstantList<AttributeDef>{{"value", AttributeKind::Float, "value of all elements"},
                                             {"dtype", AttributeKind::DType, "element type"},
                                             {"shape", AttributeKind::Integers, "shape"}},
    .infer = infer,
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = ElementLowering{.emit = emit, .cheap = true},
    .alias = NoAlias{},
    .evaluate = evaluateConstant,
    .cases = cases,
    .leaf = LeafKind::Constant,
    .range = [](const RangeContext& c) -> std::vector<KnownRange> {
      if (isFloat(c.graph.typeOf(c.node.results[0]).dtype)) return {KnownRange()};
      const auto value = static_cast<int64_t>(c.node.attributes.get<double>("value"));
      return {IntegerRange{value, value}};
    },
};

}  // namespace lockstep::graph::constant_op
