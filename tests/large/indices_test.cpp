// SPDX-License-Identifier: Apache-2.0
// Lookups and sums by index with more indices than a driver's loops have rounds.
#include <gtest/gtest.h>

#include "frontend/ops/ops.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

TEST(LargeIndices, many_indices_into_few_rows) {
  expectSameGradients([](Leaves& x) { return embedding(x.values({7, 5}), x.numbers({200'003}, 7)); });
  expectSameGradients([](Leaves& x) { return segment_sum(x.values({200'003, 3}), x.numbers({200'003}, 7), 7); });
}

TEST(LargeIndices, all_indices_the_same) {
  // The longest that the sum of one segment can be.
  expectSameGradients([](Leaves& x) { return segment_sum(x.values({200'003}), x.numbers({200'003}, 1), 2); });
}

TEST(LargeIndices, rows_beyond_sixteen_bits) {
  expectSameGradients([](Leaves& x) { return embedding(x.values({99'991, 3}), x.numbers({1009}, 99'991)); });
}

TEST(LargeIndices, more_workgroups_than_one_dimension_has) {
  expectSameGradients([](Leaves& x) { return embedding(x.values({1'000'003, 5}), x.numbers({101}, 1'000'003)); });
}

TEST(LargeIndices, nightly_millions_of_indices) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectSameGradients([](Leaves& x) { return segment_sum(x.values({5'000'011}), x.numbers({5'000'011}, 3), 3); });
}

}  // namespace
}  // namespace lockstep::large
