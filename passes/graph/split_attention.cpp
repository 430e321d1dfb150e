// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/split_attention.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/graph/rewrite.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/split_plan.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Workgroups per row of a template that takes the rows one by one; 1: they stay whole.
int64_t sharesOf(const TemplateShape& shape, int64_t seen, const program::DeviceProfile& profile) {
  const program::SplitPlan plan = splitPlan(shape, profile);
  const int64_t turns = divideUp(seen, plan.lanes / plan.across * plan.block);
  if (turns < cost::kManySplitTurns) return 1;
  return std::clamp<int64_t>(profile.parallel_units / shape.rows, 1, std::min(turns / cost::kLeastTurnsOfShare, cost::kMostKeyShares));
}

}  // namespace

Graph splitAttention(const Graph& graph, const SplitAttentionConfig& config) {
  static const OpDef* const attend = &op("attend_cache");
  const auto isWhole = [&](NodeId id) { return graph[id].op == attend && graph[id].attributes.find("shares") == nullptr; };
  if (std::ranges::none_of(graph.body().nodes, isWhole)) return graph;
  Rewriter rewriter(graph);
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (!isWhole(id)) {
      rewriter.copy(node);
      continue;
    }
    const TemplateShape shape = std::get<TemplateLowering>(*node.op->lower).shape(graph, node);
    const Attribute* window = node.attributes.find("window");
    const int64_t of_window = window == nullptr ? 0 : std::get<int64_t>(*window);
    const int64_t seen = of_window == 0 ? shape.length : std::min(shape.length, of_window);
    const int64_t shares = sharesOf(shape, seen, config.profile);
    if (shares == 1) {
      rewriter.copy(node);
      continue;
    }
    Builder& b = rewriter.builder();
    b.setLocation(node.location);
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(rewriter[operand]);
    Attributes attributes = b.addAttributes(graph, node);
    attributes.set("shares", shares);
    const ValueId joined = b.make("join_shares", {b.make(*node.op->name, operands, attributes)}, {{"shares", shares}});
    b.name(joined, graph[node.results[0]].name);
    rewriter.set(node.results[0], joined);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
