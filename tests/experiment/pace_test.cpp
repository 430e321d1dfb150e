// SPDX-License-Identifier: Apache-2.0
#include "experiment/pace.h"

#include <gtest/gtest.h>

namespace lockstep::experiment {
namespace {

TEST(Pace, first_submission_with_its_compilation_says_nothing_of_the_rest) {
  Pace pace;
  EXPECT_FALSE(pace.stepsPerSecond().has_value());
  pace.add(60, 1);
  EXPECT_FALSE(pace.stepsPerSecond().has_value());
  EXPECT_EQ(pace.medianSeconds(), 60);
  pace.add(0.5, 10);
  EXPECT_NEAR(*pace.stepsPerSecond(), 20, 1e-9);
  EXPECT_NEAR(pace.medianSeconds(), 0.05, 1e-9);
}

TEST(Pace, only_the_last_hundred_steps_count) {
  Pace pace;
  pace.add(1, 1);
  pace.add(100, 50);
  pace.add(10, 100);
  EXPECT_NEAR(*pace.stepsPerSecond(), 10, 1e-9);
}

}  // namespace
}  // namespace lockstep::experiment
