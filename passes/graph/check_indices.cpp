// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/check_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "ir/graph/builder.h"

namespace lockstep::passes {

using namespace graph;

namespace {

using Ranges = std::vector<std::optional<IntegerRange>>;

/// Every element of the result is one of operand 0.
bool keepsElements(const Graph& graph, const Node& node) {
  if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) return view->map(graph, node).guards.empty();
  return std::holds_alternative<AliasView>(*node.op->alias);
}

/// What is known of each integer value.
Ranges rangesOf(const Graph& graph) {
  Ranges ranges(graph.values.size());
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    Ranges operands;
    for (ValueId operand : node.operands) operands.push_back(ranges[operand.index()]);
    for (ValueId result : node.results) ranges[result.index()] = graph::rangeOf(graph.typeOf(result).dtype);
    if (keepsElements(graph, node)) {
      ranges[node.results[0].index()] = operands[0];
    } else if (node.op->range != nullptr) {
      const Ranges results = node.op->range({graph, node, operands});
      for (size_t i = 0; i < results.size(); ++i) {
        if (!isFloat(graph.typeOf(node.results[i]).dtype)) ranges[node.results[i].index()] = results[i];
      }
    }
  }
  return ranges;
}

/// Which nodes an output depends on.
std::vector<bool> usedNodes(const Graph& graph) {
  std::vector<bool> used(graph.nodes.size(), false);
  for (const Output& output : graph.outputs) used[graph[output.value].node.index()] = true;
  const std::vector<NodeId>& nodes = graph.body().nodes;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!used[nodes[i].index()]) continue;
    for (ValueId operand : graph[nodes[i]].operands) used[graph[operand].node.index()] = true;
  }
  return used;
}

/// Where the elements of an index come from through views that keep all of them; an invalid value where a gradient uses it again.
ValueId sourceOf(const Graph& graph, ValueId index) {
  for (;;) {
    const Node& node = graph.definition(index);
    if (node.attributes.find("of_gradient") != nullptr) return {};
    if (!keepsElements(graph, node)) return index;
    if (graph.shapeOf(node.operands[0]).elementCount() != graph.shapeOf(index).elementCount()) return index;
    index = node.operands[0];
  }
}

/// What gradients that an output depends on use again.
std::set<ValueId> usedByGradients(const Graph& graph, const std::vector<bool>& used) {
  std::set<ValueId> sources;
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (used[id.index()] && node.attributes.find("of_gradient") != nullptr) sources.insert(sourceOf(graph, node.operands[0]));
  }
  return sources;
}

bool isInside(const std::optional<IntegerRange>& known, const IndexUse& wanted) {
  return known && known->lo >= 0 && known->hi < wanted.extent;
}

}  // namespace

std::vector<IndexCheck> findIndexChecks(const Graph& graph) {
  const Ranges ranges = rangesOf(graph);
  const std::vector<bool> used = usedNodes(graph);
  const std::set<ValueId> of_gradients = usedByGradients(graph, used);
  std::set<std::tuple<ValueId, int64_t, std::optional<int64_t>>> known;  // index, extent, what is ignored
  std::vector<IndexCheck> checks;
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (node.op->index == nullptr) continue;
    IndexCheck check{{}, id, node.op->index(graph, node)};
    const ValueId operand = node.operands[check.range.operand];
    // A loss may be there for its gradient alone.
    if (!used[id.index()] && !of_gradients.contains(sourceOf(graph, operand))) continue;
    check.index = sourceOf(graph, operand);
    if (check.range.ignored && !std::in_range<int32_t>(*check.range.ignored)) check.range.ignored.reset();  // no element is it
    if (!check.index.valid() || isInside(ranges[operand.index()], check.range)) continue;
    if (known.emplace(check.index, check.range.extent, check.range.ignored).second) checks.push_back(check);
  }
  return checks;
}

bool isGiven(const Graph& graph, const IndexCheck& check) { return leafKind(graph.definition(check.index)) == LeafKind::Input; }

std::string indexRowName(size_t number) { return fmt::format("index.{}{}", number, kCheckRow); }
std::string indexValueName(size_t number) { return fmt::format("index.{}{}", number, kCheckValue); }

bool isIndexRow(std::string_view output) { return output.ends_with(kCheckRow); }

namespace {

/// What all checks of an input agree on.
struct InputRange {
  int64_t below = std::numeric_limits<int64_t>::max();
  std::optional<int64_t> ignored;
};

/// An element that one check ignores must be right for the others too.
InputRange rangeOf(const std::vector<IndexCheck>& checks, ValueId index) {
  InputRange range;
  const auto isRight = [&](int64_t element) {
    return std::ranges::all_of(checks, [&](const IndexCheck& check) {
      return check.index != index || check.range.ignored == element || (element >= 0 && element < check.range.extent);
    });
  };
  for (const IndexCheck& check : checks) {
    if (check.index != index) continue;
    range.below = std::min(range.below, check.range.extent);
    if (check.range.ignored && isRight(*check.range.ignored)) range.ignored = check.range.ignored;
  }
  return range;
}

}  // namespace

Result<Graph> checkIndices(const Graph& graph) {
  const std::vector<IndexCheck> checks = findIndexChecks(graph);
  Builder b(graph);
  for (const IndexCheck& check : checks) {
    if (!isGiven(graph, check)) continue;
    const InputRange range = rangeOf(checks, check.index);
    Attributes& attributes = b.mutableGraph().nodes[graph[check.index].node.index()].attributes;
    attributes.set("below", range.below);
    if (range.ignored) attributes.set("ignored", *range.ignored);
  }
  for (size_t i = 0; i < checks.size(); ++i) {
    const IndexCheck& check = checks[i];
    if (isGiven(graph, check)) continue;
    b.setLocation(graph[check.user].location);
    const int64_t count = graph.shapeOf(check.index).elementCount();
    const ValueId index = b.reshape(check.index, Shape{count});
    const TensorType integers{DType::I32, Shape{count}}, words{DType::U32, Shape{count}};
    // A negative index is a large u32.
    const ValueId word = b.make("cast", {index}, {{"dtype", DType::U32}});
    ValueId outside = b.make("greater_equal", {word, b.constant(static_cast<double>(check.range.extent), words)});
    if (check.range.ignored) {
      const ValueId ignored = b.constant(static_cast<double>(*check.range.ignored), integers);
      outside = b.make("logical_and", {outside, b.make("not_equal", {index, ignored})});
    }
    const ValueId position = b.make("arange", {}, {{"n", count}, {"dtype", DType::I32}});
    const ValueId candidate = b.make("where", {outside, position, b.constant(kNoRow, integers)});
    const ValueId row = b.make("reduce_min", {candidate}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
    const TensorType one{DType::I32, Shape{1}};
    const ValueId place = b.make("min", {row, b.constant(static_cast<double>(count - 1), one)});
    const ValueId value = b.make("take_along_axis", {index, place}, {{"axis", int64_t{0}}});
    b.output(OutputKind::Check, indexRowName(i), b.reshape(row, Shape{}));
    b.output(OutputKind::Check, indexValueName(i), b.reshape(value, Shape{}));
  }
  b.setLocation(0);
  return b.take();
}

}  // namespace lockstep::passes
