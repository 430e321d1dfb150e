// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/random_words.h"

namespace lockstep::graph::dropout_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  if (c.operands[0].dtype != DType::F32)
    return violated("dropout", "C1", fmt::format("operand is {}, wanted f32", toString(c.operands[0])));
  if (c.operands[1] != u32({4})) return violated("dropout", "C2", fmt::format("the key is {}, wanted u32[4]", toString(c.operands[1])));
  double p = c.attributes.get<double>("p");
  if (!(p >= 0 && p < 1)) return violated("dropout", "C3", fmt::format("p is {}, wanted at least 0 and below 1", p));
  int64_t salt = c.attributes.get<int64_t>("salt");
  if (salt < 0 || salt > INT32_MAX) return violated("dropout", "C4", fmt::format("the salt {} is outside 0 to 2^31 - 1", salt));
  return std::vector{c.operands[0]};
}

// The same elements are dropped from the cotangent.
std::vector<ValueId> gradient(const GradientContext& g) {
  return {g.builder.make("dropout", {g.cotangents[0], g.operands[1]}, g.node.attributes), ValueId()};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  double p = node.attributes.get<double>("p");
  Shape shape = b.shapeOf(operands[0]);
  Attributes draw{{"shape", shape.extents()}, {"salt", node.attributes.get<int64_t>("salt")}};
  ValueId dropped = b.make("less", {b.make("uniform", {operands[1]}, draw), b.constant(p, shape)});
  ValueId scaled = b.mul(operands[0], 1 / (1 - p));
  return {b.make("where", {dropped, b.constant(0, shape), scaled})};
}

std::vector<Tensor> evaluateDropout(const EvaluateContext& c) {
  double p = c.node.attributes.get<double>("p");
  EvaluateContext draw{c.graph, c.node, c.operands.subspan(1), c.results};
  std::vector<Tensor> out = evaluateRandom(draw, [](const std::array<uint32_t, 4>& words) { return uniformOf(words[0]); });
  for (size_t i = 0; i < out[0].data.size(); ++i) {
    // p is compared as the f32 that a kernel holds.
    double& element = out[0].data[i];
    element = element < static_cast<double>(static_cast<float>(p)) ? 0 : c.operands[0]->data[i] / (1 - p);
  }
  return out;
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, double p) {
    return OpCase{name, {{f32(std::move(shape))}, {u32({4}), 0, 4e9}}, {{"p", p}, {"salt", int64_t{5}}}, 3e-7, "one product an element"};
  };
  return {make("tenth", {33, 29}, 0.1), make("half", {2, 3, 4, 5}, 0.5), make("none", {17}, 0), make("scalar", {}, 0.25)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "dropout",
    .summary = "Each element is 0 with probability p, else divided by 1 - p.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"},
                                            {"C2", "the key is u32[4]: seed and step, each as low and high word"},
                                            {"C3", "p is at least 0 and below 1"},
                                            {"C4", "the salt is at least 0 and below 2^31"}},
    .operands = ConstantList<std::string_view>{"x", "key"},
    .attributes = ConstantList<AttributeDef>{{"p", AttributeKind::Float, "probability of 0"},
                                             {"salt", AttributeKind::Integer, "tells the random ops of one program apart"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateDropout,
    .cases = cases,
};

}  // namespace lockstep::graph::dropout_op
