// SPDX-License-Identifier: Apache-2.0
// Tensors above the 128 MiB that many devices bind at once, in each kind of plan.
#include <gtest/gtest.h>

#include "frontend/ops.h"
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

}  // namespace
}  // namespace lockstep::large
