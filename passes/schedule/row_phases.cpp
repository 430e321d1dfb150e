// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_phases.h"

#include <algorithm>

#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;

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
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    bool full = out.columns != 1 && body.shapeOf(body.outputs[i].value).elementCount() != out.rows;
    (full ? out.full_results : out.row_results).push_back(i);
  }
  return out;
}

}  // namespace lockstep::passes
