// SPDX-License-Identifier: Apache-2.0
#include "tools/explore/explore_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "ir/graph/op_def.h"

namespace lockstep::tools {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using program::Dispatch;
using program::Program;
using program::Range;

/// Nodes as one text in which values are numbered in their order, so that the same computation has the same text in any graph.
class Signature {
 public:
  void name(ValueId value) { names_.emplace(value, names_.size()); }
  void add(const Graph& graph, const Node& node) {
    std::vector<size_t> operands;
    for (const ValueId operand : node.operands) operands.push_back(numberOf(operand));
    text_ += fmt::format("{}({})", *node.op->name, fmt::join(operands, ","));
    for (const ValueId result : node.results) {
      name(result);
      text_ += graph::toString(graph.typeOf(result)) + ";";
    }
  }
  void yield(ValueId value) { text_ += fmt::format("yield {};", numberOf(value)); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] size_t numberOf(ValueId value) const {
    const auto found = names_.find(value);
    return found == names_.end() ? SIZE_MAX : found->second;
  }
  std::map<ValueId, size_t> names_;
  std::string text_;
};

std::string signatureOf(const Graph& graph, const Node& group) {
  Signature signature;
  for (const ValueId operand : group.operands) signature.name(operand);
  const graph::Region& region = graph[group.regions.front()];
  for (const graph::NodeId id : region.nodes) signature.add(graph, graph[id]);
  for (const ValueId value : region.yields) signature.yield(value);
  return signature.text();
}

/// Of a kernel before emit: its inputs a0, a1, ... are the operands of the group.
std::string signatureOf(const Graph& body) {
  Signature signature;
  std::map<std::string, ValueId> inputs;
  for (const graph::NodeId id : body.body().nodes) {
    if (const std::string* name = graph::leafName(body[id])) inputs.emplace(*name, body[id].results.front());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const auto found = inputs.find(fmt::format("a{}", i)); found != inputs.end()) signature.name(found->second);
  }
  for (const graph::NodeId id : body.body().nodes) {
    if (graph::leafName(body[id]) == nullptr) signature.add(body, body[id]);
  }
  for (const graph::Output& output : body.outputs) signature.yield(output.value);
  return signature.text();
}

bool isWrite(const Range& range) { return range.access != kernel::Access::Read; }

bool overlap(const Range& a, uint64_t offset, uint64_t size) { return a.offset < offset + size && offset < a.offset + a.size; }

class Placing {
 public:
  Placing(const Graph& grouped, const Program& scheduled, const Program& last) : grouped_(grouped), scheduled_(scheduled), last_(last) {
    for (size_t i = 0; i < scheduled.commands.size(); ++i) {
      const auto* dispatch = std::get_if<Dispatch>(&scheduled.commands[i].action);
      if (dispatch == nullptr) continue;
      const auto* symbolic = std::get_if<program::SymbolicKernel>(&scheduled[dispatch->kernel].code);
      free_[symbolic != nullptr ? signatureOf(symbolic->body) : "kernel " + scheduled.commands[i].label].push_back(i);
    }
  }

  std::vector<GroupPlace> run() {
    std::vector<GroupPlace> places;
    for (const graph::NodeId id : grouped_.body().nodes) {
      const Node& node = grouped_[id];
      const bool group = !node.regions.empty(), kernel = std::holds_alternative<graph::KernelLowering>(*node.op->lower);
      if (group || kernel) {
        places.push_back(place(node, group ? signatureOf(grouped_, node) : "kernel " + node.attributes.get<std::string>("label")));
      } else {
        follow(node);
      }
    }
    return places;
  }

 private:
  /// Leaves lie in the buffer of their name, views where their operand does.
  void follow(const Node& node) {
    if (const std::string* name = graph::leafName(node)) {
      buffer_of_[node.results.front()] = *name;
    } else if (!node.operands.empty()) {
      const auto found = buffer_of_.find(node.operands.front());
      if (found != buffer_of_.end()) buffer_of_[node.results.front()] = found->second;
    }
  }

  GroupPlace place(const Node& node, const std::string& signature) {
    GroupPlace place;
    const auto found = free_.find(signature);
    if (found == free_.end() || found->second.empty()) return place;
    // Several groups may compute the same: the one that reads what the operands were put into; else they come in the same order.
    const auto chosen = std::ranges::max_element(
        found->second, [&](size_t a, size_t b) { return agreement(node, bindings(a)) < agreement(node, bindings(b)); });
    const size_t command = *chosen;
    found->second.erase(chosen);
    const std::vector<Range>& ranges = bindings(command);
    const std::string& label = scheduled_.commands[command].label;
    for (size_t i = 0; i < node.results.size() && node.operands.size() + i < ranges.size(); ++i) {
      const Range& range = ranges[node.operands.size() + i];
      buffer_of_[node.results[i]] = scheduled_[range.buffer].name;
      place.buffers.push_back(lastBuffer(range));
      std::vector<size_t> writers = writersInPlace(place.buffers.back(), label);
      if (writers.empty()) writers = writersOf(range, label);
      place.commands.insert(place.commands.end(), writers.begin(), writers.end());
    }
    std::ranges::sort(place.commands);
    place.commands.erase(std::unique(place.commands.begin(), place.commands.end()), place.commands.end());
    return place;
  }

  [[nodiscard]] const std::vector<Range>& bindings(size_t command) const {
    return std::get<Dispatch>(scheduled_.commands[command].action).bindings;
  }

  [[nodiscard]] int agreement(const Node& node, const std::vector<Range>& ranges) const {
    int count = 0;
    for (size_t i = 0; i < node.operands.size() && i < ranges.size(); ++i) {
      const auto found = buffer_of_.find(node.operands[i]);
      if (found != buffer_of_.end() && scheduled_[ranges[i].buffer].name == found->second) ++count;
    }
    return count;
  }

  [[nodiscard]] program::BufferId lastBuffer(const Range& range) const {
    for (size_t i = 0; i < last_.buffers.size(); ++i) {
      if (last_.buffers[i].name == scheduled_[range.buffer].name) return program::BufferId(i);
    }
    return {};
  }

  /// Later passes cut commands and put several into one, whose label is then that of all; the buffers keep their names.
  [[nodiscard]] std::vector<size_t> writersOf(const Range& range, const std::string& label) const {
    std::vector<size_t> writers;
    for (size_t i = 0; i < last_.commands.size(); ++i) {
      if (last_.commands[i].label.find(label) == std::string::npos) continue;
      const std::vector<Range> ranges = program::accesses(last_.commands[i]);
      const bool writes = std::ranges::any_of(ranges, [&](const Range& other) {
        return isWrite(other) && last_[other.buffer].name == scheduled_[range.buffer].name && overlap(other, range.offset, range.size);
      });
      if (writes) writers.push_back(i);
    }
    return writers;
  }

  /// A temporary whose first use is none of its own command was made in the bytes of an operand, under the operand's name: by the last
  /// command that writes those bytes before. That first use may make its own result in the same bytes again.
  [[nodiscard]] std::vector<size_t> writersInPlace(program::BufferId made, const std::string& label) const {
    if (!made.valid() || last_[made].role != program::ArenaRole::Workspace) return {};
    std::vector<size_t> writers;
    for (size_t i = 0; i < last_.commands.size(); ++i) {
      const std::vector<Range> ranges = program::accesses(last_.commands[i]);
      const auto own = [&](const Range& range) { return range.buffer == made; };
      const bool writes = std::ranges::any_of(ranges, [&](const Range& range) { return own(range) && isWrite(range); });
      if (writes && last_.commands[i].label.find(label) != std::string::npos) return {};
      if (std::ranges::any_of(ranges, own)) return writers;
      if (std::ranges::any_of(ranges, [&](const Range& range) { return isWrite(range) && sharesBytes(range, last_[made]); })) writers = {i};
    }
    return {};
  }

  [[nodiscard]] bool sharesBytes(const Range& range, const program::Buffer& buffer) const {
    const program::Buffer& other = last_[range.buffer];
    const uint64_t begin = other.offset + range.offset;
    return other.arena == buffer.arena && begin < buffer.offset + buffer.size && buffer.offset < begin + range.size;
  }

  const Graph& grouped_;
  const Program& scheduled_;
  const Program& last_;
  std::map<std::string, std::vector<size_t>> free_;  ///< commands of the scheduled program that no group has yet, by signature
  std::map<ValueId, std::string> buffer_of_;
};

}  // namespace

std::vector<GroupPlace> placeGroups(const Graph& grouped, const Program& scheduled, const Program& last) {
  return Placing(grouped, scheduled, last).run();
}

}  // namespace lockstep::tools
