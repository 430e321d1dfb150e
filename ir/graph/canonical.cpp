// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/graph.h"
#include "ir/graph/op_def.h"
#include "ir/graph/text.h"

namespace lockstep::graph {
namespace {

class Numberer {
 public:
  explicit Numberer(const Graph& graph) : graph_(graph) {
    numbering_.region_position.assign(graph.regions.size(), Numbering::kAbsent);
    numbering_.node_position.assign(graph.nodes.size(), Numbering::kAbsent);
    numbering_.value_position.assign(graph.values.size(), Numbering::kAbsent);
    numbering_.constant_position.assign(graph.constants.size(), Numbering::kAbsent);
    numbering_.location_position.assign(graph.locations.size(), Numbering::kAbsent);
    numbering_.hints.resize(graph.values.size());
  }

  Numbering run() {
    region(RegionId(0));
    return std::move(numbering_);
  }

 private:
  // Gives the id the next position; false when it is out of range or has one already.
  template <class Tag>
  static bool take(Id<Tag> id, std::vector<uint32_t>& positions, std::vector<Id<Tag>>& order) {
    if (id.index() >= positions.size() || positions[id.index()] != Numbering::kAbsent) return false;
    positions[id.index()] = static_cast<uint32_t>(order.size());
    order.push_back(id);
    return true;
  }

  void region(RegionId id) {
    if (!take(id, numbering_.region_position, numbering_.regions)) return;
    for (NodeId node_id : graph_[id].nodes) node(node_id);
  }

  void node(NodeId id) {
    if (!take(id, numbering_.node_position, numbering_.nodes)) return;
    const Node& node = graph_[id];
    for (ValueId result : node.results) {
      if (take(result, numbering_.value_position, numbering_.values)) nameValue(result);
    }
    for (const auto& [name, attribute] : node.attributes.items()) {
      if (const auto* constant = std::get_if<ConstantId>(&attribute)) {
        take(*constant, numbering_.constant_position, numbering_.constants);
      }
    }
    location(node.location);
    for (RegionId owned : node.regions) region(owned);
  }

  void location(uint32_t one_based) {
    if (one_based == 0 || one_based > graph_.locations.size()) return;
    const Location& location = graph_.locations[one_based - 1];
    auto key = std::make_tuple(location.file, location.line, location.column);
    auto [found, is_new] = location_of_.emplace(std::move(key), static_cast<uint32_t>(numbering_.locations.size()));
    if (is_new) numbering_.locations.push_back(location);
    numbering_.location_position[one_based - 1] = found->second;
  }

  void nameValue(ValueId id) {
    std::string hint = graph_[id].name;
    if (hint.empty()) return;
    for (char& c : hint) {
      if (!isSigilName(std::string_view(&c, 1))) c = '_';
    }
    // A name of digits would read as a number, that is as a value without a hint.
    if (isNumber(hint)) hint.insert(hint.begin(), '_');
    std::string name = hint;
    uint32_t& suffix = suffix_of_[hint];
    while (!names_.insert(name).second) name = hint + "." + std::to_string(++suffix);
    numbering_.hints[id.index()] = std::move(name);
  }

  const Graph& graph_;
  Numbering numbering_;
  std::set<std::string> names_;
  std::map<std::string, uint32_t> suffix_of_;
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint32_t> location_of_;
};

template <class IdType>
IdType renumbered(IdType id, const std::vector<uint32_t>& positions) {
  if (id.index() >= positions.size() || positions[id.index()] == Numbering::kAbsent) return IdType();
  return IdType(positions[id.index()]);
}

Attributes renumbered(const Attributes& attributes, const Numbering& numbering) {
  Attributes result = attributes;
  for (const auto& [name, attribute] : attributes.items()) {
    if (const auto* constant = std::get_if<ConstantId>(&attribute)) result.set(name, renumbered(*constant, numbering.constant_position));
    if (const auto* nested = std::get_if<NestedGraph>(&attribute)) result.set(name, NestedGraph(canonical(**nested)));
  }
  return result;
}

Node renumbered(const Node& node, const Numbering& numbering) {
  Node result{.op = node.op, .operands = {}, .results = {}, .attributes = renumbered(node.attributes, numbering), .regions = {}};
  for (ValueId id : node.operands) result.operands.push_back(renumbered(id, numbering.value_position));
  for (ValueId id : node.results) result.results.push_back(renumbered(id, numbering.value_position));
  for (RegionId id : node.regions) result.regions.push_back(renumbered(id, numbering.region_position));
  if (node.location != 0 && node.location <= numbering.location_position.size()) {
    result.location = numbering.location_position[node.location - 1] + 1;
  }
  return result;
}

}  // namespace

bool isNumber(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool isSigilName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

std::string Numbering::nameOf(ValueId value) const {
  if (value.index() >= value_position.size() || value_position[value.index()] == kAbsent) return "undefined";
  const std::string& hint = hints[value.index()];
  return hint.empty() ? std::to_string(value_position[value.index()]) : hint;
}

Numbering number(const Graph& graph) { return Numberer(graph).run(); }

Graph canonical(const Graph& graph) {
  const Numbering numbering = number(graph);
  Graph result{.parameters = graph.parameters,
               .symbols = graph.symbols,
               .values = {},
               .nodes = {},
               .regions = {},
               .constants = {},
               .locations = numbering.locations,
               .outputs = graph.outputs};
  for (ValueId id : numbering.values) {
    result.values.push_back({.type = graph.typeOf(id),
                             .node = renumbered(graph[id].node, numbering.node_position),
                             .result = graph[id].result,
                             .name = numbering.hints[id.index()]});
  }
  for (NodeId id : numbering.nodes) result.nodes.push_back(renumbered(graph[id], numbering));
  for (RegionId id : numbering.regions) {
    Region& region = result.regions.emplace_back();
    for (NodeId node : graph[id].nodes) region.nodes.push_back(renumbered(node, numbering.node_position));
    for (ValueId value : graph[id].yields) region.yields.push_back(renumbered(value, numbering.value_position));
  }
  if (result.regions.empty()) result.regions.emplace_back();
  for (ConstantId id : numbering.constants) result.constants.push_back(graph[id]);
  for (Output& output : result.outputs) output.value = renumbered(output.value, numbering.value_position);
  return result;
}

Attributes attributesWithoutPlaces(const Node& node) {
  Attributes attributes = node.attributes;
  if (node.op == nullptr) return attributes;
  for (const AttributeDef& definition : *node.op->attributes) {
    if (!definition.kernel_text) continue;
    const Attribute* attribute = attributes.find(definition.name);
    const auto* text = attribute == nullptr ? nullptr : std::get_if<std::string>(attribute);
    if (text == nullptr) continue;
    // A text that cannot be read is for the validator to refuse, as it is.
    if (const Result<kernel::Module> module = kernel::parse(*text); module.ok())
      attributes.set(std::string(definition.name), kernel::print(*module));
  }
  return attributes;
}

Graph withoutLocations(Graph graph) {
  for (Node& node : graph.nodes) {
    node.location = 0;
    node.attributes = attributesWithoutPlaces(node);
    const Attributes attributes = node.attributes;
    for (const auto& [name, attribute] : attributes.items()) {
      if (const auto* nested = std::get_if<NestedGraph>(&attribute)) node.attributes.set(name, NestedGraph(withoutLocations(**nested)));
    }
  }
  graph.locations.clear();
  return graph;
}

}  // namespace lockstep::graph
