// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/own_rows.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// The value that a cache of 16 bits is widened from; the cache itself where it is not.
ValueId storedCache(const Graph& graph, ValueId cache) {
  static const OpDef* const cast = &op("cast");
  const Node& node = graph.definition(cache);
  return node.op == cast && byteSize(graph.typeOf(node.operands[0]).dtype) == 2 ? node.operands[0] : cache;
}

/// The node that writes rows of this value along the axis before the last one; null where it is made otherwise.
const Node* rowWriter(const Graph& graph, ValueId attended) {
  const ValueId cache = storedCache(graph, attended);
  const Node& node = graph.definition(cache);
  const auto* update = std::get_if<AliasUpdate>(&*node.op->alias);
  if (update == nullptr || !update->at_index) return nullptr;
  const auto rank = static_cast<int64_t>(graph.shapeOf(cache).rank());
  return node.attributes.get<int64_t>("axis") == rank - 2 && graph.typeOf(attended).dtype == DType::F32 ? &node : nullptr;
}

/// Whether all elements of a value are this number.
bool isFilledWith(const Graph& graph, ValueId value, double number) {
  const Node& node = graph.definition(throughViews(graph, value).base);
  const Attribute* constant = node.operands.empty() ? node.attributes.find("value") : nullptr;
  return constant != nullptr && std::get<double>(*constant) == number;
}

/// Whether `length` is `at` + `rows`, for each sequence.
bool endsWithRows(const Graph& graph, ValueId length, ValueId at, int64_t rows) {
  static const OpDef* const add = &op("add");
  const Node& node = graph.definition(length);
  if (node.op != add || graph.shapeOf(length) != graph.shapeOf(at)) return false;
  const auto is = [&](size_t place, size_t count) {
    return node.operands[place] == at && isFilledWith(graph, node.operands[count], static_cast<double>(rows));
  };
  return is(0, 1) || is(1, 0);
}

std::optional<std::vector<ValueId>> withOwnRows(const Graph& graph, const Node& node) {
  constexpr size_t kPlain = 4;
  static const OpDef* const attend = &op("attend_cache");
  if (node.op != attend || node.operands.size() != kPlain) return std::nullopt;
  const Node *keys = rowWriter(graph, node.operands[1]), *values = rowWriter(graph, node.operands[2]);
  if (keys == nullptr || values == nullptr || keys->operands[2] != values->operands[2]) return std::nullopt;
  const Shape& q = graph.shapeOf(node.operands[0]);
  const int64_t queries = q.extent(q.rank() - 2);
  const auto isOfQueries = [&](const Node* writer) {
    const Shape& rows = graph.shapeOf(writer->operands[1]);
    return rows.extent(rows.rank() - 2) == queries;
  };
  if (!isOfQueries(keys) || !isOfQueries(values) || !endsWithRows(graph, node.operands[3], keys->operands[2], queries)) return std::nullopt;
  return std::vector<ValueId>{node.operands[0], keys->operands[0], values->operands[0],
                              node.operands[3], keys->operands[1], values->operands[1]};
}

}  // namespace

Graph ownRows(const Graph& graph) {
  std::map<NodeId, std::vector<ValueId>> changed;
  for (const NodeId id : graph.body().nodes) {
    if (auto operands = withOwnRows(graph, graph[id])) changed.emplace(id, std::move(*operands));
  }
  if (changed.empty()) return graph;
  // Whatever else reads a cache needs it written, and the queries may need that: then attention cannot come before.
  const auto readBy = [&](const auto& counts) {
    std::set<ValueId> read;
    for (const NodeId id : graph.body().nodes) {
      if (counts(id)) read.insert(graph[id].operands.begin(), graph[id].operands.end());
    }
    return read;
  };
  const std::set<ValueId> attended = readBy([&](NodeId id) { return !changed.contains(id); });
  const std::set<ValueId> read = readBy([&](NodeId id) {
    const ValueId result = graph[id].results[0];
    const bool only_widens = storedCache(graph, result) != result && !attended.contains(result);
    return !changed.contains(id) && !only_widens;
  });
  const auto isRead = [&](ValueId cache) { return attended.contains(cache) || read.contains(storedCache(graph, cache)); };
  Rewriter rewriter(graph);
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const auto found = changed.find(id);
    if (found == changed.end() || isRead(node.operands[1]) || isRead(node.operands[2])) {
      rewriter.copy(node);
      continue;
    }
    Builder& b = rewriter.builder();
    b.setLocation(node.location);
    std::vector<ValueId> operands;
    for (const ValueId operand : found->second) {
      const ValueId mapped = rewriter[operand];
      operands.push_back(byteSize(b.typeOf(mapped).dtype) == 2 ? b.make("cast", {mapped}, {{"dtype", DType::F32}}) : mapped);
    }
    const ValueId made = b.make(*node.op->name, operands, b.addAttributes(graph, node));
    b.name(made, graph[node.results[0]].name);
    rewriter.set(node.results[0], made);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return removeDead(rewriter.take());
}

}  // namespace lockstep::passes
