// SPDX-License-Identifier: Apache-2.0
#include "frontend/optim/optim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "frontend/optim/checks.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/throw_error.h"

namespace lockstep {

namespace {

using detail::reject;

void needSteps(std::string_view what, int64_t steps) {
  if (steps < 1) reject("schedule.steps", fmt::format("{} is {}, but must be at least 1", what, steps), "give a number of steps");
}
/// Of a learning rate or what it is multiplied by.
void needRate(std::string_view what, double value) {
  if (std::isfinite(value) && value >= 0) return;
  reject("schedule.number", fmt::format("{} is {}", what, value), "a learning rate is a finite number and at least 0");
}
void needRange(std::string_view what, double value, bool inside, std::string_view range) {
  if (!inside)
    reject("optimizer.number", fmt::format("{} is {}, out of its range", what, value), fmt::format("give a number of {}", range));
}

Schedule checked(Schedule schedule) {
  detail::checkSchedule(schedule);
  return schedule;
}

Schedule ramp(Schedule::Kind kind, const schedule::Linear& options) {
  Schedule made;
  made.kind = kind;
  made.peak = options.peak;
  made.final = options.final;
  made.steps = options.steps;
  made.start_step = options.start_step;
  return checked(std::move(made));
}

}  // namespace

void detail::checkSchedule(const Schedule& schedule) {
  const bool constant = schedule.kind == Schedule::Kind::Constant;
  needRate(constant ? "the learning rate" : "the peak of the learning rate", schedule.peak);
  needRate("the final learning rate", schedule.final);
  needRate("gamma", schedule.gamma);
  needSteps("steps", schedule.steps);
  needSteps("every", schedule.every);
  for (int64_t milestone : schedule.milestones) needSteps("a milestone", milestone);
  if (schedule.kind != Schedule::Kind::Warmup) return;
  if (!schedule.after) reject("schedule.steps", "nothing comes after the warmup", "make it with ls::schedule::warmup");
  checkSchedule(*schedule.after);
}

double detail::checkedRate(const Schedule& schedule, int64_t t) {
  const double rate = rateAt(schedule, t);
  if (rate >= 0 && std::isfinite(static_cast<float>(rate))) return rate;
  reject("schedule.number", fmt::format("the learning rate of step {} is {}", t, rate),
         "a learning rate is a finite number and at least 0; look at the schedule or call set_lr");
}

double rateAt(const Schedule& schedule, int64_t t) {
  int64_t s = std::max<int64_t>(1, t - schedule.start_step.value_or(0));
  double progress = std::min(static_cast<double>(s) / static_cast<double>(schedule.steps), 1.0);
  switch (schedule.kind) {
    case Schedule::Kind::Constant:
      return schedule.peak;
    case Schedule::Kind::Linear:
      return schedule.peak + (schedule.final - schedule.peak) * progress;
    case Schedule::Kind::CosineAnnealing:
      return schedule.final + 0.5 * (schedule.peak - schedule.final) * (1 + std::cos(std::numbers::pi * progress));
    case Schedule::Kind::Warmup:
      return s <= schedule.steps ? schedule.peak * progress : rateAt(*schedule.after, s - schedule.steps);
    case Schedule::Kind::Staircase: {
      int64_t stairs = (s - 1) / schedule.every;
      return schedule.peak * std::pow(schedule.gamma, static_cast<double>(stairs));
    }
    case Schedule::Kind::MultiStep: {
      auto passed =
          std::count_if(schedule.milestones.begin(), schedule.milestones.end(), [s](int64_t milestone) { return milestone <= s; });
      return schedule.peak * std::pow(schedule.gamma, static_cast<double>(passed));
    }
  }
  internalError("unknown schedule");
}

namespace {

/// `t` is the step as a formula.
std::string rateFormula(const Schedule& schedule, std::string t) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  // The smallest step is 1, so only a start elsewhere can lead below it.
  std::string s = std::move(t);
  if (schedule.start_step) s = fmt::format("max(1, {} - {})", s, *schedule.start_step);
  const std::string progress = fmt::format("min({} / {}, 1)", s, schedule.steps);
  const auto fallen = [&](const std::string& times) { return fmt::format("{} * pow({}, {})", schedule.peak, schedule.gamma, times); };
  switch (schedule.kind) {
    case Schedule::Kind::Constant:
      return number(schedule.peak);
    case Schedule::Kind::Linear:
      return fmt::format("{} + {} * {}", schedule.peak, number(schedule.final - schedule.peak), progress);
    case Schedule::Kind::CosineAnnealing:
      return fmt::format("{} + {} * (1 + cos({} * {}))", schedule.final, number(0.5 * (schedule.peak - schedule.final)), std::numbers::pi,
                         progress);
    case Schedule::Kind::Warmup:
      return fmt::format("select(at_least({}, {}), {} * {}, {})", schedule.steps, s, schedule.peak, progress,
                         rateFormula(*schedule.after, fmt::format("({} - {})", s, schedule.steps)));
    case Schedule::Kind::Staircase:
      return fallen(fmt::format("floor(({} - 1) / {})", s, schedule.every));
    case Schedule::Kind::MultiStep: {
      std::string passed;
      for (const int64_t milestone : schedule.milestones)
        passed += fmt::format("{}at_least({}, {})", passed.empty() ? "" : " + ", s, milestone);
      return fallen(passed.empty() ? "0" : passed);
    }
  }
  internalError("unknown schedule");
}

}  // namespace

std::string rateFormula(const Schedule& schedule) { return rateFormula(schedule, "step"); }

namespace schedule {

Schedule linear(const Linear& options, Where where) {
  return detail::atCall(where, [&] { return ramp(Schedule::Kind::Linear, options); });
}
Schedule cosine_annealing(const Linear& options, Where where) {
  return detail::atCall(where, [&] { return ramp(Schedule::Kind::CosineAnnealing, options); });
}

Schedule warmup(const Warmup& options, Where where) {
  Schedule made;
  made.kind = Schedule::Kind::Warmup;
  made.peak = options.peak;
  made.steps = options.steps;
  made.after = std::make_shared<const Schedule>(options.after);
  made.start_step = options.start_step;
  return detail::atCall(where, [&] { return checked(std::move(made)); });
}

Schedule staircase(const Staircase& options, Where where) {
  Schedule made;
  made.kind = Schedule::Kind::Staircase;
  made.peak = options.peak;
  made.every = options.every;
  made.gamma = options.gamma;
  made.start_step = options.start_step;
  return detail::atCall(where, [&] { return checked(std::move(made)); });
}

Schedule multi_step(const MultiStep& options, Where where) {
  Schedule made;
  made.kind = Schedule::Kind::MultiStep;
  made.peak = options.peak;
  made.milestones = options.milestones;
  made.gamma = options.gamma;
  made.start_step = options.start_step;
  return detail::atCall(where, [&] { return checked(std::move(made)); });
}

}  // namespace schedule

std::string_view toString(OptimizerName name) {
  static constexpr std::array<std::string_view, 4> kNames{"adam", "adamw", "sgd", "lion"};
  return kNames[static_cast<size_t>(name)];
}

void detail::checkOptimizer(const OptimizerSpec& spec) {
  auto notNegative = [](std::string_view what, double value) { needRange(what, value, value >= 0 && std::isfinite(value), "0 or more"); };
  auto fraction = [](std::string_view what, double value) { needRange(what, value, value >= 0 && value < 1, "at least 0 and below 1"); };
  fraction("beta1", spec.beta1);
  fraction("beta2", spec.beta2);
  fraction("momentum", spec.momentum);
  fraction("ema_decay", spec.ema_decay);
  notNegative("eps", spec.eps);
  notNegative("weight_decay", spec.weight_decay);
  notNegative("clip_grad_norm", spec.clip_grad_norm);
  notNegative("clip_epsilon", spec.clip_epsilon);
  notNegative("clip_grad_value", spec.clip_grad_value);
  checkSchedule(spec.lr);
  if (spec.nesterov && spec.momentum <= 0)
    reject("optimizer.nesterov", "nesterov needs a momentum above 0", "set .momentum, 0.9 for example");
  for (const ParameterGroup& group : spec.groups) {
    if (!group.filter)
      reject("optimizer.group", "a parameter group has no filter",
             "set .filter to a function of a parameter's name that says which ones belong to the group");
    notNegative("lr_factor", group.lr_factor);
    notNegative("weight_decay", group.weight_decay.value_or(0));
    if (spec.name == OptimizerName::Adam && group.weight_decay.value_or(0) != 0)
      reject("optimizer.group", "a parameter group has a weight decay, which adam lacks", "use adamw");
  }
}

namespace {

template <class Options>
OptimizerSpec adamOf(OptimizerName name, const Options& options) {
  OptimizerSpec spec;
  spec.name = name;
  spec.beta1 = options.beta1;
  spec.beta2 = options.beta2;
  spec.eps = options.eps;
  spec.corrected_eps = options.corrected_eps;
  return spec;
}

/// The spec with what all optimizers share, checked.
OptimizerSpec finished(OptimizerSpec spec, Schedule lr, OptimizerCommon common, const Where& where) {
  static_cast<OptimizerCommon&>(spec) = std::move(common);
  spec.lr = std::move(lr);
  detail::atCall(where, [&] { detail::checkOptimizer(spec); });
  return spec;
}

}  // namespace

OptimizerSpec adam(AdamOptions options, OptimizerCommon common, Where where) {
  return finished(adamOf(OptimizerName::Adam, options), std::move(options.lr), std::move(common), where);
}

OptimizerSpec adamw(AdamWOptions options, OptimizerCommon common, Where where) {
  OptimizerSpec spec = adamOf(OptimizerName::AdamW, options);
  spec.weight_decay = options.weight_decay;
  return finished(std::move(spec), std::move(options.lr), std::move(common), where);
}

OptimizerSpec sgd(SgdOptions options, OptimizerCommon common, Where where) {
  OptimizerSpec spec;
  spec.name = OptimizerName::Sgd;
  spec.momentum = options.momentum;
  spec.nesterov = options.nesterov;
  spec.weight_decay = options.weight_decay;
  return finished(std::move(spec), std::move(options.lr), std::move(common), where);
}

OptimizerSpec lion(LionOptions options, OptimizerCommon common, Where where) {
  OptimizerSpec spec;
  spec.name = OptimizerName::Lion;
  spec.beta1 = options.beta1;
  spec.beta2 = options.beta2;
  spec.weight_decay = options.weight_decay;
  return finished(std::move(spec), std::move(options.lr), std::move(common), where);
}

}  // namespace lockstep
