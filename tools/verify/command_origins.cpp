// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/command_origins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/io/file.h"
#include "frontend/io/regular_file.h"
#include "ir/graph/op_def.h"
#include "passes/stage.h"
#include "tools/explore/explore_groups.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMostStage = uint64_t{256} << 20u;

OpOrigin originOf(const graph::Graph& graph, const graph::Node& node) {
  OpOrigin origin{.op = std::string(*node.op->name), .value = graph::toString(graph.typeOf(node.results.front())), .where = {}};
  if (node.location != 0) origin.where = graph.locations[node.location - 1];
  return origin;
}

bool computes(const graph::Node& node) {
  return !std::holds_alternative<graph::ViewLowering>(*node.op->lower) && graph::leafName(node) == nullptr && *node.op->name != "constant";
}

/// The stage of a dump whose file ends so: "-fuse.located".
std::optional<passes::Form> readStage(const fs::path& folder, const std::string& ending) {
  const Result<std::vector<fs::path>> files = io::listFolder(folder);
  if (!files.ok()) return std::nullopt;
  const auto found = std::ranges::find_if(*files, [&](const fs::path& path) { return path.filename().string().ends_with(ending); });
  if (found == files->end()) return std::nullopt;
  const Result<std::string> text = io::readRegularTextFile(*found, kMostStage);
  if (!text.ok()) return std::nullopt;
  Result<passes::Form> form = passes::parseForm(*text, found->string());
  return form.ok() ? std::optional(std::move(*form)) : std::nullopt;
}

}  // namespace

const OpOrigin* CommandOrigin::makerOf(program::BufferId buffer) const {
  if (const auto found = made.find(buffer); found != made.end()) return &found->second;
  const auto placed = std::find_if(ops.rbegin(), ops.rend(), [](const OpOrigin& one) { return one.where.known(); });
  if (placed != ops.rend()) return &*placed;
  return ops.empty() ? nullptr : &ops.back();
}

std::vector<CommandOrigin> originsOf(const graph::Graph& grouped, const program::Program& scheduled, const program::Program& last) {
  std::vector<CommandOrigin> origins(last.commands.size());
  const std::vector<GroupPlace> places = placeGroups(grouped, scheduled, last);
  size_t number = 0;
  for (const graph::NodeId id : grouped.body().nodes) {
    const graph::Node& node = grouped[id];
    const bool group = !node.regions.empty(), kernel = std::holds_alternative<graph::KernelLowering>(*node.op->lower);
    if (!group && !kernel) continue;
    const GroupPlace& place = places[number++];
    for (const size_t command : place.commands) {
      CommandOrigin& origin = origins[command];
      if (kernel) {
        origin.ops.push_back(originOf(grouped, node));
        continue;
      }
      const graph::Region& region = grouped[node.regions.front()];
      for (const graph::NodeId member : region.nodes) {
        if (computes(grouped[member])) origin.ops.push_back(originOf(grouped, grouped[member]));
      }
      for (size_t i = 0; i < place.buffers.size() && i < region.yields.size(); ++i) {
        if (place.buffers[i].valid()) origin.made.emplace(place.buffers[i], originOf(grouped, grouped.definition(region.yields[i])));
      }
    }
  }
  return origins;
}

std::vector<CommandOrigin> originsFrom(const fs::path& folder, const program::Program& last) {
  const std::optional<passes::Form> grouped = readStage(folder, "-fuse.located"), scheduled = readStage(folder, "-schedule.program");
  const bool there =
      grouped && scheduled && std::holds_alternative<graph::Graph>(*grouped) && std::holds_alternative<program::Program>(*scheduled);
  if (!there) return std::vector<CommandOrigin>(last.commands.size());
  return originsOf(std::get<graph::Graph>(*grouped), std::get<program::Program>(*scheduled), last);
}

std::vector<std::string> placesOf(const CommandOrigin& origin) {
  std::vector<std::pair<std::string, std::vector<std::string>>> places;
  for (const OpOrigin& one : origin.ops) {
    const std::string where = one.where.known() ? fmt::format("{}:{}:{}", one.where.file, one.where.line, one.where.column) : "";
    auto found = std::ranges::find(places, where, &std::pair<std::string, std::vector<std::string>>::first);
    if (found == places.end()) found = places.insert(places.end(), {where, {}});
    if (std::ranges::find(found->second, one.op) == found->second.end()) found->second.push_back(one.op);
  }
  std::vector<std::string> lines;
  for (const auto& [where, ops] : places)
    lines.push_back(fmt::format("{} {}", fmt::join(ops, ", "), where.empty() ? "of the compiler" : "at " + where));
  return lines;
}

}  // namespace lockstep::tools
