// SPDX-License-Identifier: Apache-2.0
// Affine index maps with floor division and remainder: how a view (reshape, permute, slice, broadcast, pad) finds its source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/type.h"

namespace lockstep::graph {

struct IndexExpr;

/// coefficient * ((inner / divide) % modulo), where inner is an axis of the result or a sum. divide >= 1; modulo 0 means none.
struct IndexTerm {
  int64_t coefficient = 1;
  int32_t axis = -1;             ///< axis of the result, or -1 when `inner` is used
  std::vector<IndexExpr> inner;  ///< at most one element
  int64_t divide = 1;
  int64_t modulo = 0;
  friend bool operator==(const IndexTerm&, const IndexTerm&) = default;
};

/// Sum of terms plus an offset.
struct IndexExpr {
  std::vector<IndexTerm> terms;
  int64_t offset = 0;
  friend bool operator==(const IndexExpr&, const IndexExpr&) = default;
};

IndexExpr axisExpr(int32_t axis, int64_t coefficient = 1);
/// (inner / divide) % modulo, simplified where it is exact given that inner lies in [0, bound).
IndexExpr divMod(const IndexExpr& inner, int64_t bound, int64_t divide, int64_t modulo);

/// The source element is read only where lo <= expr < hi; elsewhere the view gives `fill`.
struct IndexGuard {
  IndexExpr expr;
  int64_t lo = 0, hi = 0;
  friend bool operator==(const IndexGuard&, const IndexGuard&) = default;
};

/// One expression per source axis, over the axes of the result.
struct IndexMap {
  std::vector<IndexExpr> source;
  std::vector<IndexGuard> guards;
  double fill = 0;
  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

IndexMap identityMap(size_t rank);
/// Row-major reshape from `result` indices to `source` indices; axes that keep their extents and groups that split or merge exactly stay
/// independent of each other.
IndexMap reshapeMap(const Shape& result, const Shape& source);
/// outer: A -> B, inner: B -> C gives A -> C. `middle` is the shape of B.
IndexMap compose(const IndexMap& outer, const IndexMap& inner, const Shape& middle);
/// Value for concrete indices.
int64_t evaluate(const IndexExpr& expr, const std::vector<int64_t>& index);

}  // namespace lockstep::graph
