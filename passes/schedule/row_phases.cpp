// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_phases.h"

#include <algorithm>

#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
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
      if (out.phases.size() <= phase) out.phases.resize(phase + 1);
      out.phases[phase].push_back(id);
      ++phase;
    }
    out.phase_of[id.index()] = phase;
  }
  out.once_per_row = findRowValues(body, out);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    bool full = out.columns != 1 && body.shapeOf(body.outputs[i].value).elementCount() != out.rows;
    (full ? out.full_results : out.row_results).push_back(i);
  }
  return out;
}

}  // namespace lockstep::passes
