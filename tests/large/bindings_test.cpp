// SPDX-License-Identifier: Apache-2.0
// Tensors above the 128 MiB that many devices bind at once, in each kind of plan.
#include <gtest/gtest.h>

#include "frontend/ops/ops.h"
#include "ir/support/result.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

TEST(LargeBindings, map_in_slices) {
  expectSameValue([](Leaves& x) { return x.values({40'000'003}) + 1; });
}

TEST(LargeBindings, product_with_a_large_operand) {
  expectSameValue([](Leaves& x) { return matmul(x.values({9001, 4001}), x.values({4001, 3})); });
}

TEST(LargeBindings, product_with_a_large_result) {
  expectSameValue([](Leaves& x) { return sum(matmul(x.values({6007, 3}), x.values({3, 6011})), 1); });
}

TEST(LargeBindings, columns_of_a_large_tensor) {
  expectSameValue([](Leaves& x) { return sum(x.values({5'000'011, 7}), 0); });
}

TEST(LargeBindings, lookup_in_a_large_table) {
  expectSameValue([](Leaves& x) { return embedding(x.values({5'000'011, 7}), x.numbers({1009}, 5'000'011)); });
}

TEST(LargeBindings, nightly_other_plans) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectSameGradients([](Leaves& x) { return embedding(x.values({5'000'011, 7}), x.numbers({1009}, 5'000'011)); });
  expectSameValue([](Leaves& x) { return cumsum(x.values({40'000'003}), 0); });
  // Of positive numbers: those of both signs have a sum near 0, whose relative error says nothing.
  expectSameGradients([](Leaves& x) { return sum(concat({x.values({17'000'027}) + 0.5, x.values({19'000'013}) + 0.5}, 0)); });
  expectSameValue([](Leaves& x) { return softmax(x.values({5, 8'000'009})); });
}

TEST(LargeBindings, more_elements_than_an_index_counts_are_refused) {
  detail::Trace trace;
  const Tensor x = trace.addInput("x", f32(1'200'000'000));
  try {
    (void)concat({x, x}, 0);
    FAIL() << "2.4 billion elements were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "concat.C5");
  }
}

}  // namespace
}  // namespace lockstep::large
