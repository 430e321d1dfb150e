// SPDX-License-Identifier: Apache-2.0
// Optimizers and learning-rate schedules as plain data. Rates are evaluated on the host in f64 for every step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A learning rate as a function of the step t = 1, 2, …; a plain number is a constant schedule. With s = max(1, t - start_step):
///   linear            peak + (final - peak) · min(s / steps, 1)
///   cosine_annealing  final + ½ (peak - final) (1 + cos(π · min(s / steps, 1)))
///   warmup            s <= steps: peak · s / steps, then after(s - steps)
///   staircase         peak · gamma^floor((s - 1) / every)
///   multi_step        peak · gamma^(number of milestones <= s)
struct Schedule {
  enum class Kind : uint8_t { Constant, Linear, CosineAnnealing, Warmup, Staircase, MultiStep };
  Kind kind = Kind::Constant;
  double peak = 0;
  double final = 0;
  double gamma = 1;
  int64_t steps = 1;
  int64_t every = 1;
  std::vector<int64_t> milestones;
  std::shared_ptr<const Schedule> after;
  std::optional<int64_t> start_step;  ///< absent: 0, or the current step when set_lr gets the schedule

  Schedule() = default;
  Schedule(double rate) : peak(rate) {}
};
/// The rate of step `t` (1-based).
double rateAt(const Schedule& schedule, int64_t t);

namespace schedule {
struct Linear {
  double peak, final;
  int64_t steps;
  std::optional<int64_t> start_step = {};
};
struct Warmup {
  double peak;
  int64_t steps;
  Schedule after;
  std::optional<int64_t> start_step = {};
};
struct Staircase {
  double peak;
  int64_t every;
  double gamma;
  std::optional<int64_t> start_step = {};
};
struct MultiStep {
  double peak;
  std::vector<int64_t> milestones;
  double gamma;
  std::optional<int64_t> start_step = {};
};
// Errors "schedule.steps", "schedule.number" for a horizon below 1 or a rate that is not finite.
Schedule linear(const Linear& options);
Schedule cosine_annealing(const Linear& options);
Schedule warmup(const Warmup& options);
Schedule staircase(const Staircase& options);
Schedule multi_step(const MultiStep& options);
}  // namespace schedule

enum class OptimizerName : uint8_t { Adam, AdamW, Sgd };
std::string_view toString(OptimizerName name);  ///< "adam"

/// What adam(), adamw() and sgd() make. Which parameters decay: `decay_filter` if set, else the flag of the parameter.
struct OptimizerSpec {
  OptimizerName name = OptimizerName::Adam;
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool nesterov = false;
  double clip_grad_norm = 0;  ///< 0: none
  double clip_epsilon = 1e-6;
  std::function<bool(const std::string& parameter)> decay_filter;
};

/// m and v with bias correction in the rate: p -= lr √(1-β2^t)/(1-β1^t) · m / (√v + eps).
struct AdamOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_grad_norm = 0;   ///< above 0: gradients are scaled to this norm over all parameters when it is exceeded
  double clip_epsilon = 1e-6;  ///< added to the norm before dividing
};
/// Adam with decoupled decay: p is first multiplied by 1 - lr · weight_decay.
struct AdamWOptions {
  Schedule lr = 1e-3;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_grad_norm = 0;
  double clip_epsilon = 1e-6;
  std::function<bool(const std::string& parameter)> decay_filter = {};
};
struct SgdOptions {
  Schedule lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  ///< added to the gradient
  double clip_grad_norm = 0;
  double clip_epsilon = 1e-6;
  std::function<bool(const std::string& parameter)> decay_filter = {};
};
// Errors "optimizer.number" for a value out of range, "optimizer.nesterov" for nesterov without momentum.
OptimizerSpec adam(AdamOptions options = {});
OptimizerSpec adamw(AdamWOptions options = {});
OptimizerSpec sgd(SgdOptions options = {});

}  // namespace lockstep
