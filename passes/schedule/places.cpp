// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/graph/group_kind.h"
#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"
#include "passes/schedule/in_place.h"

namespace lockstep::passes {

using namespace graph;
using program::ArenaRole;
using program::BufferId;
using program::Range;

namespace {

std::vector<uint32_t> words(const Constant& constant) {
  const DType dtype = constant.type.dtype;
  const auto per_word = static_cast<size_t>(elementsPerWord(dtype));
  const auto bits = static_cast<uint32_t>(8 * byteSize(dtype));
  std::vector<uint32_t> out((constant.data.size() + per_word - 1) / per_word);
  for (size_t i = 0; i < constant.data.size(); ++i) {
    out[i / per_word] |= encodeElement(dtype, constant.data[i]) << (i % per_word * bits);
  }
  return out;
}

bool overlap(const Range& a, const Range& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}

/// How often nodes and outputs read each leaf and each result of a group, through slices or not.
std::map<ValueId, size_t> countUses(const Places& places, const Graph& graph) {
  std::map<ValueId, size_t> counts;
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (std::holds_alternative<ViewLowering>(*node.op->lower)) continue;
    for (ValueId operand : node.operands) ++counts[places.root(operand)];
  }
  for (const Output& output : graph.outputs) ++counts[places.root(output.value)];
  return counts;
}

}  // namespace

Places::Places(const Graph& graph, const ScheduleConfig& config, const std::set<ValueId>& copied, program::Program& program)
    : graph_(graph), config_(config), copied_(copied), program_(program) {
  if (config.profile.whole_buffer_access) uses_ = countUses(*this, graph);
  placeLeaves();
  placeUpdates();
  placePacks();
  placeOutputs();
}

const std::vector<PendingCopy>& Places::copiesFor(ValueId made) const {
  static const std::vector<PendingCopy> kNone;
  const auto found = copies_.find(made);
  return found == copies_.end() ? kNone : found->second;
}

BufferId Places::newBuffer(std::string name, const TensorType& type, ArenaRole role, double initial) {
  program_.buffers.push_back({std::move(name), type, role, {}, 0, type.byteSize(), initial});
  return BufferId(program_.buffers.size() - 1);
}

ValueId Places::root(ValueId value) const {
  while (std::holds_alternative<ViewLowering>(*graph_.definition(value).op->lower)) value = graph_.definition(value).operands[0];
  return value;
}

ValueId Places::storageOf(ValueId value) {
  value = root(value);
  const Node& node = graph_.definition(value);
  if (!std::holds_alternative<AliasUpdate>(*node.op->alias)) return value;
  if (const auto found = storage_.find(value); found != storage_.end()) return found->second;
  const ValueId leaf = storageOf(node.operands[0]);
  return storage_[value] = leaf;
}

Place Places::of(ValueId value) {
  if (auto found = places_.find(value); found != places_.end()) return found->second;
  const Node& node = graph_.definition(value);
  Place place;
  if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
    int64_t start = 0;
    if (!isContiguousSlice(view->map(graph_, node), graph_.shapeOf(value), graph_.shapeOf(node.operands[0]),
                           sliceAlignment(graph_.typeOf(value).dtype), start)) {
      internalError(fmt::format("schedule met the view '{}' outside a group", *node.op->name));
    }
    place = of(node.operands[0]);
    place.offset += static_cast<uint64_t>(start) * byteSize(graph_.typeOf(value).dtype);
  } else if (std::holds_alternative<AliasUpdate>(*node.op->alias) || std::holds_alternative<AliasView>(*node.op->alias)) {
    place = of(node.operands[0]);
  } else {
    place.buffer = newBuffer(graph_[value].name.empty() ? fmt::format("t{}", value.value) : graph_[value].name, graph_.typeOf(value),
                             ArenaRole::Workspace);
  }
  places_[value] = place;
  return place;
}

Range Places::rangeOf(ValueId value, kernel::Access access) {
  Place place = of(value);
  return {place.buffer, place.offset, graph_.typeOf(value).byteSize(), access};
}

void Places::placeLeaves() {
  for (NodeId id : graph_.body().nodes) {
    const Node& node = graph_[id];
    if (!std::holds_alternative<StorageLowering>(*node.op->lower) || !node.operands.empty()) continue;
    ValueId value = node.results[0];
    const TensorType& type = graph_.typeOf(value);
    const LeafKind kind = leafKind(node);
    if (kind == LeafKind::Data) {
      places_[value] = {newBuffer(fmt::format("constant{}", program_.constants.size()), type, ArenaRole::Constant), 0};
      program_.constants.push_back({places_[value].buffer, words(graph_[node.attributes.get<ConstantId>("data")])});
      continue;
    }
    const auto& name = node.attributes.get<std::string>("name");
    if (kind == LeafKind::State) {
      places_[value] = {newBuffer(name, type, ArenaRole::State, node.attributes.get<double>("init")), 0};
      program_.states.push_back({places_[value].buffer});
    } else {
      places_[value] = {newBuffer(name, type, ArenaRole::Input), 0};
      const auto number = [&](std::string_view key) -> std::optional<int64_t> {
        const graph::Attribute* given = node.attributes.find(key);
        return given == nullptr ? std::nullopt : std::optional(std::get<int64_t>(*given));
      };
      program_.inputs.push_back({name, places_[value].buffer, program::BatchSource{number("below"), number("ignored")}});
    }
  }
}

/// Whether a value can be made in the bytes of a pack, an output or a state. Where a dispatch cannot read one part of a buffer and write
/// another, a value that is also used elsewhere is made in the workspace and copied.
bool Places::mayOwn(ValueId value) const {
  const Lowering& lower = *graph_.definition(value).op->lower;
  bool made = std::holds_alternative<RegionLowering>(lower) || std::holds_alternative<KernelLowering>(lower) ||
              std::holds_alternative<LoopLowering>(lower);
  if (!made || places_.contains(value)) return false;
  return !config_.profile.whole_buffer_access || uses_.at(value) == 1;
}

/// Parts of a pack are made in their slices of it. The pack keeps its padding at zero between steps, so it is a state.
void Places::placePacks() {
  for (NodeId id : graph_.body().nodes) {
    const Node& node = graph_[id];
    if (!std::holds_alternative<AliasPack>(*node.op->alias)) continue;
    ValueId pack = node.results[0];
    places_[pack] = {newBuffer(graph_[pack].name.empty() ? "pack" : graph_[pack].name, graph_.typeOf(pack), ArenaRole::State), 0};
    const auto& offsets = node.attributes.get<std::vector<int64_t>>("offsets");
    for (size_t i = 0; i < node.operands.size(); ++i) {
      ValueId part = root(node.operands[i]);
      Place slice{places_[pack].buffer, static_cast<uint64_t>(offsets[i]) * byteSize(graph_.typeOf(pack).dtype)};
      if (mayOwn(part)) {
        places_[part] = slice;
      } else {
        copies_[pack].push_back({node.operands[i], slice});
      }
    }
  }
}

void Places::placeOutputs() {
  for (const Output& output : graph_.outputs) {
    if (output.kind == OutputKind::NextState) continue;
    ValueId value = root(output.value);
    BufferId buffer = newBuffer(output.name, graph_.typeOf(output.value), ArenaRole::Output);
    program_.outputs.push_back({output.name, output.kind, buffer});
    if (mayOwn(value)) {
      places_[value] = {buffer, 0};
    } else {
      output_copies_.push_back({output.value, {buffer, 0}});
    }
  }
}

/// update_slice(state, value): value is made in the state's own bytes when its group does not read them, or is a map that reads each
/// element where it writes it; or when a loop holds it there from the state on.
void Places::placeUpdates() {
  for (NodeId id : graph_.body().nodes) {
    const Node& node = graph_[id];
    const auto* update = std::get_if<AliasUpdate>(&*node.op->alias);
    if (update == nullptr || update->at_index) continue;
    Place target = of(node.operands[0]);
    target.offset += static_cast<uint64_t>(node.attributes.get<int64_t>("offset")) * byteSize(graph_.typeOf(node.operands[0]).dtype);
    ValueId value = root(node.operands[1]);
    Range written{target.buffer, target.offset, graph_.typeOf(node.operands[1]).byteSize(), kernel::Access::ReadWrite};
    const ValueId state = storageOf(node.operands[0]);
    const bool is_bound_there = written.offset % config_.profile.min_offset_alignment == 0;
    const bool is_free = is_bound_there && !copied_.contains(state) && mayOwn(value);
    if (is_free && updatesInPlace(value, state, written)) {
      places_[value] = target;
      in_place_[value] = state;
    } else {
      copies_[node.results[0]].push_back({node.operands[1], target});
    }
  }
}

bool Places::updatesInPlace(ValueId value, ValueId state, const Range& written) {
  const Node& maker = graph_.definition(value);
  std::vector<size_t> old;  // the operands that are made of the bytes that are written
  for (size_t i = 0; i < maker.operands.size(); ++i) {
    if (storageOf(maker.operands[i]) != state) continue;
    Range range = rangeOf(maker.operands[i], kernel::Access::Read);
    if (!overlap(range, written)) continue;
    if (range.offset != written.offset || range.size != written.size) return false;
    old.push_back(i);
  }
  if (std::holds_alternative<LoopLowering>(*maker.op->lower)) {
    const LoopForm loop(maker);
    const size_t place = static_cast<size_t>(std::ranges::find(maker.results, value) - maker.results.begin());
    const bool is_held = place >= loop.carries && place < loop.firstResult();
    return is_held && old == std::vector<size_t>{place} && root(maker.operands[place]) == state;
  }
  if (old.empty()) return true;
  const bool is_map = std::holds_alternative<RegionLowering>(*maker.op->lower) && kindOf(maker) == GroupKind::Map;
  std::set<ValueId> values;
  for (const size_t i : old) values.insert(maker.operands[i]);
  return is_map && readAtOwnPosition(graph_, graph_[maker.regions[0]].nodes, std::move(values));
}

}  // namespace lockstep::passes
