// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_inputs.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "passes/cost.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool isOfAxis(const IndexTerm& term, size_t axis) { return term.axis < 0 || term.axis == static_cast<int32_t>(axis); }

/// Of the last axes that a view repeats its elements along.
int64_t repeated(const Shape& shape, const IndexExpr& offset) {
  int64_t shared = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    if (shape.extent(axis) > 1 && std::ranges::any_of(offset.terms, [&](const IndexTerm& term) { return isOfAxis(term, axis); })) break;
    shared *= shape.extent(axis);
  }
  return shared;
}

}  // namespace

int64_t sharedByNeighbours(const Graph& body, ValueId value) {
  const ViewedValue viewed = throughViews(body, value);
  const Shape& shape = body.shapeOf(value);
  const IndexExpr offset = linearOffset(viewed.map, shape, body.shapeOf(viewed.base));
  int64_t shared = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    int64_t same = 0;  // of this axis; 0: all of it
    for (const IndexTerm& term : offset.terms) {
      if (isOfAxis(term, axis)) same = std::gcd(same, term.axis < 0 ? 1 : term.divide);
    }
    if (same != 0 && shape.extent(axis) % same != 0) same = 1;
    if (shape.extent(axis) == 1) same = 0;
    shared *= same == 0 ? shape.extent(axis) : same;
    if (same != 0) break;
  }
  return shared;
}

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
      const int64_t shared = repeated(body.shapeOf(read), linearOffset(viewed.map, body.shapeOf(read), body.shapeOf(viewed.base))),
                    own = body.shapeOf(viewed.base).elementCount() * shared;
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
