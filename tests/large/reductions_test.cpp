// SPDX-License-Identifier: Apache-2.0
// rows, columns, scan and map kernels whose axes are longer than a driver's loops.
#include <gtest/gtest.h>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

TEST(LargeReductions, sum_of_a_product_to_one_result) {
  expectSameGradients([](Leaves& x) { return sum(x.values({5'000'011}) * x.values({5'000'011})); });
}

TEST(LargeReductions, extrema_and_positions_of_everything) {
  expectSameValue([](Leaves& x) { return reduce_max(x.values({300'007})); });
  expectSameGradients([](Leaves& x) { return reduce_min(x.values({300'007})); });
  expectSameValue([](Leaves& x) { return cast(argmax(x.values({300'007}), 0), DType::F32); });
}

TEST(LargeReductions, softmax_of_long_rows) {
  expectSameGradients([](Leaves& x) { return softmax(x.values({3, 200'003}) * 8); });
}

TEST(LargeReductions, layer_norm_of_long_rows) {
  expectSameGradients([](Leaves& x) { return layer_norm(x.values({3, 200'003}), x.values({200'003}), x.values({200'003})); });
}

TEST(LargeReductions, cross_entropy_of_many_classes) {
  expectSameGradients([](Leaves& x) { return cross_entropy(x.values({5, 100'003}), x.numbers({5}, 100'003)); });
}

TEST(LargeReductions, columns_longer_than_a_loop) {
  expectSameGradients([](Leaves& x) { return sum(x.values({99'991, 3}), 0); });
  expectSameGradients([](Leaves& x) { return mean(x.values({99'991, 37}), 0); });
  expectSameValue([](Leaves& x) { return reduce_max(x.values({99'991, 3}), 0); });
  expectSameValue([](Leaves& x) { return cast(argmax(x.values({99'991, 3}), 0), DType::F32); });
  expectSameGradients([](Leaves& x) { return reduce_max(x.values({7, 70'001, 5}), 1); });
}

TEST(LargeReductions, rows_longer_than_a_loop) {
  expectSameGradients([](Leaves& x) { return sum(x.values({100, 100'003}), 1); });
  expectSameValue([](Leaves& x) { return cast(argmax(x.values({100, 100'003}), 1), DType::F32); });
}

TEST(LargeReductions, sums_to_many_results) {
  expectSameGradients([](Leaves& x) { return sum(x.values({71, 70'001}), 0); });
  expectSameGradients([](Leaves& x) { return sum(x.values({700'001, 7}), 1); });
}

TEST(LargeReductions, batch_norm_of_a_long_batch) {
  expectSameGradients([](Leaves& x) { return batch_norm(x.values({70'001, 3}), x.values({3}), x.values({3})).y; });
}

TEST(LargeReductions, prefixes_of_long_lines) {
  expectSameGradients([](Leaves& x) { return cumsum(x.values({1'000'003}), 0); });
  expectSameValue([](Leaves& x) { return cumsum(x.values({3'000'017}), 0, true); });
  expectSameGradients([](Leaves& x) { return cumsum(x.values({99'991, 17}), 0); });
}

TEST(LargeReductions, order_of_a_long_row) {
  expectSameValue([](Leaves& x) { return sort(x.values({70'001})).values; });
  expectSameValue([](Leaves& x) { return top_k(x.values({2, 99'991}), 5).values; });
}

// Beyond 2^24, where f32 has no odd numbers: the largest element is one of the last.
TEST(LargeReductions, place_in_a_long_line) {
  expectSameValue([](Leaves& x) {
    const Tensor line = x.values({17'000'023}), places = arange(17'000'023);
    return cast(argmax(where(places > 16'999'000, line, line * 0.5), 0) - 16'999'000, DType::F32);
  });
  expectSameValue([](Leaves& x) {
    const auto larger = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
      return std::vector{max(a[0], b[0]), a[1] + b[1]};
    };
    const std::vector<Tensor> totals = associative_reduce(larger, {x.values({100'003, 3}), full({100'003, 3}, 1, DType::I32)}, 0);
    return totals[0] + cast(totals[1], DType::F32);
  });
}

TEST(LargeReductions, nightly_tens_of_millions) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectSameValue([](Leaves& x) { return sum(x.values({40'000'003}) * x.values({40'000'003})); });
  expectSameValue([](Leaves& x) { return softmax(x.values({16'777'259}) * 8); });
  // A prefix is the sum of all before it, one after the other within a lane.
  expectSameValue([](Leaves& x) { return cumsum(x.values({16'777'259}), 0); }, 5e-5);
  expectSameValue([](Leaves& x) { return sum(x.values({5'000'011, 7}), 0); });
}

}  // namespace
}  // namespace lockstep::large
