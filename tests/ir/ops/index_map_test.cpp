// SPDX-License-Identifier: Apache-2.0
// Index maps against brute force on random shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/graph/index_map.h"
#include "ir/ops/support/common.h"
#include "passes/fuse/views.h"

namespace lockstep::graph {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t below(int64_t bound) { return static_cast<int64_t>(engine_() % static_cast<uint32_t>(bound)); }
  /// A shape with `count` elements: its prime factors spread over random axes, ones in between.
  Shape shapeOf(int64_t count) {
    std::vector<int64_t> extents{1};
    for (int64_t prime : {2, 2, 2, 2, 2, 3, 3, 3, 5, 5, 7}) {
      if (count % prime != 0) continue;
      count /= prime;
      if (below(2) == 0) extents.push_back(1);
      extents[static_cast<size_t>(below(static_cast<int64_t>(extents.size())))] *= prime;
    }
    extents.push_back(count);
    if (below(2) == 0) std::erase(extents, 1);
    return Shape(extents);
  }

 private:
  std::mt19937 engine_;
};

/// An element by brute force: where it comes from, or nothing where a guard fails.
std::optional<std::vector<int64_t>> sourceAt(const IndexMap& map, const std::vector<int64_t>& index) {
  for (const IndexGuard& guard : map.guards) {
    int64_t at = evaluate(guard.expr, index);
    if (at < guard.lo || at >= guard.hi) return std::nullopt;
  }
  std::vector<int64_t> source;
  for (const IndexExpr& expr : map.source) source.push_back(evaluate(expr, index));
  return source;
}

std::vector<int64_t> unflatten(int64_t flat, const Shape& shape) {
  std::vector<int64_t> index(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0;) {
    index[axis] = flat % shape.extent(axis);
    flat /= shape.extent(axis);
  }
  return index;
}

constexpr int64_t kCounts[] = {1, 6, 12, 24, 36, 60, 72, 120, 210, 360, 480};

TEST(ReshapeMap, RandomShapes_KeepTheRowMajorOrder) {
  Random random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    int64_t count = kCounts[random.below(11)];
    Shape result = random.shapeOf(count), source = random.shapeOf(count);
    IndexMap map = reshapeMap(result, source);
    ASSERT_EQ(map.source.size(), source.rank());
    for (int64_t flat = 0; flat < count; ++flat)
      ASSERT_EQ(sourceAt(map, unflatten(flat, result)), unflatten(flat, source))
          << toString(result) << " of " << toString(source) << " at " << flat;
  }
}

TEST(ReshapeMap, EqualShapes_GiveTheIdentity) {
  for (const Shape& shape : {Shape{4, 6}, Shape{2, 3, 5}, Shape{7}}) EXPECT_EQ(reshapeMap(shape, shape), identityMap(shape.rank()));
}

TEST(ReshapeMap, MergedAxes_NeedNoDivision) {
  IndexMap map = reshapeMap(Shape{2, 3, 4}, Shape{6, 4});
  ASSERT_EQ(map.source.size(), 2U);
  for (const IndexExpr& expr : map.source) {
    for (const IndexTerm& term : expr.terms) {
      EXPECT_EQ(term.divide, 1);
      EXPECT_EQ(term.modulo, 0);
    }
  }
}

TEST(ReshapeMap, DifferentCounts_AreOurBug) { EXPECT_THROW(reshapeMap(Shape{4}, Shape{5}), InternalError); }

/// A random view of a tensor of `source` and the shape that it has.
std::pair<IndexMap, Shape> randomView(Random& random, const Shape& source) {
  std::vector<int64_t> extents = source.extents();
  IndexMap map = identityMap(source.rank());
  size_t axis = source.rank() == 0 ? 0 : static_cast<size_t>(random.below(static_cast<int64_t>(source.rank())));
  int64_t choice = random.below(8);
  if (choice == 0 || source.rank() == 0) {
    Shape shape = random.shapeOf(source.elementCount());
    return {reshapeMap(shape, source), shape};
  }
  if (choice == 1) {  // permute by a rotation and a swap
    std::vector<size_t> order(source.rank());
    std::iota(order.begin(), order.end(), size_t{0});
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(axis), order.end());
    std::swap(order.front(), order.back());
    for (size_t i = 0; i < order.size(); ++i) {
      extents[i] = source.extent(order[i]);
      map.source[order[i]] = axisExpr(static_cast<int32_t>(i));
    }
  } else if (choice == 2) {  // narrow
    int64_t start = random.below(extents[axis]);
    extents[axis] = 1 + random.below(extents[axis] - start);
    map.source[axis].offset = start;
  } else if (choice == 3) {  // broadcast along a new axis, or one of extent 1
    if (extents[axis] == 1) {
      extents[axis] = 3;
      map.source[axis] = IndexExpr{};
    } else {
      for (size_t i = 0; i < extents.size(); ++i) map.source[i] = axisExpr(static_cast<int32_t>(i + 1));
      extents.insert(extents.begin(), 2);
    }
  } else if (choice == 4) {  // flip
    map.source[axis] = axisExpr(static_cast<int32_t>(axis), -1);
    map.source[axis].offset = extents[axis] - 1;
  } else if (choice == 5) {  // roll
    map.source[axis].offset = random.below(extents[axis]);
    map.source[axis] = divMod(map.source[axis], 2 * extents[axis], 1, extents[axis]);
  } else if (choice == 6) {  // dilate: an element, then fill
    int64_t dilation = 2 + random.below(2), before = random.below(3);
    IndexExpr at = map.source[axis];
    at.offset = -before;
    int64_t dilated = (extents[axis] - 1) * dilation + 1;
    map.guards = {{at, 0, dilated}, {divMod(at, INT64_MAX, 1, dilation), 0, 1}};
    map.source[axis] = divMod(at, INT64_MAX, dilation, 0);
    extents[axis] = before + dilated + random.below(2);
  } else {  // pad
    int64_t before = random.below(3), after = random.below(3);
    map.source[axis].offset = -before;
    map.guards.push_back({map.source[axis], 0, extents[axis]});
    extents[axis] += before + after;
  }
  return {map, Shape(extents)};
}

TEST(Compose, RandomChainsOfViews_FindTheSameElement) {
  Random random(2);
  for (int trial = 0; trial < 1500; ++trial) {
    Shape shape = random.shapeOf(kCounts[random.below(9)]);
    std::vector<std::pair<IndexMap, Shape>> steps{{identityMap(shape.rank()), shape}};
    IndexMap whole = steps.front().first;
    for (int step = 0; step < 4; ++step) {
      const Shape middle = steps.back().second;
      if (middle.elementCount() > 3000) break;
      steps.push_back(randomView(random, middle));
      whole = compose(steps.back().first, whole, middle);
    }
    const Shape& last = steps.back().second;
    IndexExpr offset = passes::linearOffset(whole, last, shape);
    std::vector<int64_t> strides = shape.strides();
    for (int64_t flat = 0; flat < last.elementCount(); ++flat) {
      std::optional<std::vector<int64_t>> expected = unflatten(flat, last);
      for (size_t i = steps.size(); i-- > 0 && expected;) expected = sourceAt(steps[i].first, *expected);
      ASSERT_EQ(sourceAt(whole, unflatten(flat, last)), expected) << "trial " << trial << ", element " << flat;
      if (!expected) continue;
      int64_t at = std::inner_product(strides.begin(), strides.end(), expected->begin(), int64_t{0});
      ASSERT_EQ(evaluate(offset, unflatten(flat, last)), at) << "trial " << trial << ", element " << flat;
    }
  }
}

/// By brute force: the columns of a row from a begin on, for one row after the other.
bool showsPartOfRows(const IndexMap& map, const Shape& shape, const Shape& source) {
  const int64_t wide = source.extent(source.rank() - 1), rows = source.elementCount() / wide, columns = shape.elementCount() / rows;
  const std::vector<int64_t> strides = source.strides();
  int64_t first = 0;
  for (int64_t flat = 0; flat < shape.elementCount(); ++flat) {
    const std::optional<std::vector<int64_t>> index = sourceAt(map, unflatten(flat, shape));
    if (!index) return false;
    const int64_t at = std::inner_product(strides.begin(), strides.end(), index->begin(), int64_t{0});
    if (flat == 0) first = at;
    if (at != flat / columns * wide + first + flat % columns) return false;
  }
  return shape.elementCount() == rows * columns && first + columns <= wide;
}

TEST(PartOfRows, IsSaidOfNothingElse) {
  Random random(3);
  int proven = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Shape source = random.shapeOf(kCounts[random.below(9)]);
    if (source.rank() == 0) continue;
    Shape shape = source;
    IndexMap whole = identityMap(source.rank());
    for (int step = 0; step < 2; ++step) {
      const auto [map, next] = randomView(random, shape);
      whole = compose(map, whole, shape);
      shape = next;
    }
    if (!passes::isPartOfRows(whole, shape, source)) continue;
    ++proven;
    ASSERT_TRUE(showsPartOfRows(whole, shape, source)) << "trial " << trial;
  }
  EXPECT_GT(proven, 100);
  // Columns 4 to 7 of rows of 10, as heads of two.
  IndexMap map = identityMap(2);
  map.source[1].offset = 4;
  const Shape heads{3, 2, 2}, flat{3, 4};
  EXPECT_TRUE(passes::isPartOfRows(compose(reshapeMap(heads, flat), map, flat), heads, Shape{3, 10}));
}

TEST(Compose, TwoFills_AreOurBug) {
  IndexMap pad = identityMap(1);
  pad.guards.push_back({axisExpr(0), 0, 3});
  IndexMap other = pad;
  other.fill = 1;
  EXPECT_THROW(compose(pad, other, Shape{4}), InternalError);
}

TEST(DivMod, BoundsThatMakeItTrivial_AreFolded) {
  EXPECT_EQ(divMod(axisExpr(0), 8, 8, 0), IndexExpr{});
  EXPECT_EQ(divMod(axisExpr(0), 8, 1, 8), axisExpr(0));
  EXPECT_EQ(divMod(axisExpr(0), 8, 1, 1), IndexExpr{});
  IndexExpr quotient = divMod(axisExpr(0), 24, 4, 3);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(evaluate(quotient, {i}), i / 4 % 3);
}

}  // namespace
}  // namespace lockstep::graph
