// SPDX-License-Identifier: Apache-2.0
#include "frontend/optim/optim.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ir/program/formula.h"
#include "ir/program/program.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

struct ScheduleRow {
  const char* name;
  Schedule schedule;
  std::vector<std::pair<int64_t, double>> rates;  // at step t
};

std::vector<ScheduleRow> scheduleRows() {
  const Schedule linear = schedule::linear({.peak = 1, .final = 0, .steps = 10});
  Schedule late = schedule::linear({.peak = 1, .final = 0, .steps = 10, .start_step = 20});
  return {
      {"constant", 0.25, {{1, 0.25}, {100, 0.25}}},
      {"linear", linear, {{1, 0.9}, {5, 0.5}, {10, 0}, {9000, 0}}},
      // s is at least 1.
      {"linear_with_start", late, {{1, 0.9}, {20, 0.9}, {21, 0.9}, {25, 0.5}, {30, 0}}},
      {"rising", schedule::linear({.peak = 0, .final = 2, .steps = 4}), {{1, 0.5}, {4, 2}, {5, 2}}},
      {"cosine",
       schedule::cosine_annealing({.peak = 1, .final = 0.2, .steps = 4}),
       {{1, 0.2 + 0.4 * (1 + std::sqrt(0.5))}, {2, 0.6}, {3, 0.2 + 0.4 * (1 - std::sqrt(0.5))}, {4, 0.2}, {5, 0.2}}},
      // What comes after has its own count.
      {"warmup", schedule::warmup({.peak = 1, .steps = 4, .after = linear}), {{1, 0.25}, {4, 1}, {5, 0.9}, {14, 0}}},
      {"warmup_of_warmup",
       schedule::warmup({.peak = 1, .steps = 2, .after = schedule::warmup({.peak = 8, .steps = 2, .after = 3})}),
       {{1, 0.5}, {2, 1}, {3, 4}, {4, 8}, {5, 3}}},
      {"staircase", schedule::staircase({.peak = 8, .every = 3, .gamma = 0.5}), {{1, 8}, {3, 8}, {4, 4}, {6, 4}, {7, 2}}},
      {"multi_step",
       schedule::multi_step({.peak = 1, .milestones = {2, 5}, .gamma = 0.1}),
       {{1, 1}, {2, 0.1}, {4, 0.1}, {5, 0.01}, {9, 0.01}}},
      {"multi_step_with_start", schedule::multi_step({.peak = 1, .milestones = {2}, .gamma = 0.5, .start_step = 10}), {{11, 1}, {12, 0.5}}},
  };
}

class Rates : public testing::TestWithParam<ScheduleRow> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Rates, testing::ValuesIn(scheduleRows()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Rates, follow_the_formula) {
  for (auto [t, rate] : GetParam().rates) EXPECT_NEAR(rateAt(GetParam().schedule, t), rate, 1e-14) << "step " << t;
}

TEST_P(Rates, are_those_of_the_text_of_the_formula) {
  const Schedule& schedule = GetParam().schedule;
  const auto formula = program::Formula::parse(rateFormula(schedule), program::kRateNames).orThrow();
  std::vector<int64_t> steps = {100, 65537, (1 << 24) + 1};
  for (int64_t t = 1; t < 40; ++t) steps.push_back(t);
  for (const int64_t t : steps)
    EXPECT_EQ(formula(std::array{static_cast<double>(t)}), rateAt(schedule, t)) << formula.text() << " in step " << t;
}

TEST(Schedule, formulas_may_be_nested_deeply) {
  Schedule schedule = 0.25;
  for (int i = 0; i < 64; ++i) schedule = schedule::warmup({.peak = 0.1 * i, .steps = 2, .after = schedule});
  const auto formula = program::Formula::parse(rateFormula(schedule), program::kRateNames).orThrow();
  for (int64_t t = 1; t < 140; ++t) EXPECT_EQ(formula(std::array{static_cast<double>(t)}), rateAt(schedule, t)) << t;
}

TEST(Schedule, bad_numbers_are_rejected) {
  EXPECT_EQ(caught([] { schedule::linear({.peak = 1, .final = 0, .steps = 0}); }).code, "schedule.steps");
  EXPECT_EQ(caught([] { schedule::staircase({.peak = 1, .every = -1, .gamma = 1}); }).code, "schedule.steps");
  EXPECT_EQ(caught([] { schedule::linear({.peak = std::nan(""), .final = 0, .steps = 1}); }).code, "schedule.number");
  EXPECT_EQ(caught([] { schedule::warmup({.peak = 1, .steps = 0, .after = 1}); }).code, "schedule.steps");
  EXPECT_EQ(caught([] { schedule::multi_step({.peak = 1, .milestones = {0}, .gamma = 1}); }).code, "schedule.steps");
}

TEST(Schedule, rates_are_finite_and_not_negative) {
  EXPECT_EQ(caught([] { schedule::linear({.peak = 1, .final = -1e-9, .steps = 5}); }).code, "schedule.number");
  EXPECT_EQ(caught([] { schedule::cosine_annealing({.peak = -1, .final = 0, .steps = 5}); }).code, "schedule.number");
  EXPECT_EQ(caught([] { schedule::warmup({.peak = 1, .steps = 2, .after = -1}); }).code, "schedule.number");
  EXPECT_EQ(caught([] { schedule::staircase({.peak = 1, .every = 2, .gamma = -0.5}); }).code, "schedule.number");
  EXPECT_EQ(caught([] { schedule::multi_step({.peak = 1, .milestones = {2}, .gamma = INFINITY}); }).code, "schedule.number");
  for (double rate : {-1.0, double{INFINITY}, double{NAN}}) {
    for (auto make : {+[](double lr) { adam({.lr = lr}); }, +[](double lr) { adamw({.lr = lr}); }, +[](double lr) { sgd({.lr = lr}); },
                      +[](double lr) { lion({.lr = lr}); }})
      EXPECT_EQ(caught([&] { make(rate); }).code, "schedule.number") << rate;
  }
  const Diagnostic error = caught([] { sgd({.lr = -5}); });
  EXPECT_EQ(error.message, "the learning rate is -5");
  EXPECT_EQ(error.remedy, "a learning rate is a finite number and at least 0");
}

TEST(Optimizer, options_become_a_spec) {
  OptimizerSpec spec = adamw({.lr = 0.01, .weight_decay = 0.1}, {.clip_grad_norm = 1});
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
  EXPECT_EQ(caught([] { adam({}, {.ema_decay = 1}); }).code, "optimizer.number");
  EXPECT_EQ(caught([] { lion({}, {.clip_grad_value = -1}); }).code, "optimizer.number");
  EXPECT_EQ(caught([] { sgd({}, {.groups = {{.filter = nullptr}}}); }).code, "optimizer.group");
  ParameterGroup decaying{.filter = [](const std::string&) { return true; }, .weight_decay = 0.1};
  EXPECT_EQ(caught([&] { adam({}, {.groups = {decaying}}); }).code, "optimizer.group");
  decaying.lr_factor = -1;
  EXPECT_EQ(caught([&] { adamw({}, {.groups = {decaying}}); }).code, "optimizer.number");
}

}  // namespace
}  // namespace lockstep
