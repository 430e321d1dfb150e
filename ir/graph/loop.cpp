// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/loop.h"

#include <fmt/format.h>

#include <map>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

std::string carryName(size_t i) { return fmt::format("carry{}", i); }
std::string heldName(size_t i) { return fmt::format("held{}", i); }
std::string sliceName(size_t i) { return fmt::format("slice{}", i); }
std::string captureName(size_t i) { return fmt::format("capture{}", i); }
std::string resultName(size_t i) { return fmt::format("result{}", i); }

TensorType rowType(const TensorType& stack) {
  std::vector<Dim> dims = stack.shape.dims();
  dims.erase(dims.begin());
  return {stack.dtype, Shape(std::move(dims))};
}

TensorType stackType(const TensorType& row, int64_t rows) {
  std::vector<Dim> dims = row.shape.dims();
  dims.insert(dims.begin(), Dim(rows));
  return {row.dtype, Shape(std::move(dims))};
}

LoopForm::LoopForm(const Node& node) : LoopForm(node.operands.size(), node.attributes) {}

LoopForm::LoopForm(size_t operands, const Attributes& attributes)
    : iterations(attributes.get<int64_t>("iterations")),
      carries(static_cast<size_t>(attributes.get<int64_t>("carries"))),
      held(attributes.find("held") == nullptr ? 0 : static_cast<size_t>(attributes.get<int64_t>("held"))),
      slices(static_cast<size_t>(attributes.get<int64_t>("slices"))),
      captures(operands - carries - held - slices),
      reverse(attributes.get<bool>("reverse")),
      graph(attributes.get<NestedGraph>("body")) {}

ValueId findLeaf(const Graph& graph, std::string_view name) {
  for (const NodeId id : graph.body().nodes) {
    const std::string* found = leafName(graph[id]);
    if (found != nullptr && *found == name) return graph[id].results[0];
  }
  return {};
}

std::vector<ValueId> makeLoop(Builder& b, const LoopOperands& operands, int64_t iterations, bool reverse, Graph body) {
  std::vector<ValueId> all = operands.carries;
  all.insert(all.end(), operands.held.begin(), operands.held.end());
  all.insert(all.end(), operands.slices.begin(), operands.slices.end());
  all.insert(all.end(), operands.captures.begin(), operands.captures.end());
  Attributes attributes{{"iterations", iterations},
                        {"carries", static_cast<int64_t>(operands.carries.size())},
                        {"slices", static_cast<int64_t>(operands.slices.size())},
                        {"reverse", reverse},
                        {"body", NestedGraph(std::move(body))}};
  if (!operands.held.empty()) attributes.set("held", static_cast<int64_t>(operands.held.size()));
  return b.makeAll("loop", std::move(all), std::move(attributes));
}

ValueId rowsOf(Builder& b, ValueId stack, int64_t first, int64_t count) {
  if (first == 0 && count == b.shapeOf(stack).extent(0)) return stack;
  return b.make("narrow", {stack}, {{"axis", int64_t{0}}, {"start", first}, {"length", count}});
}

ValueId rowOf(Builder& b, ValueId stack, int64_t row) { return b.reshape(rowsOf(b, stack, row, 1), rowType(b.typeOf(stack)).shape); }

std::vector<ValueId> inlineGraph(Builder& b, const Graph& body, const std::map<std::string, ValueId, std::less<>>& leaves) {
  std::map<ValueId, ValueId> now;
  for (const NodeId id : body.body().nodes) {
    const Node& node = body[id];
    if (const std::string* name = leafName(node)) {
      now[node.results[0]] = leaves.at(*name);
      continue;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(now.at(operand));
    b.setLocation(b.addLocation(body, node));
    const std::vector<ValueId> made = b.makeAll(*node.op->name, std::move(operands), b.addAttributes(body, node));
    for (size_t i = 0; i < made.size(); ++i) {
      now[node.results[i]] = made[i];
      b.name(made[i], body[node.results[i]].name);
    }
  }
  std::vector<ValueId> results;
  for (const Output& output : body.outputs) results.push_back(now.at(output.value));
  return results;
}

std::vector<ValueId> unrollLoop(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const LoopForm loop(node);
  const Graph& body = loop.body();
  std::map<std::string, ValueId, std::less<>> leaves;
  for (size_t i = 0; i < loop.captures; ++i) leaves[captureName(i)] = operands[loop.firstCapture() + i];
  for (size_t i = 0; i < loop.carries; ++i) leaves[carryName(i)] = operands[i];
  for (size_t i = 0; i < loop.held; ++i) leaves[heldName(i)] = operands[loop.carries + i];
  const auto isHeld = [&](size_t output) { return output >= loop.carries && output < loop.firstResult(); };
  // By result: the rows in the order of positions; of what is held the last version.
  std::vector<std::vector<ValueId>> rows(body.outputs.size());
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].resize(isHeld(i) ? 1 : static_cast<size_t>(loop.iterations + (i < loop.carries ? 1 : 0)));
  for (size_t i = 0; i < loop.carries; ++i) rows[i][static_cast<size_t>(loop.firstRow())] = operands[i];
  for (int64_t round = 0; round < loop.iterations; ++round) {
    const int64_t at = loop.position(round);
    for (size_t i = 0; i < loop.slices; ++i) leaves[sliceName(i)] = rowOf(b, operands[loop.firstSlice() + i], at);
    const std::vector<ValueId> made = inlineGraph(b, body, leaves);
    for (size_t i = 0; i < made.size(); ++i) {
      if (isHeld(i)) {
        rows[i][0] = leaves[heldName(i - loop.carries)] = made[i];
        continue;
      }
      const bool carried = i < loop.carries;
      rows[i][static_cast<size_t>(carried ? loop.rowWritten(at) : at)] = made[i];
      if (carried) leaves[carryName(i)] = made[i];
    }
  }
  std::vector<ValueId> results;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<ValueId>& stack = rows[i];
    if (isHeld(i)) {
      results.push_back(stack[0]);
      continue;
    }
    for (ValueId& row : stack) row = b.reshape(row, stackType(b.typeOf(row), 1).shape);
    results.push_back(stack.size() == 1 ? stack[0] : b.make("concat", stack, {{"axis", int64_t{0}}}));
  }
  return results;
}

}  // namespace lockstep::graph
