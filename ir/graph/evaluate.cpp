// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/loop.h"

namespace lockstep::graph {
namespace {

struct State {
  const Graph& graph;
  const LeafValues& leaves;
  const KernelFunctions& kernels;
  std::vector<Tensor> values;

  Status region(const Region& region) {
    for (NodeId id : region.nodes) {
      const Node& node = graph[id];
      LS_CHECK(run(node));
    }
    return Success{};
  }

  Status run(const Node& node) {
    if (std::holds_alternative<RegionLowering>(*node.op->lower)) {
      const Region& members = graph[node.regions.front()];
      LS_CHECK(region(members));
      for (size_t i = 0; i < node.results.size(); ++i) values[node.results[i].index()] = values[members.yields[i].index()];
      return Success{};
    }
    if (const std::string* name = leafName(node); name != nullptr) {
      const std::string& key = *name;
      const TensorType& type = graph.typeOf(node.results.front());
      auto found = leaves.find(key);
      if (found == leaves.end()) return fail("evaluate.missing", fmt::format("{} '{}' has no value", *node.op->name, key));
      if (found->second.data.size() != static_cast<size_t>(type.shape.elementCount())) {
        return fail("evaluate.size", fmt::format("{} '{}' is {} but {} elements were given", *node.op->name, key, toString(type),
                                                 found->second.data.size()));
      }
      values[node.results.front().index()] = {type, found->second.data};
      return Success{};
    }
    std::vector<const Tensor*> operands;
    for (ValueId operand : node.operands) operands.push_back(&values[operand.index()]);
    std::vector<TensorType> types;
    for (ValueId result : node.results) types.push_back(graph.typeOf(result));
    if (std::holds_alternative<KernelLowering>(*node.op->lower)) return runKernel(node, operands, types);
    if (std::holds_alternative<LoopLowering>(*node.op->lower)) return runLoop(node, operands, types);
    std::vector<Tensor> results = (*node.op->evaluate)({graph, node, operands, types});
    for (size_t i = 0; i < results.size(); ++i) values[node.results[i].index()] = std::move(results[i]);
    return Success{};
  }

  Status runLoop(const Node& node, std::span<const Tensor* const> operands, const std::vector<TensorType>& types) {
    const LoopForm loop(node);
    std::vector<Tensor> results;
    for (const TensorType& type : types) results.push_back({type, std::vector<double>(static_cast<size_t>(type.shape.elementCount()))});
    const auto row = [](const Tensor& stack, int64_t at) {
      const auto size = static_cast<std::ptrdiff_t>(rowType(stack.type).shape.elementCount());
      return std::vector<double>(stack.data.begin() + at * size, stack.data.begin() + (at + 1) * size);
    };
    const auto setRow = [](Tensor& stack, int64_t at, const Tensor& value) {
      std::ranges::copy(value.data, stack.data.begin() + at * static_cast<std::ptrdiff_t>(value.data.size()));
    };
    LeafValues inside;
    for (size_t i = 0; i < loop.captures; ++i) inside[captureName(i)] = *operands[loop.firstCapture() + i];
    for (size_t i = 0; i < loop.carries; ++i) setRow(results[i], loop.firstRow(), *operands[i]);
    for (size_t i = 0; i < loop.held; ++i) results[loop.carries + i] = *operands[loop.carries + i];
    for (int64_t round = 0; round < loop.iterations; ++round) {
      const int64_t at = loop.position(round);
      for (size_t i = 0; i < loop.carries; ++i) inside[carryName(i)] = {rowType(types[i]), row(results[i], loop.rowRead(at))};
      for (size_t i = 0; i < loop.slices; ++i) {
        const Tensor& stack = *operands[loop.firstSlice() + i];
        inside[sliceName(i)] = {rowType(stack.type), row(stack, at)};
      }
      for (size_t i = 0; i < loop.held; ++i) inside[heldName(i)] = results[loop.carries + i];
      LS_TRY(const std::vector<Tensor> made, evaluate(loop.body(), inside, kernels));
      for (size_t i = 0; i < made.size(); ++i) {
        const bool is_held = i >= loop.carries && i < loop.firstResult();
        if (is_held) {
          results[i] = made[i];
        } else {
          setRow(results[i], i < loop.carries ? loop.rowWritten(at) : at, made[i]);
        }
      }
    }
    for (size_t i = 0; i < results.size(); ++i) values[node.results[i].index()] = std::move(results[i]);
    return Success{};
  }

  Status runKernel(const Node& node, std::span<const Tensor* const> operands, const std::vector<TensorType>& types) {
    const auto& label = node.attributes.get<std::string>("label");
    auto function = kernels.find(label);
    if (function == kernels.end())
      return fail("evaluate.kernel", fmt::format("the evaluator has no function for kernel '{}'", label), {}, "run it on a device");
    std::vector<std::vector<double>> results = function->second(operands);
    bool fits = results.size() == types.size();
    for (size_t i = 0; fits && i < types.size(); ++i) fits = results[i].size() == static_cast<size_t>(types[i].shape.elementCount());
    if (!fits) return fail("evaluate.kernel", fmt::format("the function for kernel '{}' gives other results than its types say", label));
    for (size_t i = 0; i < types.size(); ++i) values[node.results[i].index()] = {types[i], std::move(results[i])};
    return Success{};
  }
};

}  // namespace

Result<std::vector<Tensor>> evaluate(const Graph& graph, const LeafValues& leaves, const KernelFunctions& kernels) {
  State state{graph, leaves, kernels, std::vector<Tensor>(graph.values.size())};
  LS_CHECK(state.region(graph.body()));
  std::vector<Tensor> outputs;
  for (const Output& output : graph.outputs) outputs.push_back(state.values[output.value.index()]);
  return outputs;
}

}  // namespace lockstep::graph
