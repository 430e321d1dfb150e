// SPDX-License-Identifier: Apache-2.0
// What a batch views and what it holds.
#include <array>
#include <numeric>

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

std::vector<float> counting(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}
std::span<const float> floatsOf(const BatchItem& item) { return std::get<std::span<const float>>(item.data); }

TEST(Batch, views_what_has_a_name) {
  std::vector<float> values = counting(5, 1);
  const std::array<float, 3> fixed{4, 5, 6};
  const Batch batch{{"x", values}, {"part", std::span(values).first(2)}, {"fixed", fixed}};
  EXPECT_EQ(floatsOf(batch[0]).data(), values.data());
  EXPECT_EQ(floatsOf(batch[1]).data(), values.data());
  EXPECT_EQ(floatsOf(batch[1]).size(), 2u);
  EXPECT_EQ(floatsOf(batch[2]).data(), fixed.data());
  for (const BatchItem& item : batch) EXPECT_EQ(item.owner, nullptr);
  values[0] = 9;
  EXPECT_EQ(floatsOf(batch[0])[0], 9);
}

TEST(Batch, holds_what_has_none) {
  std::vector<float> moved = counting(1000, 3);
  const float* elements = moved.data();
  Batch batch{{std::string("an input whose name is too long for a short string"), counting(1000, 1)},
              {"moved", std::move(moved)},
              {"listed", {7, 8, 9}},
              {"fixed", std::array<uint32_t, 2>{1, 2}}};
  EXPECT_EQ(floatsOf(batch[1]).data(), elements);  // not copied
  const Batch copy = batch;
  batch.clear();
  // What is freed would be used again here.
  std::vector<std::vector<float>> others;
  for (int i = 0; i < 50; ++i) others.emplace_back(1000, -1.0f);
  EXPECT_EQ(copy[0].name, "an input whose name is too long for a short string");
  EXPECT_TRUE(std::ranges::equal(floatsOf(copy[0]), counting(1000, 1)));
  EXPECT_TRUE(std::ranges::equal(floatsOf(copy[1]), counting(1000, 3)));
  EXPECT_TRUE(std::ranges::equal(std::get<std::span<const int32_t>>(copy[2].data), std::vector<int32_t>{7, 8, 9}));
  EXPECT_TRUE(std::ranges::equal(std::get<std::span<const uint32_t>>(copy[3].data), std::vector<uint32_t>{1, 2}));
}

TEST(Batch, of_temporaries_trains_as_one_of_variables) {
  CompileSpec<Mlp> spec = specFor("reference");
  auto one = compile<Mlp>(spec), other = compile<Mlp>(spec);
  const std::vector<float> x = counting(kBatch, 0), y = counting(kBatch, 2);
  const Batch stored{{"x", counting(kBatch, 0)}, {"y", counting(kBatch, 2)}};
  for (int step = 0; step < 3; ++step) EXPECT_EQ(one.step(stored).loss, other.step({{"x", x}, {"y", y}}).loss);
  spec.accumulate = 2;
  auto cut = compile<Mlp>(spec);
  EXPECT_TRUE(cut.step({{"x", counting(2 * kBatch, 0)}, {"y", counting(2 * kBatch, 2)}}).completed());
}

}  // namespace
}  // namespace lockstep
