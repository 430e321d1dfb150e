// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/index_map.h"

#include <algorithm>
#include <limits>

#include "ir/support/diagnostic.h"

namespace lockstep::graph {
namespace {

IndexExpr scaled(IndexExpr expr, int64_t factor) {
  for (IndexTerm& term : expr.terms) term.coefficient *= factor;
  expr.offset *= factor;
  if (factor == 0) expr.terms.clear();
  return expr;
}

void append(IndexExpr& sum, const IndexExpr& expr) {
  sum.offset += expr.offset;
  for (const IndexTerm& term : expr.terms) {
    // Equal atoms merge, so that x/4*4 + x%4 style sums stay short and comparable.
    auto same = std::find_if(sum.terms.begin(), sum.terms.end(), [&](const IndexTerm& t) {
      return t.axis == term.axis && t.inner == term.inner && t.divide == term.divide && t.modulo == term.modulo;
    });
    if (same == sum.terms.end()) {
      sum.terms.push_back(term);
    } else {
      same->coefficient += term.coefficient;
      if (same->coefficient == 0) sum.terms.erase(same);
    }
  }
}

IndexExpr substitute(const IndexExpr& expr, const std::vector<IndexExpr>& axes, const Shape& axis_extents) {
  IndexExpr out;
  out.offset = expr.offset;
  for (const IndexTerm& term : expr.terms) {
    IndexExpr atom = term.axis >= 0 ? axes[static_cast<size_t>(term.axis)] : substitute(term.inner.front(), axes, axis_extents);
    if (term.divide != 1 || term.modulo != 0) {
      int64_t bound = term.axis >= 0 ? axis_extents.extent(static_cast<size_t>(term.axis)) : std::numeric_limits<int64_t>::max();
      atom = divMod(atom, bound, term.divide, term.modulo);
    }
    append(out, scaled(atom, term.coefficient));
  }
  return out;
}

/// Axes of a result and of the source of a reshape that hold equally many elements, in the same order.
struct AxisGroup {
  size_t result_begin = 0, result_end = 0;
  size_t source_begin = 0, source_end = 0;
};

/// Cuts both shapes from the front wherever the products of their extents agree: [6, 4] from [2, 3, 4] is {6 from 2 * 3} and {4 from 4}.
/// An index into the one group says nothing about the other.
std::vector<AxisGroup> axisGroups(const Shape& result, const Shape& source) {
  std::vector<AxisGroup> groups;
  size_t r = 0, s = 0;
  while (s < source.rank()) {
    AxisGroup group{.result_begin = r, .source_begin = s};
    int64_t result_count = 1, source_count = source.extent(s++);
    while (result_count != source_count) {
      const bool grow_result = result_count < source_count;
      if (grow_result ? r >= result.rank() : s >= source.rank()) internalError("reshape of different element counts");
      if (grow_result) {
        result_count *= result.extent(r++);
      } else {
        source_count *= source.extent(s++);
      }
    }
    group.result_end = r;
    group.source_end = s;
    groups.push_back(group);
  }
  return groups;
}

/// The row-major position within the axes [begin, end) of a shape. Axes of one element add nothing.
std::vector<IndexTerm> linearIndex(const Shape& shape, size_t begin, size_t end) {
  std::vector<IndexTerm> terms;
  int64_t stride = 1;
  for (size_t axis = end; axis-- > begin;) {
    if (shape.extent(axis) != 1) terms.push_back({.coefficient = stride, .axis = static_cast<int32_t>(axis), .inner = {}});
    stride *= shape.extent(axis);
  }
  std::ranges::reverse(terms);
  return terms;
}

/// The largest value of a sum of axes of the shape.
int64_t largestOf(const std::vector<IndexTerm>& terms, const Shape& shape) {
  int64_t largest = 0;
  for (const IndexTerm& term : terms) largest += term.coefficient * (shape.extent(static_cast<size_t>(term.axis)) - 1);
  return largest;
}

/// (linear / below) % extent: the place along one source axis. Says it without division or remainder where that is exact.
IndexExpr digitOf(std::vector<IndexTerm> linear, const Shape& result, int64_t below, int64_t extent) {
  // A multiple of below * extent adds whole rounds of the axis, which the remainder takes away.
  std::erase_if(linear, [&](const IndexTerm& term) { return term.coefficient % (below * extent) == 0; });
  // What is no multiple of `below` can be left out when all of it together stays under `below`: the division drops it.
  std::vector<IndexTerm> whole, rest;
  for (const IndexTerm& term : linear) (term.coefficient % below == 0 ? whole : rest).push_back(term);
  if (largestOf(rest, result) >= below) return divMod({.terms = linear}, largestOf(linear, result) + 1, below, extent);
  for (IndexTerm& term : whole) term.coefficient /= below;
  return divMod({.terms = whole}, largestOf(whole, result) + 1, 1, extent);
}

}  // namespace

IndexExpr axisExpr(int32_t axis, int64_t coefficient) {
  IndexExpr expr;
  expr.terms.push_back({.coefficient = coefficient, .axis = axis, .inner = {}});
  return expr;
}

IndexExpr divMod(const IndexExpr& inner, int64_t bound, int64_t divide, int64_t modulo) {
  if (modulo == 1) return {};
  if (modulo != 0 && bound != std::numeric_limits<int64_t>::max() && bound <= divide * modulo) modulo = 0;
  if (bound <= divide) return {};
  if (divide == 1 && modulo == 0) return inner;
  if (inner.terms.empty()) {
    IndexExpr out;
    out.offset = inner.offset / divide;
    if (modulo != 0) out.offset %= modulo;
    return out;
  }
  // A sum of multiples of divide plus a remainder that stays below it divides exactly: that is the common case of merged axes, which the
  // callers keep apart; here the general form is enough.
  IndexTerm term{.coefficient = 1, .axis = -1, .inner = {inner}, .divide = divide, .modulo = modulo};
  const IndexTerm& only = inner.terms.front();
  if (inner.terms.size() == 1 && inner.offset == 0 && only.coefficient == 1 && only.modulo == 0 && only.axis >= 0) {
    term.axis = only.axis;
    term.inner.clear();
    term.divide = divide * only.divide;
  }
  IndexExpr out;
  out.terms.push_back(std::move(term));
  return out;
}

IndexMap identityMap(size_t rank) {
  IndexMap map;
  for (size_t i = 0; i < rank; ++i) map.source.push_back(axisExpr(static_cast<int32_t>(i)));
  return map;
}

IndexMap reshapeMap(const Shape& result, const Shape& source) {
  IndexMap map;
  map.source.resize(source.rank());
  for (const AxisGroup& group : axisGroups(result, source)) {
    const std::vector<IndexTerm> linear = linearIndex(result, group.result_begin, group.result_end);
    int64_t below = 1;  // elements of one step along the source axis
    for (size_t axis = group.source_end; axis-- > group.source_begin;) {
      const int64_t extent = source.extent(axis);
      if (extent != 1) map.source[axis] = digitOf(linear, result, below, extent);
      below *= extent;
    }
  }
  return map;
}

IndexMap compose(const IndexMap& outer, const IndexMap& inner, const Shape& middle) {
  IndexMap map;
  map.guards = outer.guards;
  map.fill = outer.fill;
  for (const IndexExpr& expr : inner.source) map.source.push_back(substitute(expr, outer.source, middle));
  for (const IndexGuard& guard : inner.guards) {
    if (!outer.guards.empty() && outer.fill != inner.fill) internalError("composing guarded views with different fills");
    map.guards.push_back({substitute(guard.expr, outer.source, middle), guard.lo, guard.hi});
    map.fill = inner.fill;
  }
  return map;
}

int64_t evaluate(const IndexExpr& expr, const std::vector<int64_t>& index) {
  int64_t sum = expr.offset;
  for (const IndexTerm& term : expr.terms) {
    int64_t atom = term.axis >= 0 ? index[static_cast<size_t>(term.axis)] : evaluate(term.inner.front(), index);
    atom /= term.divide;
    if (term.modulo != 0) atom %= term.modulo;
    sum += term.coefficient * atom;
  }
  return sum;
}

}  // namespace lockstep::graph
