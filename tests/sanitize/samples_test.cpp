// SPDX-License-Identifier: Apache-2.0
// Every kernel that the samples' programs have, forward, backward and update: the sanitizer finds nothing in them, and their losses are
// those of the reference.
#include <gtest/gtest.h>

#include "examples/recipes.h"

namespace lockstep {
namespace {

class Samples : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, Samples, ::testing::Range<size_t>(0, examples::recipes().size()), [](const auto& info) {
  std::string name = examples::recipes()[info.param].name;
  std::ranges::replace(name, '-', '_');
  return name;
});

std::vector<float> lossesOn(const std::string& device, const Recipe& recipe, std::vector<Finding>& findings) {
  const std::unique_ptr<Experiment> experiment = recipe.make({.steps = recipe.steps, .seed = recipe.seed, .device = device});
  std::vector<float> losses;
  for (uint64_t step = 1; step <= 2; ++step) losses.push_back(experiment->trainer().step(experiment->batch(step)).or_throw().loss);
  findings = experiment->trainer().findings();
  return losses;
}

TEST_P(Samples, have_no_findings) {
  const Recipe& recipe = examples::recipes()[GetParam()];
  std::vector<Finding> found, none;
  const std::vector<float> watched = lossesOn("sanitizer", recipe, found), plain = lossesOn("reference", recipe, none);
  EXPECT_EQ(watched, plain);
  EXPECT_TRUE(none.empty());
  for (const Finding& finding : found) ADD_FAILURE() << toString(finding);
}

}  // namespace
}  // namespace lockstep
