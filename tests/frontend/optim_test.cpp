// SPDX-License-Identifier: Apache-2.0
#include "frontend/optim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

TEST(Schedule, follows_its_formula_from_step_one) {
  EXPECT_EQ(rateAt(0.25, 100), 0.25);
  Schedule linear = schedule::linear({.peak = 0.005, .final = 0.0005, .steps = 1500});
  EXPECT_DOUBLE_EQ(rateAt(linear, 1), 0.005 + (0.0005 - 0.005) / 1500);
  EXPECT_DOUBLE_EQ(rateAt(linear, 1500), 0.0005);
  EXPECT_DOUBLE_EQ(rateAt(linear, 9000), 0.0005);
  Schedule cosine = schedule::cosine_annealing({.peak = 1, .final = 0, .steps = 4});
  EXPECT_NEAR(rateAt(cosine, 1), 0.5 * (1 + std::cos(M_PI / 4)), 1e-15);
  EXPECT_NEAR(rateAt(cosine, 2), 0.5, 1e-15);
  EXPECT_NEAR(rateAt(cosine, 5), 0, 1e-15);
  Schedule stairs = schedule::staircase({.peak = 8, .every = 3, .gamma = 0.5});
  EXPECT_EQ(rateAt(stairs, 3), 8);
  EXPECT_EQ(rateAt(stairs, 4), 4);
  Schedule multi = schedule::multi_step({.peak = 1, .milestones = {2, 5}, .gamma = 0.1});
  EXPECT_EQ(rateAt(multi, 1), 1);
  EXPECT_DOUBLE_EQ(rateAt(multi, 2), 0.1);
  EXPECT_DOUBLE_EQ(rateAt(multi, 5), 0.01);
}

TEST(Schedule, warmup_hands_over_with_its_own_count) {
  Schedule warm = schedule::warmup({.peak = 1, .steps = 4, .after = schedule::linear({.peak = 1, .final = 0, .steps = 2})});
  EXPECT_EQ(rateAt(warm, 1), 0.25);
  EXPECT_EQ(rateAt(warm, 4), 1);
  EXPECT_EQ(rateAt(warm, 5), 0.5);
  EXPECT_EQ(rateAt(warm, 6), 0);
}

TEST(Schedule, start_step_shifts_the_count) {
  Schedule shifted = schedule::linear({.peak = 1, .final = 0, .steps = 10, .start_step = 20});
  EXPECT_EQ(rateAt(shifted, 5), 0.9);  // s is at least 1
  EXPECT_EQ(rateAt(shifted, 25), 0.5);
}

TEST(Schedule, bad_numbers_are_rejected) {
  EXPECT_EQ(caught([] { schedule::linear({.peak = 1, .final = 0, .steps = 0}); }).code, "schedule.steps");
  EXPECT_EQ(caught([] { schedule::staircase({.peak = 1, .every = -1, .gamma = 1}); }).code, "schedule.steps");
  EXPECT_EQ(caught([] { schedule::linear({.peak = std::nan(""), .final = 0, .steps = 1}); }).code, "schedule.number");
}

TEST(Optimizer, options_become_a_spec) {
  OptimizerSpec spec = adamw({.lr = 0.01, .weight_decay = 0.1, .clip_grad_norm = 1});
  EXPECT_EQ(spec.name, OptimizerName::AdamW);
  EXPECT_EQ(spec.weight_decay, 0.1);
  EXPECT_EQ(spec.clip_grad_norm, 1);
  EXPECT_EQ(spec.beta2, 0.999);
  EXPECT_EQ(adam({.lr = 5e-3}).lr.peak, 5e-3);
  EXPECT_EQ(sgd({.momentum = 0.9, .nesterov = true}).name, OptimizerName::Sgd);
}

TEST(Optimizer, bad_numbers_are_rejected) {
  EXPECT_EQ(caught([] { adam({.beta1 = 1}); }).code, "optimizer.number");
  EXPECT_EQ(caught([] { adamw({.weight_decay = -1}); }).code, "optimizer.number");
  EXPECT_EQ(caught([] { sgd({.nesterov = true}); }).code, "optimizer.nesterov");
  EXPECT_EQ(caught([] { adam({.lr = INFINITY}); }).code, "schedule.number");
}

}  // namespace
}  // namespace lockstep
