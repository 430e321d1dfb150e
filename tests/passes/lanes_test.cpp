// SPDX-License-Identifier: Apache-2.0
// What laneForm() says of neighbouring elements, beside what their indices are: a wrong "same" would give some elements of a vector the
// place or the padding of others.
#include "passes/fuse/lanes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace lockstep::passes {
namespace {

using graph::IndexExpr;
using graph::IndexTerm;
using graph::Shape;

/// By element of the shape.
std::vector<int64_t> valuesOf(const IndexExpr& expr, const Shape& shape) {
  std::vector<int64_t> values, index(shape.rank(), 0);
  for (int64_t element = 0; element < shape.elementCount(); ++element) {
    values.push_back(graph::evaluate(expr, index));
    for (size_t axis = shape.rank(); axis-- > 0;) {
      if (++index[axis] < shape.extent(axis)) break;
      index[axis] = 0;
    }
  }
  return values;
}

/// The strongest form that holds for all runs.
void expectTrue(const IndexExpr& expr, const Shape& shape, int64_t width, const std::string& what) {
  const LaneForm form = laneForm(expr, shape, width);
  if (form == LaneForm::Other) return;
  const std::vector<int64_t> values = valuesOf(expr, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t first = i - i % static_cast<size_t>(width);
    const int64_t wanted = values[first] + (form == LaneForm::Neighbours ? static_cast<int64_t>(i - first) : 0);
    ASSERT_EQ(values[i], wanted) << fmt::format("{}: element {} of {} with width {}", what, i, toString(shape), width);
    ASSERT_TRUE(form == LaneForm::Same || values[first] % width == 0) << what;
  }
}

/// Guards that are said to hold for whole runs do.
int expectTogether(const IndexExpr& expr, const Shape& shape, int64_t width, const std::string& what) {
  const std::vector<int64_t> values = valuesOf(expr, shape);
  int proven = 0;
  for (const auto& [lo, hi] : {std::pair<int64_t, int64_t>{0, 4}, {4, 12}, {8, 16}, {0, 6}, {3, 8}}) {
    const graph::IndexGuard guard{.expr = expr, .lo = lo, .hi = hi};
    if (!holdsTogether(guard, expr, shape, width)) continue;
    ++proven;
    const auto holds = [&](size_t i) { return values[i] >= guard.lo && values[i] < guard.hi; };
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(holds(i), holds(i - i % static_cast<size_t>(width))) << what << " from " << lo << " to " << hi;
  }
  return proven;
}

TEST(Lanes, guards_of_whole_runs_hold_together) {
  const IndexExpr column = graph::axisExpr(1);
  EXPECT_EQ(expectTogether(column, {3, 16}, 4, "a column"), 3) << "those that begin and end with a run";
  EXPECT_EQ(expectTogether(graph::axisExpr(0), {16, 4}, 4, "a row"), 5);
  EXPECT_EQ(expectTogether(column, {3, 15}, 4, "a column of odd rows"), 0);
}

TEST(Lanes, runs_begin_anew_in_each_row) {
  const IndexExpr part{.terms = {IndexTerm{.axis = 1, .inner = {}, .divide = 4}}};
  EXPECT_EQ(laneForm(part, {2, 9, 12}, 8), LaneForm::Other);  // 108 is not a multiple of 8
  EXPECT_EQ(laneForm(part, {2, 9, 12}, 4), LaneForm::Same);
  EXPECT_EQ(laneForm(part, {1, 9, 12}, 8), LaneForm::Same);
  EXPECT_EQ(laneForm(part, {2, 8, 12}, 8), LaneForm::Same);
}

TEST(Lanes, are_as_their_indices) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  int proven = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<int64_t> extents(static_cast<size_t>(pick(1, 4)));
    for (int64_t& extent : extents) extent = pick(0, 2) == 0 ? pick(1, 3) : 4 * pick(1, 3);
    const Shape shape(extents);
    const auto term = [&](bool may_nest, const auto& self) -> IndexTerm {
      IndexTerm made{.coefficient = pick(0, 1) == 0 ? 1 : 4 * pick(1, 4), .inner = {}};
      if (may_nest && pick(0, 3) == 0) {
        IndexExpr inner{.terms = {}, .offset = 4 * pick(0, 1)};
        for (int64_t i = pick(1, 2); i > 0; --i) inner.terms.push_back(self(false, self));
        made.inner = {inner};
      } else {
        made.axis = static_cast<int32_t>(pick(0, static_cast<int64_t>(extents.size()) - 1));
      }
      if (pick(0, 1) == 0) made.divide = int64_t{1} << pick(0, 4);
      if (pick(0, 2) == 0) made.modulo = pick(0, 1) == 0 ? 4 * pick(1, 3) : pick(1, 9);
      return made;
    };
    IndexExpr expr{.terms = {}, .offset = pick(0, 1) == 0 ? 0 : pick(0, 16)};
    for (int64_t i = pick(1, 3); i > 0; --i) expr.terms.push_back(term(true, term));
    for (const int64_t width : {2, 4, 8}) {
      proven += laneForm(expr, shape, width) != LaneForm::Other ? 1 : 0;
      expectTrue(expr, shape, width, fmt::format("round {}", round));
      expectTogether(expr, shape, width, fmt::format("round {}", round));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(proven, 5000);  // else nothing was looked at
}

}  // namespace
}  // namespace lockstep::passes
