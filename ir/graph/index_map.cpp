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
  // Walk both shapes from the front and cut where the products of extents agree: each such group is independent.
  size_t r = 0, s = 0;
  while (s < source.rank()) {
    size_t r0 = r, s0 = s;
    int64_t pr = 1, ps = source.extent(s++);
    while (pr != ps) {
      if (pr < ps) {
        if (r >= result.rank()) internalError("reshape of different element counts");
        pr *= result.extent(r++);
      } else {
        if (s >= source.rank()) internalError("reshape of different element counts");
        ps *= source.extent(s++);
      }
    }
    // Linear index of the group over the result's axes, then one division and remainder per source axis.
    IndexExpr linear;
    int64_t stride = 1;
    for (size_t i = r; i-- > r0;) {
      if (result.extent(i) != 1) append(linear, axisExpr(static_cast<int32_t>(i), stride));
      stride *= result.extent(i);
    }
    std::reverse(linear.terms.begin(), linear.terms.end());
    int64_t total = ps, below = 1;
    for (size_t i = s; i-- > s0;) {
      int64_t extent = source.extent(i);
      if (extent != 1) {
        // Terms whose stride is a multiple of `below` and of the extents above vanish from the remainder; drop what is exact.
        IndexExpr part = linear;
        int64_t modulus = below * extent;
        if (modulus < total) std::erase_if(part.terms, [&](const IndexTerm& t) { return t.coefficient % modulus == 0; });
        bool divisible = std::all_of(part.terms.begin(), part.terms.end(), [&](const IndexTerm& t) { return t.coefficient % below == 0; });
        int64_t reach = 0;  // largest value of `part`
        for (const IndexTerm& t : part.terms) reach += t.coefficient * (result.extent(static_cast<size_t>(t.axis)) - 1);
        if (divisible) {
          for (IndexTerm& t : part.terms) t.coefficient /= below;
          map.source[i] = divMod(part, reach / below + 1, 1, reach / below < extent ? 0 : extent);
        } else {
          // Low-order terms that stay below `below` cannot carry: drop them when the others are multiples of it.
          int64_t low = 0;
          for (const IndexTerm& t : part.terms) {
            if (t.coefficient % below != 0) low += t.coefficient * (result.extent(static_cast<size_t>(t.axis)) - 1);
          }
          if (low < below) {
            std::erase_if(part.terms, [&](const IndexTerm& t) { return t.coefficient % below != 0; });
            reach = 0;
            for (IndexTerm& t : part.terms) {
              t.coefficient /= below;
              reach += t.coefficient * (result.extent(static_cast<size_t>(t.axis)) - 1);
            }
            map.source[i] = divMod(part, reach + 1, 1, reach < extent ? 0 : extent);
          } else {
            map.source[i] = divMod(part, reach + 1, below, reach / below < extent ? 0 : extent);
          }
        }
      }
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
