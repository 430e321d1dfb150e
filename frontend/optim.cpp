// SPDX-License-Identifier: Apache-2.0
#include "frontend/optim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ir/support/diagnostic.h"

namespace lockstep {

namespace {

[[noreturn]] void reject(std::string code, std::string message) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = {}}, ExitCode::Usage);
}

void needSteps(std::string_view what, int64_t steps) {
  if (steps < 1) reject("schedule.steps", fmt::format("{} is {}, but must be at least 1", what, steps));
}
void needFinite(std::string_view what, double value) {
  if (!std::isfinite(value)) reject("schedule.number", fmt::format("{} is {}", what, value));
}
void needRange(std::string_view what, double value, bool inside) {
  if (!inside) reject("optimizer.number", fmt::format("{} is {}, out of its range", what, value));
}

Schedule ramp(Schedule::Kind kind, const schedule::Linear& options) {
  needFinite("peak", options.peak);
  needFinite("final", options.final);
  needSteps("steps", options.steps);
  Schedule made;
  made.kind = kind;
  made.peak = options.peak;
  made.final = options.final;
  made.steps = options.steps;
  made.start_step = options.start_step;
  return made;
}

}  // namespace

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
    case Schedule::Kind::Staircase:
      return schedule.peak * std::pow(schedule.gamma, static_cast<double>((s - 1) / schedule.every));
    case Schedule::Kind::MultiStep: {
      auto passed =
          std::count_if(schedule.milestones.begin(), schedule.milestones.end(), [s](int64_t milestone) { return milestone <= s; });
      return schedule.peak * std::pow(schedule.gamma, static_cast<double>(passed));
    }
  }
  internalError("unknown schedule");
}

namespace schedule {

Schedule linear(const Linear& options) { return ramp(Schedule::Kind::Linear, options); }
Schedule cosine_annealing(const Linear& options) { return ramp(Schedule::Kind::CosineAnnealing, options); }

Schedule warmup(const Warmup& options) {
  needFinite("peak", options.peak);
  needSteps("steps", options.steps);
  Schedule made;
  made.kind = Schedule::Kind::Warmup;
  made.peak = options.peak;
  made.steps = options.steps;
  made.after = std::make_shared<const Schedule>(options.after);
  made.start_step = options.start_step;
  return made;
}

Schedule staircase(const Staircase& options) {
  needFinite("peak", options.peak);
  needFinite("gamma", options.gamma);
  needSteps("every", options.every);
  Schedule made;
  made.kind = Schedule::Kind::Staircase;
  made.peak = options.peak;
  made.every = options.every;
  made.gamma = options.gamma;
  made.start_step = options.start_step;
  return made;
}

Schedule multi_step(const MultiStep& options) {
  needFinite("peak", options.peak);
  needFinite("gamma", options.gamma);
  Schedule made;
  made.kind = Schedule::Kind::MultiStep;
  made.peak = options.peak;
  made.milestones = options.milestones;
  made.gamma = options.gamma;
  made.start_step = options.start_step;
  return made;
}

}  // namespace schedule

std::string_view toString(OptimizerName name) {
  static constexpr std::array<std::string_view, 3> kNames{"adam", "adamw", "sgd"};
  return kNames[static_cast<size_t>(name)];
}

namespace {

void check(const OptimizerSpec& spec) {
  needRange("beta1", spec.beta1, spec.beta1 >= 0 && spec.beta1 < 1);
  needRange("beta2", spec.beta2, spec.beta2 >= 0 && spec.beta2 < 1);
  needRange("eps", spec.eps, spec.eps >= 0 && std::isfinite(spec.eps));
  needRange("weight_decay", spec.weight_decay, spec.weight_decay >= 0 && std::isfinite(spec.weight_decay));
  needRange("momentum", spec.momentum, spec.momentum >= 0 && spec.momentum < 1);
  needRange("clip_grad_norm", spec.clip_grad_norm, spec.clip_grad_norm >= 0 && std::isfinite(spec.clip_grad_norm));
  needRange("clip_epsilon", spec.clip_epsilon, spec.clip_epsilon >= 0 && std::isfinite(spec.clip_epsilon));
  needFinite("lr", rateAt(spec.lr, 1));
  if (spec.nesterov && spec.momentum <= 0) reject("optimizer.nesterov", "nesterov needs a momentum above 0");
}

}  // namespace

OptimizerSpec adam(AdamOptions options) {
  OptimizerSpec spec;
  spec.name = OptimizerName::Adam;
  spec.lr = std::move(options.lr);
  spec.beta1 = options.beta1;
  spec.beta2 = options.beta2;
  spec.eps = options.eps;
  spec.clip_grad_norm = options.clip_grad_norm;
  spec.clip_epsilon = options.clip_epsilon;
  check(spec);
  return spec;
}

OptimizerSpec adamw(AdamWOptions options) {
  OptimizerSpec spec = adam({.lr = std::move(options.lr),
                             .beta1 = options.beta1,
                             .beta2 = options.beta2,
                             .eps = options.eps,
                             .clip_grad_norm = options.clip_grad_norm,
                             .clip_epsilon = options.clip_epsilon});
  spec.name = OptimizerName::AdamW;
  spec.weight_decay = options.weight_decay;
  spec.decay_filter = std::move(options.decay_filter);
  check(spec);
  return spec;
}

OptimizerSpec sgd(SgdOptions options) {
  OptimizerSpec spec;
  spec.name = OptimizerName::Sgd;
  spec.lr = std::move(options.lr);
  spec.momentum = options.momentum;
  spec.nesterov = options.nesterov;
  spec.weight_decay = options.weight_decay;
  spec.clip_grad_norm = options.clip_grad_norm;
  spec.clip_epsilon = options.clip_epsilon;
  spec.decay_filter = std::move(options.decay_filter);
  check(spec);
  return spec;
}

}  // namespace lockstep
