// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/join_columns.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"
#include "passes/schedule/choose_plan.h"
#include "passes/schedule/group_body.h"
#include "passes/schedule/row_phases.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool isGroup(const Graph& graph, NodeId id, GroupKind kind) {
  return std::holds_alternative<RegionLowering>(*graph[id].op->lower) && kindOf(graph[id]) == kind;
}

/// The rows and columns of a group.
struct Space {
  int64_t rows = 0, columns = 0;
  friend bool operator==(const Space&, const Space&) = default;
};

/// Of a group of columns all of whose reductions are over blocks of rows, enough of them to keep every unit busy: a workgroup goes over the
/// rows of its block one after the other.
std::optional<Space> blocksOf(const Graph& graph, NodeId group, int64_t units) {
  const Graph body = groupBody(graph, graph[group]);
  std::optional<Space> space;
  for (const NodeId id : body.body().nodes) {
    if (!std::holds_alternative<ReduceLowering>(*body[id].op->lower)) continue;
    const std::optional<ColumnPart> part = columnPart(body, id);
    if (!part || part->parts <= units) return std::nullopt;
    const Space own{body.shapeOf(part->source).elementCount() / part->columns, part->columns};
    if (space && *space != own) return std::nullopt;
    space = own;
  }
  return space;
}

Space rowsOf(const Graph& graph, NodeId group) {
  const RowPhases phases = findRowPhases(groupBody(graph, graph[group]));
  return {phases.rows, phases.columns};
}

/// Both groups as one at the place of `rows`; nothing where `columns` needs what is made after it, or where the parts are too many for a
/// kernel or not kept in registers.
class Join {
 public:
  Join(const Graph& graph, const JoinConfig& config, NodeId rows, NodeId columns)
      : graph_(graph), config_(config), rows_(rows), columns_(columns) {}

  std::optional<Graph> joined() {
    if (!comesInTime()) return std::nullopt;
    Graph out = graph_;
    Node merged = out[rows_];
    const Node& other = graph_[columns_];
    const RegionId region = merged.regions.front();
    std::map<ValueId, ValueId> inside;  // results of the rows, as the group makes them
    for (size_t i = 0; i < merged.results.size(); ++i) inside[merged.results[i]] = graph_[region].yields[i];
    const auto isKnown = [&](ValueId value) {
      return inside.contains(value) || std::ranges::find(merged.operands, value) != merged.operands.end();
    };
    for (const ValueId operand : other.operands) {
      if (isKnown(operand)) continue;
      if (const ValueId source = throughShapes(graph_, operand); isKnown(source)) {
        inside[operand] = viewInside(out, out.regions[region.index()].nodes, operand, inside.contains(source) ? inside.at(source) : source);
      } else {
        merged.operands.push_back(operand);
      }
    }
    for (const NodeId id : graph_[other.regions.front()].nodes) {
      out.regions[region.index()].nodes.push_back(id);
      for (ValueId& operand : out.nodes[id.index()].operands) {
        if (const auto found = inside.find(operand); found != inside.end()) operand = found->second;
      }
    }
    merged.results.clear();
    std::vector<ValueId> yields;
    const std::set<ValueId> kept = usedElsewhere();
    const auto take = [&](const Node& from) {
      for (size_t i = 0; i < from.results.size(); ++i) {
        if (!kept.contains(from.results[i])) continue;
        out.values[from.results[i].index()].node = rows_;
        out.values[from.results[i].index()].result = static_cast<uint32_t>(merged.results.size());
        merged.results.push_back(from.results[i]);
        yields.push_back(graph_[from.regions.front()].yields[i]);
      }
    };
    take(graph_[rows_]);
    take(other);
    out.regions[region.index()].yields = std::move(yields);
    out.nodes[rows_.index()] = std::move(merged);
    std::erase(out.regions.front().nodes, columns_);
    return isHeld(out) ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  /// Whether all that the columns read is made by the rows or before them.
  [[nodiscard]] bool comesInTime() const {
    std::set<NodeId> before;
    for (const NodeId id : graph_.body().nodes) {
      before.insert(id);
      if (id == rows_) break;
    }
    return std::ranges::all_of(graph_[columns_].operands,
                               [&](ValueId operand) { return before.contains(graph_[throughShapes(graph_, operand)].node); });
  }

  /// Results of both that others read.
  [[nodiscard]] std::set<ValueId> usedElsewhere() const {
    std::set<ValueId> used;
    for (const NodeId id : graph_.body().nodes) {
      if (id != columns_) used.insert(graph_[id].operands.begin(), graph_[id].operands.end());
    }
    for (const Output& output : graph_.outputs) used.insert(output.value);
    return used;
  }

  [[nodiscard]] bool isHeld(const Graph& out) const {
    const Node& group = out[rows_];
    if (group.operands.size() + group.results.size() > config_.profile.max_storage_buffers) return false;
    const Graph body = groupBody(out, group);
    const Result<PlanChoice> choice = choosePlan({body, GroupKind::Rows, config_.profile, config_.templates, &config_.measured});
    return choice.ok();
  }

  const Graph& graph_;
  const JoinConfig& config_;
  NodeId rows_, columns_;
};

/// Groups of rows of this space, the one that has most of what the columns read first.
std::vector<NodeId> candidates(const Graph& graph, NodeId columns, const Space& space) {
  std::vector<std::pair<int64_t, NodeId>> found;
  for (const NodeId id : graph.body().nodes) {
    if (!isGroup(graph, id, GroupKind::Rows)) continue;
    std::set<ValueId> known(graph[id].operands.begin(), graph[id].operands.end());
    known.insert(graph[id].results.begin(), graph[id].results.end());
    const int64_t shared = std::ranges::count_if(graph[columns].operands, [&](ValueId operand) {
      return known.contains(throughShapes(graph, operand)) && graph.shapeOf(operand).elementCount() == space.rows * space.columns;
    });
    if (shared > 0 && rowsOf(graph, id) == space) found.emplace_back(shared, id);
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& candidate) { return candidate.first; });
  std::vector<NodeId> groups;
  for (const auto& [shared, id] : found) groups.push_back(id);
  return groups;
}

}  // namespace

Graph joinColumns(Graph graph, const JoinConfig& config) {
  for (const NodeId columns : std::vector(graph.body().nodes)) {
    if (!isGroup(graph, columns, GroupKind::Columns)) continue;
    const std::optional<Space> space = blocksOf(graph, columns, config.profile.parallel_units);
    if (!space) continue;
    for (const NodeId rows : candidates(graph, columns, *space)) {
      std::optional<Graph> joined = Join(graph, config, rows, columns).joined();
      if (!joined) continue;
      graph = std::move(*joined);
      break;
    }
  }
  return graph;
}

}  // namespace lockstep::passes
