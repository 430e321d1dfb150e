// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_inputs.h"

#include <algorithm>
#include <optional>
#include <set>

#include "passes/cost.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Neighbours of a tensor that read the same element through its views, as the integers of a word do.
int64_t sharedByNeighbours(const Graph& body, ValueId read, const ViewedValue& viewed) {
  const Shape& shape = body.shapeOf(read);
  const IndexExpr offset = linearOffset(viewed.map, shape, body.shapeOf(viewed.base));
  int64_t shared = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    const auto isOfAxis = [&](const IndexTerm& term) { return term.axis < 0 || term.axis == static_cast<int32_t>(axis); };
    if (shape.extent(axis) > 1 && std::ranges::any_of(offset.terms, isOfAxis)) break;
    shared *= shape.extent(axis);
  }
  return shared;
}

}  // namespace

RowInputs findRowInputs(const Graph& body, const RowPhases& phases) {
  const int64_t elements = phases.rows * phases.columns;
  RowInputs found;
  std::set<ValueId> seen;
  std::optional<int64_t> least;
  for (const NodeId id : body.body().nodes) {
    if (std::holds_alternative<ViewLowering>(*body[id].op->lower)) continue;
    for (const ValueId read : body[id].operands) {
      const ViewedValue viewed = throughViews(body, read);
      if (leafName(body.definition(viewed.base)) == nullptr || body.shapeOf(read).elementCount() != elements) continue;
      const int64_t shared = sharedByNeighbours(body, read, viewed), own = body.shapeOf(viewed.base).elementCount() * shared;
      // A scale of many neighbours is few elements.
      if (own < elements || shared > cost::kMostVectorElements || !seen.insert(viewed.base).second) continue;
      const int64_t in_word = shared * elementsPerWord(body.typeOf(viewed.base).dtype);
      least = least ? std::min(*least, in_word) : in_word;
      if (own == elements) ++found.full;
    }
  }
  found.per_register = least.value_or(1);
  return found;
}

}  // namespace lockstep::passes
