// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/builder.h"

#include <fmt/format.h>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

Result<std::vector<ValueId>> Builder::tryMake(const OpDef& op, std::vector<ValueId> operands, Attributes attributes) {
  std::vector<TensorType> types;
  for (ValueId operand : operands) types.push_back(graph_.typeOf(operand));
  size_t fixed = op.operands->size();
  bool variadic = fixed > 0 && op.operands->back().ends_with("...");
  if (variadic ? types.size() + 1 < fixed : types.size() != fixed) {
    return fail(fmt::format("{}.operands", *op.name), fmt::format("{} takes {}{} operands, not {}", *op.name, variadic ? "at least " : "",
                                                                  variadic ? fixed - 1 : fixed, types.size()));
  }
  LS_TRY(std::vector<TensorType> result_types, (*op.infer)({graph_, types, attributes}));
  NodeId node(graph_.nodes.size());
  std::vector<ValueId> results;
  for (size_t i = 0; i < result_types.size(); ++i) {
    results.emplace_back(graph_.values.size());
    graph_.values.push_back({result_types[i], node, static_cast<uint32_t>(i), {}});
  }
  graph_.nodes.push_back({&op, std::move(operands), results, std::move(attributes), {}, location_});
  graph_.regions.front().nodes.push_back(node);
  return results;
}

std::vector<ValueId> Builder::makeAll(std::string_view name, std::vector<ValueId> operands, Attributes attributes) {
  auto made = tryMake(graph::op(name), std::move(operands), std::move(attributes));
  if (!made) internalError(fmt::format("building '{}' failed: {}", name, toString(made.diagnostics())));
  return *made;
}

ValueId Builder::make(std::string_view name, std::vector<ValueId> operands, Attributes attributes) {
  return makeAll(name, std::move(operands), std::move(attributes)).front();
}

uint32_t Builder::addLocation(const Location& location) {
  for (size_t i = graph_.locations.size(); i-- > 0;) {
    if (graph_.locations[i] == location) return static_cast<uint32_t>(i + 1);
  }
  graph_.locations.push_back(location);
  return static_cast<uint32_t>(graph_.locations.size());
}

uint32_t Builder::addLocation(const Graph& from, const Node& node) {
  return node.location == 0 ? 0 : addLocation(from.locations[node.location - 1]);
}

Attributes Builder::addAttributes(const Graph& from, const Node& node) {
  Attributes attributes = node.attributes;
  for (const auto& [name, attribute] : node.attributes.items()) {
    const auto* constant = std::get_if<ConstantId>(&attribute);
    if (constant == nullptr) continue;
    attributes.set(name, ConstantId(graph_.constants.size()));
    graph_.constants.push_back(from[*constant]);
  }
  return attributes;
}

void Builder::name(ValueId value, std::string name) { graph_.values[value.index()].name = std::move(name); }
void Builder::output(OutputKind kind, std::string name, ValueId value) { graph_.outputs.push_back({kind, std::move(name), value}); }

ValueId Builder::constant(double value, const TensorType& type) {
  return make("constant", {}, {{"value", value}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
}

ValueId Builder::binary(std::string_view op, ValueId a, ValueId b) {
  std::optional<Shape> shape = broadcastShapes(shapeOf(a), shapeOf(b));
  if (!shape) internalError(fmt::format("'{}' of {} and {}", op, toString(typeOf(a)), toString(typeOf(b))));
  return make(op, {broadcastTo(a, *shape), broadcastTo(b, *shape)});
}

ValueId Builder::add(ValueId a, ValueId b) { return binary("add", a, b); }
ValueId Builder::sub(ValueId a, ValueId b) { return binary("sub", a, b); }
ValueId Builder::mul(ValueId a, ValueId b) { return binary("mul", a, b); }
ValueId Builder::div(ValueId a, ValueId b) { return binary("div", a, b); }
ValueId Builder::mul(ValueId a, double b) { return make("mul", {a, constant(b, typeOf(a))}); }
ValueId Builder::add(ValueId a, double b) { return make("add", {a, constant(b, typeOf(a))}); }
ValueId Builder::neg(ValueId a) { return make("neg", {a}); }

ValueId Builder::broadcastTo(ValueId a, const Shape& shape) {
  if (shapeOf(a) == shape) return a;
  return make("broadcast_to", {a}, {{"shape", shape.extents()}});
}

ValueId Builder::sumToShape(ValueId a, const Shape& shape) {
  if (shapeOf(a) == shape) return a;
  return make("sum_to_shape", {a}, {{"shape", shape.extents()}});
}

ValueId Builder::reshape(ValueId a, const Shape& shape) {
  if (shapeOf(a) == shape) return a;
  return make("reshape", {a}, {{"shape", shape.extents()}});
}

ValueId Builder::sum(ValueId a, int64_t axis, bool keep_dims) {
  int64_t rank = static_cast<int64_t>(shapeOf(a).rank());
  return make("sum", {a}, {{"axes", std::vector<int64_t>{axis < 0 ? axis + rank : axis}}, {"keep_dims", keep_dims}});
}

ValueId Builder::permute(ValueId a, std::vector<int64_t> permutation) {
  return make("permute", {a}, {{"permutation", std::move(permutation)}});
}

ValueId Builder::swapLastAxes(ValueId a) {
  std::vector<int64_t> permutation;
  for (size_t i = 0; i < shapeOf(a).rank(); ++i) permutation.push_back(static_cast<int64_t>(i));
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return permute(a, std::move(permutation));
}

void cloneNodes(Builder& builder, std::span<const NodeId> nodes, std::map<ValueId, ValueId>& now) {
  for (NodeId id : nodes) {
    Node node = builder.graph()[id];  // a copy: the builder grows
    for (ValueId& operand : node.operands) {
      if (auto found = now.find(operand); found != now.end()) operand = found->second;
    }
    builder.setLocation(node.location);
    std::vector<ValueId> results = builder.makeAll(*node.op->name, std::move(node.operands), std::move(node.attributes));
    for (size_t i = 0; i < results.size(); ++i) now[node.results[i]] = results[i];
  }
}

}  // namespace lockstep::graph
