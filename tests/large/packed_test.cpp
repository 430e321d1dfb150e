// SPDX-License-Identifier: Apache-2.0
// Packed tensors with more elements than an f32 counts, in each kind of plan. Sums of bytes are exact; floats are those of f32 inputs.
#include <gtest/gtest.h>

#include "frontend/ops/ops.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

/// Primes: one axis of more than 2^24 elements, and two that make as many.
constexpr int64_t kMany = 16'777'259, kRows = 16'411, kColumns = 1'031;

/// An element that is rounded to the other neighbour is off by 2^-8 of itself; f32 results that are off by 1e-6 let 1 in 2000 be so.
constexpr double kRoundedTolerance = 1e-4;

Tensor wide(const Tensor& stored) { return cast(stored, f32); }

TEST(LargePacked, map) {
  expectSameValue([](Leaves& x) { return cast(wide(x.stored({kMany}, bf16)) * 2 + 1, bf16); }, kRoundedTolerance);
  expectSameValue([](Leaves& x) { return cast(255 - cast(x.stored({kMany}, u8), u32), u8); }, 0);
}

TEST(LargePacked, elements_that_are_moved) {
  expectSameValue([](Leaves& x) { return permute(x.stored({kRows, kColumns}, bf16), {1, 0}); }, 0);
  expectSameValue([](Leaves& x) { return concat({x.stored({kMany}, u8), x.stored({3}, u8)}, 0); }, 0);
}

TEST(LargePacked, rows) {
  expectSameValue([](Leaves& x) { return sum(wide(x.stored({kRows, kColumns}, bf16)), 1); });
  expectSameValue([](Leaves& x) { return sum(cast(x.stored({kRows, kColumns}, u8), i32), 1); }, 0);
}

TEST(LargePacked, columns) {
  expectSameValue([](Leaves& x) { return sum(wide(x.stored({kRows, kColumns}, bf16)), 0); });
  expectSameValue([](Leaves& x) { return sum(cast(x.stored({kRows, kColumns}, u8), i32), 0); }, 0);
}

TEST(LargePacked, scan) {
  expectSameValue([](Leaves& x) { return cumsum(cast(x.stored({kMany}, u8), u32), 0); }, 0);
}

TEST(LargePacked, scatter) {
  expectSameValue([](Leaves& x) { return segment_sum(wide(x.stored({kRows, kColumns}, bf16)), x.numbers({kRows}, 7), 7); });
  expectSameValue([](Leaves& x) { return segment_sum(cast(x.stored({kRows, kColumns}, u8), i32), x.numbers({kRows}, 7), 7); }, 0);
}

TEST(LargePacked, contraction) {
  expectSameValue([](Leaves& x) { return matmul(wide(x.stored({kRows, kColumns}, bf16)), wide(x.stored({kColumns, 3}, bf16))); });
  expectSameValue([](Leaves& x) { return matmul(wide(x.stored({kRows, kColumns}, u8)), wide(x.stored({kColumns, 3}, u8))); });
}

TEST(LargePacked, results_that_a_map_packs) {
  expectSameValue([](Leaves& x) { return cast(softmax(wide(x.stored({kRows, kColumns}, bf16))), bf16); }, kRoundedTolerance);
  expectSameValue([](Leaves& x) { return cast(reduce_max(cast(x.stored({kRows, kColumns}, u8), i32), 1), u8); }, 0);
}

TEST(LargePacked, nightly_windows) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectSameValue([](Leaves& x) { return index_select(x.stored({70'001, 1'009}, bf16), 0, x.numbers({1'013}, 70'001)); }, 0);
  expectSameValue([](Leaves& x) { return permute(x.stored({70'001, 1'009}, bf16), {1, 0}); }, 0);
  expectSameValue([](Leaves& x) { return narrow(x.stored({140'001, 1'009}, u8), 1, 3, 5); }, 0);
}

}  // namespace
}  // namespace lockstep::large
