// SPDX-License-Identifier: Apache-2.0
// Each sample, shorter than its own goal, reaches what it should by then; on Vulkan, where all of it takes 90 seconds on two cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "examples/data/digits.h"
#include "examples/recipes.h"

namespace lockstep::examples {
namespace {

struct Milestone {
  std::string_view recipe;
  int64_t steps;
  Goal goal;  ///< "loss" is that of the last step
};

constexpr auto kMost = Goal::Kind::AtMost, kLeast = Goal::Kind::AtLeast;

const std::vector<Milestone>& milestones() {
  static const std::vector<Milestone> all{
      {"addition", 40, {"loss", kMost, 1.75}},
      {"sine", 200, {"loss", kMost, 1e-3}},
      {"kan", 200, {"loss", kMost, 1e-3}},
      {"nerf", 300, {"psnr_db", kLeast, 15}},
      {"digit_canvas", 200, {"test_accuracy", kLeast, 0.85}},
      {"mnist_cnn", 40, {"test_accuracy", kLeast, 0.3}},
      {"vae", 300, {"rebuilding_error", kMost, 38.5}},  // the mean picture has 39.6
      {"flow_matching", 8, {"loss", kMost, 1.8}},
      {"makemore", 40, {"test_loss", kMost, 2.7}},
      {"char_gpt", 20, {"loss", kMost, 2.9}},
      {"pokeformer", 60, {"loss", kMost, 1.6}},
      {"tiny_llm", 20, {"loss", kMost, 3}},
      {"mamba", 320, {"accuracy_8x", kLeast, 0.9}},
      {"mamba_hybrid", 150, {"loss", kMost, 2}},
      {"cartpole", 40, {"mean_length", kLeast, 30}},
      {"tic_tac_toe", 600, {"win_or_draw", kLeast, 0.7}},
  };
  return all;
}

class Samples : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, Samples, testing::Range<size_t>(0, milestones().size()),
                         [](const auto& info) { return std::string(milestones()[info.param].recipe); });

TEST_P(Samples, reach_their_milestone_and_have_something_to_show) {
  const Milestone& milestone = milestones()[GetParam()];
  const Recipe& recipe = recipes()[GetParam()];
  std::unique_ptr<Experiment> experiment;
  try {
    experiment = recipe.make({.steps = recipe.steps, .seed = recipe.seed, .device = "vulkan"});
  } catch (const Error& error) {
    if (error.exitCode() != ExitCode::NoDevice) throw;
    GTEST_SKIP() << error.what();
  }
  double value = NAN;
  for (uint64_t step = 1; step <= static_cast<uint64_t>(milestone.steps); ++step) {
    value = experiment->trainer().step(experiment->batch(step)).or_throw().loss;
  }
  (void)experiment->measure();
  EXPECT_FALSE(experiment->exhibits().empty());
  for (const auto& [name, metric] : experiment->measure()) {
    EXPECT_TRUE(std::isfinite(metric)) << name;
    if (name == milestone.goal.metric) value = metric;
  }
  if (milestone.goal.kind == kMost) {
    EXPECT_LE(value, milestone.goal.value);
  } else {
    EXPECT_GE(value, milestone.goal.value);
  }
}

/// Squared error of the mean of all training pictures as the answer to each test picture, summed over pixels.
double errorOfTheMeanPicture(const DigitData& data) {
  std::vector<double> mean(kDigitPixels, 0.0);
  for (size_t i = 0; i < data.train.pixels.size(); ++i)
    mean[i % kDigitPixels] += data.train.pixels[i] / static_cast<double>(data.train.count());
  double error = 0;
  for (size_t i = 0; i < data.test.pixels.size(); ++i) error += std::pow(mean[i % kDigitPixels] - data.test.pixels[i], 2);
  return error / static_cast<double>(data.test.count());
}

TEST(Recipes, error_of_a_dead_model_is_no_number) {
  for (const Recipe& recipe : {sine(), kan()}) {
    const auto experiment = recipe.make({.steps = 1, .seed = 1, .device = "reference"});
    ParameterValues values = experiment->trainer().download();
    for (auto& [name, numbers] : values) std::ranges::fill(numbers, NAN);
    experiment->trainer().upload(values);
    const Metrics metrics = experiment->measure();
    ASSERT_EQ(metrics.size(), 1u);
    EXPECT_TRUE(std::isnan(metrics[0].second)) << recipe.name << ": " << metrics[0].first << " is " << metrics[0].second;
  }
}

/// A decoder that answers everything with one picture does best with the mean.
TEST(Recipes, the_goal_of_the_autoencoder_is_out_of_reach_for_equal_pictures) {
  const Goal goal = vae().goal;
  EXPECT_EQ(goal.metric, "rebuilding_error");
  EXPECT_GT(errorOfTheMeanPicture(loadDigits("", vae().seed)), 1.5 * goal.value);
}

TEST(Recipes, are_complete_and_their_milestones_are_in_order) {
  std::set<std::string> names;
  ASSERT_EQ(recipes().size(), milestones().size());
  for (size_t i = 0; i < recipes().size(); ++i) {
    const Recipe& recipe = recipes()[i];
    std::string function = recipe.name;
    std::ranges::replace(function, '-', '_');
    EXPECT_EQ(function, milestones()[i].recipe);
    EXPECT_TRUE(names.insert(recipe.name).second) << recipe.name;
    if (!recipe.alias.empty()) {
      EXPECT_TRUE(names.insert(recipe.alias).second) << recipe.alias;
    }
    EXPECT_FALSE(recipe.goal.metric.empty()) << recipe.name;
    // A goal is looked at where there is a report.
    EXPECT_EQ(recipe.goal.by_step % recipe.report_every, 0) << recipe.name;
    EXPECT_LE(recipe.goal.by_step, recipe.steps) << recipe.name;
    EXPECT_LE(recipe.chunk, recipe.report_every) << recipe.name;
    if (recipe.measure_every > 0) {
      EXPECT_EQ(recipe.measure_every % recipe.report_every, 0) << recipe.name;
    }
  }
}

}  // namespace
}  // namespace lockstep::examples
