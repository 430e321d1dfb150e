// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_phases.h"

#include <algorithm>

#include "ir/graph/group_kind.h"
#include "passes/cost.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;

namespace {

int64_t mostPerWord(const Graph& body, const std::vector<size_t>& results) {
  int64_t most = 1;
  for (const size_t i : results) most = std::max(most, elementsPerWord(body.typeOf(body.outputs[i].value).dtype));
  return most;
}

}  // namespace

int64_t RowPhases::wordElements(const Graph& body) const { return mostPerWord(body, full_results); }
int64_t RowPhases::rowWordElements(const Graph& body) const { return mostPerWord(body, row_results); }

int64_t RowPhases::mostTogether(const Graph& body) const {
  const bool needs_value = std::ranges::any_of(body.body().nodes, [&](NodeId id) {
    const auto* element = std::get_if<ElementLowering>(&*body[id].op->lower);
    return element != nullptr && !element->cheap && once_per_row[id.index()] && phase_of[id.index()] == 0;
  });
  return areReadOnce() && !needs_value && rowWordElements(body) == 1 ? cost::kMostRowsPerLane : 1;
}

int64_t RowPhases::operationsPerElement(const Graph& body) const {
  return std::ranges::count_if(body.body().nodes, [&](NodeId id) {
    const Node& node = body[id];
    if (std::holds_alternative<ReduceLowering>(*node.op->lower)) return true;
    const bool is_element = std::holds_alternative<ElementLowering>(*node.op->lower) && !once_per_row[id.index()];
    return is_element && body.shapeOf(node.results[0]).elementCount() >= rows * columns;
  });
}

namespace {

std::vector<bool> findRowValues(const Graph& body, const RowPhases& phases) {
  std::vector<bool> found(body.nodes.size(), phases.columns != 1);
  const std::vector<NodeId>& nodes = body.body().nodes;
  // From the last node on, so that users are known; `value` is what a view or an element of one per row makes.
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& user = body[nodes[i]];
    const Shape& shape = body.shapeOf(user.results[0]);
    const auto* view = std::get_if<ViewLowering>(&*user.op->lower);
    const auto* element = std::get_if<ElementLowering>(&*user.op->lower);
    if (shape.elementCount() != phases.rows) found[nodes[i].index()] = false;
    for (const ValueId operand : user.operands) {
      const size_t maker = body[operand].node.index();
      if (body.shapeOf(operand).elementCount() != phases.rows) {
        found[maker] = false;
        continue;
      }
      if (view == nullptr) {
        const bool reads_here = element != nullptr && !element->scalar_only;
        found[maker] = found[maker] && reads_here && found[nodes[i].index()];
        continue;
      }
      const IndexMap map = view->map(body, user);
      const bool is_row = shape.elementCount() == phases.rows
                              ? found[nodes[i].index()] && isLinearIdentity(map, shape, body.shapeOf(operand))
                              : shape.elementCount() == phases.rows * phases.columns &&
                                    laneForm(linearOffset(map, shape, body.shapeOf(operand)), shape, phases.columns) == LaneForm::Same;
      found[maker] = found[maker] && is_row;
    }
  }
  return found;
}

}  // namespace

std::optional<ColumnPart> columnPart(const Graph& body, NodeId reduce) {
  const Node& node = body[reduce];
  const Shape& blocks = body.shapeOf(node.operands[0]);
  const auto& lowering = std::get<ReduceLowering>(*node.op->lower);
  if (blocks.rank() != 3 || lowering.axes(body, node) != std::vector<int64_t>{1}) return std::nullopt;
  ColumnPart part{
      .node = reduce, .source = node.operands[0], .parts = blocks.extent(0), .rounds = blocks.extent(1), .columns = blocks.extent(2)};
  // What fills up is left away, as the kernel knows how many rows there are.
  while (isView(body, part.source)) {
    const Node& view = body.definition(part.source);
    const Shape &shape = body.shapeOf(part.source), &source = body.shapeOf(view.operands[0]);
    const IndexMap map = std::get<ViewLowering>(*view.op->lower).map(body, view);
    const bool fills = map.guards.size() == 1 && map.guards.front() == IndexGuard{axisExpr(0), 0, source.extent(0)} && shape.rank() == 2 &&
                       shape.extent(1) == part.columns && map.source == identityMap(2).source &&
                       map.fill == lowering.neutral(body.typeOf(part.source).dtype);
    if (!fills && !isLinearIdentity(map, shape, source)) break;
    part.source = view.operands[0];
  }
  const int64_t elements = body.shapeOf(part.source).elementCount();
  if (elements % part.columns != 0 || divideUp(elements / part.columns, part.rounds) != part.parts) return std::nullopt;
  return part;
}

RowPhases findRowPhases(const Graph& body) {
  RowPhases out;
  const ReduceSpace space = reduceSpace(body);
  out.rows = space.results;
  out.columns = space.length;
  out.phase_of.assign(body.nodes.size(), 0);
  for (NodeId id : body.body().nodes) {
    size_t phase = 0;
    for (ValueId operand : body[id].operands) phase = std::max(phase, out.phase_of[body[operand].node.index()]);
    if (std::holds_alternative<ReduceLowering>(*body[id].op->lower)) {
      if (!reducesRows(body, body[id])) {
        const std::optional<ColumnPart> part = columnPart(body, id);
        const bool fits = part && part->columns == out.columns && body.shapeOf(part->source).elementCount() == out.rows * out.columns;
        if (!fits || (!out.parts.empty() && out.parts.front().rounds != part->rounds)) {
          out.misplaced = id;
        } else {
          out.parts.push_back(*part);
        }
        out.phase_of[id.index()] = phase;
        continue;
      }
      if (out.phases.size() <= phase) out.phases.resize(phase + 1);
      out.phases[phase].push_back(id);
      ++phase;
    }
    out.phase_of[id.index()] = phase;
  }
  out.once_per_row = findRowValues(body, out);
  out.part_results.resize(out.parts.size());
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const NodeId maker = body[body.outputs[i].value].node;
    if (const auto part = std::ranges::find(out.parts, maker, &ColumnPart::node); part != out.parts.end()) {
      out.part_results[static_cast<size_t>(part - out.parts.begin())] = i;
      continue;
    }
    bool full = out.columns != 1 && body.shapeOf(body.outputs[i].value).elementCount() != out.rows;
    (full ? out.full_results : out.row_results).push_back(i);
  }
  return out;
}

}  // namespace lockstep::passes
