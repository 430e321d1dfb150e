// SPDX-License-Identifier: Apache-2.0
// Contractions with inner axes that are longer than a driver's loops: products, convolutions and the gradients of weights.
#include <gtest/gtest.h>

#include "frontend/ops/ops.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

TEST(LargeProducts, inner_axes_of_any_length) {
  for (int64_t k : {65'537, 70'001}) {
    expectSameGradients([&](Leaves& x) { return matmul(x.values({17, k}), x.values({k, 13})); });
  }
  expectSameValue([](Leaves& x) { return matmul(x.values({256, 70'000}), x.values({70'000, 64})); });
}

TEST(LargeProducts, matrix_and_vector) {
  expectSameGradients([](Leaves& x) { return matmul(x.values({1, 200'003}), x.values({200'003, 1})); });
}

TEST(LargeProducts, batched_inner_axis) {
  expectSameGradients([](Leaves& x) { return matmul(x.values({3, 5, 70'001}), x.values({3, 70'001, 7})); });
  expectSameGradients([](Leaves& x) { return matmul(x.values({2, 5, 70'001}), x.values({70'001, 7})); });
}

TEST(LargeProducts, batch_of_a_step) {
  // The gradient of each weight sums over the batch.
  expectSameGradients([](Leaves& x) {
    Tensor hidden = relu(matmul(x.values({70'001, 7}), x.values({7, 16})) + x.values({16}));
    return matmul(hidden, x.values({16, 3}));
  });
}

TEST(LargeProducts, positions_of_a_convolution) {
  expectSameGradients([](Leaves& x) { return conv1d(x.values({1, 2, 80'021}), x.values({3, 2, 5})); });
  expectSameGradients([](Leaves& x) { return conv2d(x.values({1, 2, 283, 283}), x.values({3, 2, 3, 3}), {.padding = 1}); });
}

TEST(LargeProducts, depthwise_positions) {
  expectSameGradients([](Leaves& x) { return conv1d(x.values({1, 3, 80'021}), x.values({3, 1, 5}), {.groups = 3}); });
}

TEST(LargeProducts, nightly_longer_inner_axes) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  for (int64_t k : {65'521, 99'991, 200'003, 300'000, 1'000'003}) {
    expectSameValue([&](Leaves& x) { return matmul(x.values({33, k}), x.values({k, 21})); }, 5e-5);
  }
}

}  // namespace
}  // namespace lockstep::large
