// SPDX-License-Identifier: Apache-2.0
// Attention over more positions than there is memory for scores.
#include <gtest/gtest.h>

#include "frontend/ops/ops.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

TEST(LargeAttention, over_sixteen_thousand_positions) {
  expectSameGradients([](Leaves& x) {
    return scaled_dot_product_attention(x.values({1, 1, 16'381, 4}), x.values({1, 1, 16'381, 4}), x.values({1, 1, 16'381, 4}),
                                        {.causal = true});
  });
}

TEST(LargeAttention, of_one_query_to_many_keys) {
  expectSameValue([](Leaves& x) {
    return scaled_dot_product_attention(x.values({1, 4, 3, 8}), x.values({1, 2, 70'001, 8}), x.values({1, 2, 70'001, 8}));
  });
}

TEST(LargeAttention, nightly_wide_grouped_and_masked) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectSameGradients([](Leaves& x) {
    return scaled_dot_product_attention(x.values({1, 2, 16'384, 8}), x.values({1, 1, 16'384, 8}), x.values({1, 1, 16'384, 8}));
  });
  expectSameValue([](Leaves& x) {
    return scaled_dot_product_attention(x.values({1, 1, 16'381, 64}), x.values({1, 1, 16'381, 64}), x.values({1, 1, 16'381, 64}),
                                        {.causal = true, .mask = x.values({16'381}) * 8.0f});
  });
}

}  // namespace
}  // namespace lockstep::large
