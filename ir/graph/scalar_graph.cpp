// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/scalar_graph.h"

#include <fmt/format.h>

#include <map>

#include "ir/graph/op_def.h"

namespace lockstep::graph {
namespace {

std::vector<const Node*> inputNodes(const Graph& function) {
  std::vector<const Node*> inputs;
  for (const NodeId id : function.body().nodes) {
    if (leafKind(function[id]) == LeafKind::Input) inputs.push_back(&function[id]);
  }
  return inputs;
}

/// Attributes of a node on scalars as those of one on tensors of a shape.
Attributes withShape(const Node& node, const Shape& shape) {
  Attributes attributes = node.attributes;
  if (leafKind(node) == LeafKind::Constant) attributes.set("shape", shape.extents());
  return attributes;
}

}  // namespace

Graph makeCombine(std::span<const DType> types,
                  const std::function<std::vector<ValueId>(Builder&, std::span<const ValueId>, std::span<const ValueId>)>& body) {
  Builder b;
  std::vector<std::vector<ValueId>> tuples;
  for (const std::string_view tuple : {"earlier", "later"}) {
    std::vector<ValueId>& values = tuples.emplace_back();
    for (const DType dtype : types) {
      values.push_back(
          b.make("input", {}, {{"name", fmt::format("{}{}", tuple, values.size())}, {"dtype", dtype}, {"shape", std::vector<int64_t>{}}}));
    }
  }
  for (const ValueId result : body(b, tuples[0], tuples[1])) b.output(OutputKind::Result, "", result);
  return b.take();
}

std::vector<ValueId> applyScalars(Builder& b, const Graph& function, std::span<const ValueId> inputs) {
  std::map<ValueId, ValueId> now;
  const Shape shape = b.shapeOf(inputs.front());
  size_t next = 0;
  for (const NodeId id : function.body().nodes) {
    const Node& node = function[id];
    if (leafKind(node) == LeafKind::Input) {
      now[node.results[0]] = inputs[next++];
      continue;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(now.at(operand));
    now[node.results[0]] = b.make(*node.op->name, std::move(operands), withShape(node, shape));
  }
  std::vector<ValueId> results;
  for (const Output& output : function.outputs) results.push_back(now.at(output.value));
  return results;
}

Status checkCombine(const Graph& function, std::span<const DType> types) {
  const auto refuse = [](std::string message) { return fail("combine", std::move(message)); };
  const std::vector<const Node*> inputs = inputNodes(function);
  if (inputs.size() != 2 * types.size() || function.outputs.size() != types.size())
    return refuse(fmt::format("it takes {} scalars and gives {}, wanted {} and {}", inputs.size(), function.outputs.size(),
                              2 * types.size(), types.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType given = function.typeOf(inputs[i]->results[0]).dtype, wanted = types[i % types.size()];
    if (given != wanted) return refuse(fmt::format("input {} is {}, wanted {}", i, toString(given), toString(wanted)));
  }
  for (const NodeId id : function.body().nodes) {
    const Node& node = function[id];
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    const bool is_leaf = leafKind(node) == LeafKind::Input;
    if (!is_leaf && (element == nullptr || element->scalar_only))
      return refuse(fmt::format("'{}' is not an operation on elements", *node.op->name));
    for (const ValueId result : node.results) {
      if (function.shapeOf(result).rank() != 0)
        return refuse(fmt::format("'{}' makes {}, wanted scalars", *node.op->name, toString(function.typeOf(result))));
    }
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const DType given = function.typeOf(function.outputs[i].value).dtype;
    if (given != types[i]) return refuse(fmt::format("result {} is {}, wanted {}", i, toString(given), toString(types[i])));
  }
  return Success{};
}

}  // namespace lockstep::graph
