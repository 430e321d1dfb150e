// SPDX-License-Identifier: Apache-2.0
#include "frontend/data/loader.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "frontend/data/random.h"
#include "ir/support/diagnostic.h"

namespace lockstep {
namespace {

/// Row i is {i, i + 0.5} of "x" and i of "y".
Loader loader(size_t rows, LoaderOptions options) {
  std::vector<float> x;
  std::vector<int32_t> y;
  for (size_t i = 0; i < rows; ++i) {
    x.insert(x.end(), {static_cast<float>(i), static_cast<float>(i) + 0.5f});
    y.push_back(static_cast<int32_t>(i));
  }
  return Loader({{"x", x}, {"y", y}}, rows, options);
}

std::vector<int32_t> labels(const Batch& batch) {
  const auto values = std::get<std::span<const int32_t>>(batch[1].data);
  return {values.begin(), values.end()};
}

TEST(Loader, bytes_stay_bytes) {
  std::vector<uint8_t> pixels(5 * 3);
  std::iota(pixels.begin(), pixels.end(), uint8_t{250});  // beyond 255 they begin anew
  Loader bytes({{"pixels", pixels}}, 5, {.batch = 2, .shuffle = false});
  const Batch batch = bytes.batch(2);
  const auto values = std::get<std::span<const uint8_t>>(batch[0].data);
  EXPECT_EQ(std::vector<uint8_t>(values.begin(), values.end()), (std::vector<uint8_t>{0, 1, 2, 3, 4, 5}));
}

std::string codeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return "";
}

TEST(Loader, epoch_has_every_row_once_and_the_next_one_has_another_order) {
  Loader data = loader(12, {.batch = 4, .seed = 3});
  ASSERT_EQ(data.steps_per_epoch(), 3u);
  std::vector<std::vector<int32_t>> epochs(2);
  for (uint64_t step = 1; step <= 6; ++step) {
    const Batch batch = data.batch(step);
    const std::vector<int32_t> rows = labels(batch);
    const auto x = std::get<std::span<const float>>(batch[0].data);
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(x[2 * i + 1], static_cast<float>(rows[i]) + 0.5f);
    epochs[(step - 1) / 3].insert(epochs[(step - 1) / 3].end(), rows.begin(), rows.end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (const auto& epoch : epochs) EXPECT_EQ(std::set<int32_t>(epoch.begin(), epoch.end()).size(), 12u);
}

TEST(Loader, batch_depends_on_the_step_only) {
  Loader in_order = loader(50, {.batch = 8}), jumping = loader(50, {.batch = 8}), alone = loader(50, {.batch = 8, .prefetch = 0});
  std::vector<std::vector<int32_t>> batches;
  for (uint64_t step = 1; step <= 40; ++step) batches.push_back(labels(in_order.batch(step)));
  for (const uint64_t step : {17u, 18u, 3u, 40u, 17u, 1u, 2u, 3u, 3u}) {
    EXPECT_EQ(labels(jumping.batch(step)), batches[step - 1]) << step;
    EXPECT_EQ(labels(alone.batch(step)), batches[step - 1]) << step;
  }
  EXPECT_NE(labels(loader(50, {.batch = 8, .seed = 7}).batch(1)), batches[0]);
}

TEST(Loader, rows_come_as_they_lie_without_shuffling_and_the_rest_is_left_out) {
  Loader data = loader(7, {.batch = 3, .shuffle = false});
  EXPECT_EQ(labels(data.batch(2)), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(labels(data.batch(3)), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(data.rows_of(2), (std::vector<uint32_t>{3, 4, 5}));
}

TEST(Loader, survives_its_move_and_an_early_end) {
  Loader data = loader(64, {.batch = 4, .prefetch = 8});
  const std::vector<int32_t> first = labels(data.batch(1));
  Loader moved = std::move(data);
  EXPECT_EQ(labels(moved.batch(1)), first);
}

TEST(Loader, mistakes_are_refused) {
  EXPECT_EQ(codeOf([] { (void)loader(4, {.batch = 0}); }), "loader.batch");
  EXPECT_EQ(codeOf([] { (void)loader(4, {.batch = 5}); }), "loader.rows");
  EXPECT_EQ(codeOf([] { (void)Loader({{"x", std::vector<float>(5)}}, 4, {.batch = 2}); }), "loader.rows");
  EXPECT_EQ(codeOf([] { (void)Loader({{"x", std::vector<float>()}}, 4, {.batch = 2}); }), "loader.rows");
}

TEST(Random, numbers_have_their_moments_and_streams_differ) {
  Random random(1, 2), other(1, 3), again(1, 2);
  double sum = 0, squares = 0, normals = 0, normal_squares = 0;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.uniform(), normal = other.normal();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    EXPECT_EQ(value, again.uniform());
    sum += value;
    squares += value * value;
    normals += normal;
    normal_squares += normal * normal;
    const int64_t centred = random.below(7) - 3;
    ASSERT_LE(std::abs(centred), 3);
    (void)again.below(7);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
  EXPECT_NEAR(normals / kCount, 0, 0.03);
  EXPECT_NEAR(normal_squares / kCount, 1, 0.04);
  EXPECT_NE(Random(1, 2).word(), Random(1, 3).word());
}

}  // namespace
}  // namespace lockstep
