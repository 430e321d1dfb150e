// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"

namespace lockstep::graph::cumsum_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (!isNumber(x.dtype)) return violated("cumsum", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  LS_CHECK(checkAxis("cumsum", "C2", c.attributes.get<int64_t>("axis"), x.shape.rank()));
  return std::vector{x};
}

// Element j is part of the prefixes from j on: their cotangents are summed from the other end.
std::vector<ValueId> gradient(const GradientContext& g) {
  bool reverse = g.node.attributes.get<bool>("reverse");
  return {g.builder.make("cumsum", {g.cotangents[0]}, {{"axis", g.node.attributes.get<int64_t>("axis")}, {"reverse", !reverse}})};
}

std::vector<Tensor> evaluateCumsum(const EvaluateContext& c) {
  const Tensor& x = *c.operands[0];
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  bool reverse = c.node.attributes.get<bool>("reverse");
  const int64_t length = x.type.shape.extent(axis), stride = x.type.shape.strides()[axis];
  std::vector<Tensor> out{Tensor{c.results[0], x.data}};
  std::vector<double>& sums = out[0].data;
  for (int64_t line = 0; line < static_cast<int64_t>(sums.size()) / length; ++line) {
    const int64_t first = line / stride * stride * length + line % stride;
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      double& here = sums[static_cast<size_t>(first + (reverse ? length - 1 - i : i) * stride)];
      here = sum += here;
    }
  }
  for (double& value : out[0].data) value = wrapped(value, x.type.dtype);
  return out;
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType type, int64_t axis, bool reverse = false) {
    return OpCase{
        name, {{std::move(type), 0, 2}}, {{"axis", axis}, {"reverse", reverse}}, 2e-6, "sums of at most 3000 numbers of one sign"};
  };
  return {make("last", f32({6, 5, 37}), 2),       make("middle", f32({6, 5, 37}), 1),   make("first", f32({17, 70}), 0),
          make("reverse", f32({3, 70}), 1, true), make("long_line", f32({2, 3001}), 1), make("reverse_first", f32({33, 3}), 0, true),
          make("integer", i32({7, 130}), 1),      make("one", f32({4, 1}), 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "cumsum",
    .summary = "Sums of the elements up to and including each one along an axis, or from each one on when reversed.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "the axis is within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis along which is summed"},
                                             {"reverse", AttributeKind::Boolean, "sum from the end"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ScanLowering{.axis = [](const Graph&, const Node& node) { return node.attributes.get<int64_t>("axis"); },
                          .reverse = [](const Node& node) { return node.attributes.get<bool>("reverse"); },
                          .combine =
                              [](const Graph& graph, const Node& node) {
                                return makeCombine(std::array{graph.typeOf(node.operands[0]).dtype},
                                                   [](Builder& b, auto sum, auto x) { return std::vector{b.add(sum[0], x[0])}; });
                              },
                          .identity = [](const Node&) { return std::vector{0.0}; }},
    .alias = NoAlias{},
    .evaluate = evaluateCumsum,
    .cases = cases,
};

}  // namespace lockstep::graph::cumsum_op
