// SPDX-License-Identifier: Apache-2.0
#include "experiment/goal_watch.h"

#include <gtest/gtest.h>

namespace lockstep::experiment {
namespace {

TEST(GoalWatch, metric_reaches_it_or_its_step_is_over) {
  GoalWatch goal({"exact", Goal::Kind::AtLeast, 0.4, 20});
  const std::vector<float> losses(30, 1.0f);
  goal.look(10, {{"other", 1}}, losses);
  EXPECT_FALSE(goal.due(10));
  EXPECT_TRUE(goal.due(20));
  goal.look(20, {{"exact", 0.5}}, losses);
  EXPECT_EQ(goal.reachedAt(), 20);
  EXPECT_EQ(goal.text(), "exact at least 0.4 by step 20");
  GoalWatch late({"exact", Goal::Kind::AtLeast, 0.4, 20});
  late.look(30, {{"exact", 0.5}}, losses);
  EXPECT_FALSE(late.reachedAt().has_value());
  EXPECT_FALSE(GoalWatch({}).due(1000));
}

TEST(GoalWatch, loss_is_the_mean_of_twenty_steps) {
  std::vector<float> losses(40, 0.0f);
  losses[30] = 20;
  GoalWatch strict({"loss", Goal::Kind::AtMost, 0.5, 100}), loose({"loss", Goal::Kind::AtMost, 1, 100});
  strict.look(40, {}, losses);
  loose.look(40, {}, losses);
  EXPECT_FALSE(strict.reachedAt().has_value());
  EXPECT_EQ(loose.reachedAt(), 40);
}

TEST(GoalWatch, what_was_reached_before_a_resumption_stays) {
  History history{.losses = std::vector<float>(30, 1.0f), .reports = {}};
  history.reports.push_back({.step = 20, .metrics = {{"exact", 0.5}}});
  GoalWatch goal({"exact", Goal::Kind::AtLeast, 0.4, 20});
  goal.lookBack(history, 10);
  EXPECT_EQ(goal.reachedAt(), 20);
}

}  // namespace
}  // namespace lockstep::experiment
