// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/support/diagnostic.h"

namespace lockstep::graph {

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

void Attributes::set(std::string name, Attribute value) {
  auto at = std::lower_bound(items_.begin(), items_.end(), name, [](const auto& item, const std::string& key) { return item.first < key; });
  if (at != items_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items_.insert(at, {std::move(name), std::move(value)});
  }
}

void Attributes::erase(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

NestedGraph::NestedGraph(Graph graph) : graph_(std::make_shared<const Graph>(std::move(graph))) {}
bool operator==(const NestedGraph& a, const NestedGraph& b) { return a.graph_ == b.graph_ || *a == *b; }

void Attributes::missing(std::string_view name) { internalError(fmt::format("attribute '{}' is absent or of another kind", name)); }

std::string_view toString(OutputKind kind) {
  static constexpr std::array<std::string_view, 7> kNames{"loss", "result", "capture", "print", "check", "gradient", "next_state"};
  return kNames[static_cast<size_t>(kind)];
}

const ParameterLayout::Slot* ParameterLayout::find(std::string_view name) const {
  for (const Slot& slot : slots) {
    if (slot.name == name) return &slot;
  }
  return nullptr;
}

const std::string* leafName(const Node& node) {
  const Attribute* name = node.operands.empty() ? node.attributes.find("name") : nullptr;
  return name == nullptr ? nullptr : std::get_if<std::string>(name);
}

ParameterLayout layoutParameters(const std::vector<ParameterInfo>& parameters) {
  ParameterLayout layout;
  for (const ParameterInfo& parameter : parameters) {
    int64_t size = parameter.type.shape.elementCount();
    layout.slots.push_back({parameter.name, parameter.type, parameter.decay, layout.total, size});
    layout.total += (size + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
  }
  return layout;
}

}  // namespace lockstep::graph
