// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/model_outline.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/graph.h"
#include "ir/graph/op_def.h"

namespace lockstep::detail {

namespace {

using graph::NodeId;
using graph::ValueId;
using Set = std::set<uint32_t>;

struct Outliner {
  const graph::Graph& traced;
  ModelOutline outline = {};
  std::map<std::string, uint32_t, std::less<>> parameters = {};  // by name
  std::vector<Set> boxes = {};                                   // of each value: the one that it comes from, if any
  std::vector<Set> pending = {};                                 // of each value: parameters that it is made of and that no box has read
  std::vector<Set> read = {};                                    // of each box: parameters

  explicit Outliner(const graph::Graph& graph) : traced(graph), boxes(graph.values.size()), pending(graph.values.size()) {
    for (uint32_t i = 0; i < traced.parameters.size(); ++i) parameters.emplace(traced.parameters[i].name, i);
  }

  /// "layers.0.attn.q" of "layers.0.attn.q.W"; a parameter of the model itself stands for itself.
  [[nodiscard]] std::string moduleOf(uint32_t parameter) const {
    const std::string& name = traced.parameters[parameter].name;
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(0, dot);
  }

  uint32_t addBox(std::string name, std::string op, ValueId value, const Set& from) {
    const auto box = static_cast<uint32_t>(outline.boxes.size());
    outline.boxes.push_back({.name = std::move(name), .op = std::move(op), .type = toString(traced.typeOf(value)), .parameters = 0});
    read.emplace_back();
    for (const uint32_t source : from) outline.edges.emplace_back(source, box);
    return box;
  }

  void addLeaf(const graph::Node& node, const std::string& name) {
    const ValueId value = node.results.front();
    if (const auto found = parameters.find(name); found != parameters.end()) {
      pending[value.index()] = {found->second};
    } else if (name != graph::kRandomKeyInput) {
      boxes[value.index()] = {addBox(name, "input", value, {})};
    }
  }

  void addNode(const graph::Node& node) {
    Set from, used;
    for (const ValueId operand : node.operands) {
      from.insert(boxes[operand.index()].begin(), boxes[operand.index()].end());
      used.insert(pending[operand.index()].begin(), pending[operand.index()].end());
    }
    if (!used.empty() && !from.empty()) {
      const std::string module = moduleOf(*used.begin());
      uint32_t box = *from.begin();
      if (from.size() == 1 && outline.boxes[box].name == module) {
        outline.boxes[box].type = toString(traced.typeOf(node.results.front()));
      } else {
        box = addBox(module, std::string(*node.op->name), node.results.front(), from);
      }
      for (const uint32_t parameter : used) {
        if (read[box].insert(parameter).second) outline.boxes[box].parameters += traced.parameters[parameter].type.shape.elementCount();
      }
      from = {box};
      used.clear();
    } else if (from.size() > 1) {
      from = {addBox("", std::string(*node.op->name), node.results.front(), from)};
    }
    for (const ValueId result : node.results) {
      boxes[result.index()] = from;
      pending[result.index()] = used;
    }
  }
};

}  // namespace

ModelOutline outlineOf(const graph::Graph& traced) {
  Outliner outliner(traced);
  for (const NodeId id : traced.body().nodes) {
    const graph::Node& node = traced[id];
    if (const std::string* name = graph::leafName(node)) {
      outliner.addLeaf(node, *name);
    } else {
      outliner.addNode(node);
    }
  }
  for (const graph::Output& output : traced.outputs) {
    if (output.kind == graph::OutputKind::Loss || output.kind == graph::OutputKind::Result)
      outliner.addBox(output.name, "output", output.value, outliner.boxes[output.value.index()]);
  }
  std::ranges::sort(outliner.outline.edges);
  return outliner.outline;
}

}  // namespace lockstep::detail
