// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/random_words.h"

namespace lockstep::graph::categorical_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& logits = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis"), salt = c.attributes.get<int64_t>("salt");
  if (logits.dtype != DType::F32) return violated("categorical", "C1", fmt::format("the logits are {}, wanted f32", toString(logits)));
  if (c.operands[1] != u32({4})) return violated("categorical", "C2", fmt::format("the key is {}, wanted u32[4]", toString(c.operands[1])));
  LS_CHECK(checkAxis("categorical", "C3", axis, logits.shape.rank()));
  if (salt < 0 || salt > INT32_MAX) return violated("categorical", "C4", fmt::format("the salt {} is outside 0 to 2^31 - 1", salt));
  std::vector<Dim> dims = logits.shape.dims();
  dims.erase(dims.begin() + axis);
  return std::vector{i32(Shape(std::move(dims)))};
}

// The largest of logit + Gumbel noise is a draw from softmax(logits) (Gumbel, 1954).
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Attributes draw{{"shape", b.shapeOf(operands[0]).extents()}, {"salt", node.attributes.get<int64_t>("salt")}};
  ValueId noise = b.make("gumbel", {operands[1]}, std::move(draw));
  return {b.make("argmax", {b.add(operands[0], noise)}, {{"axis", node.attributes.get<int64_t>("axis")}})};
}

std::vector<Tensor> evaluateCategorical(const EvaluateContext& c) {
  const Tensor& logits = *c.operands[0];
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  std::vector<TensorType> whole{logits.type};
  EvaluateContext draw{c.graph, c.node, c.operands.subspan(1), whole};
  Tensor noise = evaluateRandom(draw, [](const std::array<uint32_t, 4>& words) { return -std::log(-std::log(uniformOf(words[0]))); })[0];
  ElementReader logit(logits), gumbel(noise);
  int64_t classes = logits.type.shape.extent(axis);
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    index.insert(index.begin() + static_cast<ptrdiff_t>(axis), 0);
    double best = -INFINITY, drawn = 0;
    for (int64_t k = 0; k < classes && !std::isnan(best); ++k) {
      index[axis] = k;
      double score = logit(index) + gumbel(index);
      if (score > best || std::isnan(score)) {
        best = score;
        drawn = static_cast<double>(k);
      }
    }
    return drawn;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape logits, int64_t axis) {
    return OpCase{name, {{f32(std::move(logits)), -3, 3}, {u32({4}), 0, 4e9}}, {{"axis", axis}, {"salt", int64_t{2}}}, 0, "a position"};
  };
  return {make("last", {37, 27}, 1), make("first", {5, 40}, 0), make("middle", {3, 7, 5}, 1), make("one", {9, 1}, 1),
          make("vector", {10}, 0)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "categorical",
    .summary = "A random class along an axis, each with the probability that the softmax of the logits gives it.",
    .constraints = ConstantList<Constraint>{{"C1", "the logits are f32"},
                                            {"C2", "the key is u32[4]: seed and step, each as low and high word"},
                                            {"C3", "the axis is within the rank"},
                                            {"C4", "the salt is at least 0 and below 2^31"}},
    .operands = ConstantList<std::string_view>{"logits", "key"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of the classes, which is dropped"},
                                             {"salt", AttributeKind::Integer, "tells the random ops of one program apart"}},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is an index"},
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateCategorical,
    .cases = cases,
    .range = rangeOfPlaces,
};

}  // namespace lockstep::graph::categorical_op
