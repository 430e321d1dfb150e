// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::custom_gradient_op {
namespace {

/// Operands: the results themselves, a `cotangent` leaf for each, the inputs that get a gradient, and their gradients made from those
/// leaves.
struct Parts {
  size_t results = 0, inputs = 0;
  [[nodiscard]] size_t cotangent(size_t i) const { return results + i; }
  [[nodiscard]] size_t input(size_t i) const { return 2 * results + i; }
  [[nodiscard]] size_t gradient(size_t i) const { return 2 * results + inputs + i; }
  [[nodiscard]] size_t count() const { return 2 * (results + inputs); }
};

Parts partsOf(const Attributes& attributes, size_t operands) {
  auto results = static_cast<size_t>(std::max<int64_t>(0, attributes.get<int64_t>("results")));
  return {results, operands < 2 * results ? 0 : operands / 2 - results};
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  Parts parts = partsOf(c.attributes, c.operands.size());
  if (parts.results == 0 || c.operands.size() != parts.count())
    return violated("custom_gradient", "C1", fmt::format("{} operands do not fit {} results", c.operands.size(), parts.results));
  std::vector<TensorType> types(c.operands.begin(), c.operands.begin() + static_cast<ptrdiff_t>(parts.results));
  for (size_t i = 0; i < parts.results; ++i) {
    if (types[i].dtype != DType::F32 || c.operands[parts.cotangent(i)] != types[i])
      return violated("custom_gradient", "C2",
                      fmt::format("result {} is {} and its cotangent {}, wanted one f32 type", i, toString(types[i]),
                                  toString(c.operands[parts.cotangent(i)])));
  }
  for (size_t i = 0; i < parts.inputs; ++i) {
    const TensorType &input = c.operands[parts.input(i)], &gradient = c.operands[parts.gradient(i)];
    if (input.dtype != DType::F32 || gradient != input)
      return violated("custom_gradient", "C3",
                      fmt::format("input {} is {} and its gradient {}, wanted one f32 type", i, toString(input), toString(gradient)));
  }
  return types;
}

/// The nodes of the body in front of `last` that depend on one of the `leaves`.
std::vector<NodeId> dependents(const Graph& graph, const std::map<ValueId, ValueId>& leaves, NodeId last) {
  std::vector<bool> depends(graph.values.size(), false);
  for (const auto& [leaf, replacement] : leaves) depends[leaf.index()] = true;
  std::vector<NodeId> nodes;
  for (NodeId id : graph.body().nodes) {
    if (id == last) break;
    const Node& node = graph[id];
    if (std::none_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return depends[operand.index()]; })) continue;
    nodes.push_back(id);
    for (ValueId result : node.results) depends[result.index()] = true;
  }
  return nodes;
}

/// Copies everything between the cotangent leaves and the node that depends on them, with the leaves replaced.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Parts parts = partsOf(g.node.attributes, g.operands.size());
  std::map<ValueId, ValueId> now;
  for (size_t i = 0; i < parts.results; ++i) {
    ValueId cotangent = g.cotangents[i];
    now[g.operands[parts.cotangent(i)]] = cotangent.valid() ? cotangent : b.constant(0, Shape(b.shapeOf(g.results[i])));
  }
  std::vector<NodeId> between = dependents(b.graph(), now, b.graph()[g.results[0]].node);
  cloneNodes(b, between, now);
  std::vector<ValueId> cotangents(g.operands.size());
  for (size_t i = 0; i < parts.inputs; ++i) {
    ValueId made = g.operands[parts.gradient(i)];
    cotangents[parts.input(i)] = now.contains(made) ? now[made] : made;
  }
  return cotangents;
}

std::vector<Tensor> evaluateCustomGradient(const EvaluateContext& c) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < c.results.size(); ++i) results.push_back({c.results[i], c.operands[i]->data});
  return results;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "custom_gradient",
    .summary = "The results themselves, with the gradient that comes with them in place of that of the nodes that make them.",
    .constraints = ConstantList<Constraint>{{"C1", "there is a cotangent for each result and a gradient for each input"},
                                            {"C2", "results are f32 and their cotangents have the same types"},
                                            {"C3", "inputs are f32 and their gradients have the same types"}},
    .operands = ConstantList<std::string_view>{"values..."},
    .attributes =
        ConstantList<AttributeDef>{{"results", AttributeKind::Integer, "how many operands are results"},
                                   {"recomputed", AttributeKind::Boolean,
                                    "the gradient is that of the nodes that make the results, computed again; else one of its own", false}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose =
                                   [](Builder&, const Node& node, std::span<const ValueId> operands) {
                                     return std::vector(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(node.results.size()));
                                   }},
    .alias = NoAlias{},
    .evaluate = evaluateCustomGradient,
    .cases = noCases,
    // What its gradient does is unknown.
    .open = [](const OpenContext&) -> std::optional<std::vector<Opened>> { return std::nullopt; },
};

}  // namespace lockstep::graph::custom_gradient_op
