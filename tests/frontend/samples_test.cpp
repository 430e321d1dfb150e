// SPDX-License-Identifier: Apache-2.0
// The samples: their data, what one step costs, and what they reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "backends/backend.h"
#include "examples/models/addition.h"
#include "examples/models/mlp.h"
#include "examples/models/recall.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

TEST(AdditionData, tokens_have_the_sum_with_its_lowest_digit_first) {
  EXPECT_EQ(additionTokens({47, 85}), (std::array<int32_t, 9>{4, 7, 10, 8, 5, 11, 2, 3, 1}));
  EXPECT_EQ(additionTokens({3, 4}), (std::array<int32_t, 9>{0, 3, 10, 0, 4, 11, 7, 0, 0}));
}

TEST(AdditionData, a_fifth_of_the_pairs_is_held_out_and_never_drawn) {
  int held_out = 0;
  for (int a = 0; a < 100; ++a) {
    for (int b = 0; b < 100; ++b) held_out += isHeldOut({a, b}) ? 1 : 0;
  }
  EXPECT_EQ(held_out, 2000);
  for (AdditionPair pair : drawPairs(1, 2, 500, false)) EXPECT_FALSE(isHeldOut(pair));
  for (AdditionPair pair : drawPairs(1, 2, 100, true)) EXPECT_TRUE(isHeldOut(pair));
}

TEST(AdditionData, batches_depend_on_seed_and_step_only) {
  AdditionBatch batch = additionBatch(1, 5);
  EXPECT_EQ(batch.tokens.size(), kAdditionBatch * kAdditionLength);
  EXPECT_EQ(batch.tokens, additionBatch(1, 5).tokens);
  EXPECT_NE(batch.tokens, additionBatch(1, 6).tokens);
  EXPECT_NE(batch.tokens, additionBatch(2, 5).tokens);
  for (size_t i = 0; i + 1 < kAdditionLength; ++i) EXPECT_EQ(batch.tokens[i + 1], batch.targets[i]);
}

TEST(SineData, covers_the_interval) {
  SineBatch batch = sineBatch(1, 1, 1000);
  std::set<int> eighths;
  for (size_t i = 0; i < batch.x.size(); ++i) {
    EXPECT_NEAR(batch.y[i], std::sin(batch.x[i]), 1e-6);
    eighths.insert(static_cast<int>(std::floor(batch.x[i] / M_PI * 4)));
  }
  EXPECT_EQ(eighths.size(), 8u);
}

TEST(RecallData, answers_are_what_followed_each_mark) {
  for (const RecallTask& task : {mambaTask(), mambaHybridTask()}) {
    constexpr int64_t kRows = 20;
    // As short as it may be, and long.
    for (const int64_t length : {3 * task.asked, int64_t{200}}) {
      const RecallBatch batch = recallBatch(task, 1, 5, kRows, length);
      EXPECT_EQ(batch.tokens, recallBatch(task, 1, 5, kRows, length).tokens);
      EXPECT_NE(batch.tokens, recallBatch(task, 1, 6, kRows, length).tokens);
      ASSERT_EQ(batch.tokens.size(), static_cast<size_t>(kRows * length));
      ASSERT_EQ(batch.answers.size(), static_cast<size_t>(kRows * task.asked));
      for (int64_t row = 0; row < kRows; ++row) {
        const auto begin = batch.tokens.begin() + row * length, end = begin + length - task.asked;
        for (int64_t i = 0; i < task.asked; ++i) {
          const int32_t mark = end[i];
          EXPECT_TRUE(mark >= task.symbols && mark < task.symbols + task.marks) << mark;
          const auto place = std::find(begin, end, mark);
          ASSERT_LT(place + 1, end);
          EXPECT_EQ(std::count(begin, end, mark), 1);
          EXPECT_EQ(place[1], batch.answers[static_cast<size_t>(row * task.asked + i)]);
          EXPECT_LT(place[1], task.symbols);
        }
      }
    }
  }
}

TEST(RecallData, texts_show_symbols_marks_and_blanks) {
  const std::vector<int32_t> tokens{0, 7, 8, 15, 16};
  EXPECT_EQ(recallText(mambaHybridTask(), tokens), "ahAH.");
}

class Sample : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Sample, testing::Values("reference", "vulkan"), [](const auto& info) { return std::string(info.param); });

TEST_P(Sample, sine_fits_within_200_steps_and_its_budget) {
  constexpr size_t kBatch = 256;
  auto trainer = compile<Mlp>({
      .inputs = {{"x", f32(kBatch, 1)}, {"y", f32(kBatch, 1)}},
      .loss = [](const Mlp& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); },
      .optimizer = adam({.lr = 5e-3}),
      .seed = 42,
      .device = GetParam(),
      .make = [] { return std::make_unique<Mlp>(std::vector<int64_t>{1, 64, 64, 1}); },
  });
  EXPECT_LE(trainer.facts().dispatches, 20u);
  EXPECT_LE(trainer.facts().levels, 12u);
  EXPECT_EQ(trainer.facts().parameters, 4353);
  SineBatch batch;
  std::vector<StepResult> results = trainer.steps(200, [&](size_t i) {
    batch = sineBatch(42, i + 1, kBatch);
    return Batch{{"x", batch.x}, {"y", batch.y}};
  });
  EXPECT_NEAR(results.front().loss, 0.49, 0.05);
  EXPECT_LT(results.back().loss, 1e-3);
}

TEST_P(Sample, addition_starts_as_it_should_and_keeps_its_budget) {
  auto trainer = compileAddition({.seed = 42, .device = GetParam(), .captures = true});
  EXPECT_EQ(trainer.facts().parameters, 150656);
  AdditionBatch batch;
  std::vector<StepResult> results = trainer.steps(5,
                                                  [&](size_t i) {
                                                    batch = additionBatch(42, i + 1);
                                                    return Batch{{"tokens", batch.tokens}, {"targets", batch.targets}};
                                                  },
                                                  {.captures = true});
  EXPECT_NEAR(results.front().loss, std::log(12), 0.1);
  EXPECT_LT(results.back().loss, 2.3f);
  const Captures& captures = results.back().captures;
  EXPECT_EQ(captures.names(), (std::vector<std::string>{"attn.0", "attn.1", "attn.2", "residual.0", "residual.1", "residual.2"}));
  // A row of attention weights sums to one; the first token sees itself only.
  std::span<const float> weights = captures.get("attn.1").floats();
  EXPECT_FLOAT_EQ(weights[0], 1);
  float sum = 0;
  for (size_t i = 0; i < kAdditionLength; ++i) sum += weights[3 * kAdditionLength + i];
  EXPECT_NEAR(sum, 1, 1e-5);
  AdditionCheck::Score score = AdditionCheck(trainer, 42).run();
  EXPECT_LE(score.held_out, 0.2);
}

TEST_P(Sample, addition_without_captures_keeps_its_budget) {
  auto trainer = compileAddition({.seed = 42, .device = GetParam()});
  EXPECT_LE(trainer.facts().dispatches, 150u);
  EXPECT_LE(trainer.facts().levels, 90u);
}

}  // namespace
}  // namespace lockstep::examples
