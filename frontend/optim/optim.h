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

#include "ir/support/where.h"

namespace lockstep {

/// A learning rate as a function of the step t = 1, 2, …; a plain number is a constant schedule. Rates are finite and at least 0. With s =
/// max(1, t - start_step):
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
/// The same as a text of ir/program/formula.h, of the name `step`. Gives the same numbers, bit by bit.
std::string rateFormula(const Schedule& schedule);

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
// Errors "schedule.steps", "schedule.number" for a horizon below 1 or a rate that is negative or not finite.
Schedule linear(const Linear& options, Where where = Where::current());
Schedule cosine_annealing(const Linear& options, Where where = Where::current());
Schedule warmup(const Warmup& options, Where where = Where::current());
Schedule staircase(const Staircase& options, Where where = Where::current());
Schedule multi_step(const MultiStep& options, Where where = Where::current());
}  // namespace schedule

enum class OptimizerName : uint8_t { Adam, AdamW, Sgd, Lion };
std::string_view toString(OptimizerName name);  ///< "adam"

/// Chooses parameters by path name.
using NameFilter = std::function<bool(const std::string& parameter)>;

/// `count` slices of a parameter along an axis, from `first` on: rows of a matrix along axis 0, columns along axis 1.
struct RowRange {
  int64_t first = 0, count = 0;
  int64_t axis = 0;
};

/// What differs for some parameters. The first group whose filter matches a parameter is the one that applies.
struct ParameterGroup {
  NameFilter filter;
  double lr_factor = 1;                     ///< times the learning rate
  std::optional<double> weight_decay = {};  ///< for all of the group; absent: as for parameters without a group
  bool frozen = false;                      ///< keeps its values; costs no backward kernels and no moments
  /// Not empty: only these are trained. All other elements keep their bits, whatever the optimizer, and so do their moments and averages;
  /// their gradients count for no norm.
  std::vector<RowRange> rows = {};
};

/// What every optimizer can do beside its own rule. Order of a step: gradients are averaged over accumulated batches, normalised, clipped
/// by value, clipped by norm; then decay, moments and the update.
struct OptimizerCommon {
  /// Above 0: all gradients are scaled by min(1, clip_grad_norm / (norm + clip_epsilon)), with one norm over all of them.
  double clip_grad_norm = 0;
  double clip_epsilon = 1e-6;
  double clip_grad_value = 0;               ///< above 0: every gradient element is limited to [-clip_grad_value, clip_grad_value]
  NameFilter normalize_grads = {};          ///< gradients of the parameters it matches become g / (|g|₂ + 1e-8), each on its own
  std::vector<ParameterGroup> groups = {};  ///< the first one that matches a parameter applies
  /// Above 0: Trainer::download_ema() has averages, ema = ema_decay · ema + (1 - ema_decay) · p after every step, which begin at the
  /// parameters' initial (or uploaded) values.
  double ema_decay = 0;
  /// A step whose loss or gradient norm is not finite leaves parameters, moments, averages and buffers as they were.
  bool skip_non_finite = true;
  /// The gradient norm is computed (and reported) also without clip_grad_norm, so that gradients that are not finite are seen even where
  /// the loss is: one more reduction per step.
  bool check_gradients = false;
};

/// What adam(), adamw(), sgd() and lion() make.
/// Which parameters decay, and by how much: the weight_decay of the parameter's group if it has one; else the optimizer's weight_decay if
/// the parameter's flag says so (ParameterOptions::decay), or, without a flag, if its initializer does (decaysByDefault).
struct OptimizerSpec : OptimizerCommon {
  OptimizerName name = OptimizerName::Adam;
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool corrected_eps = false;
  double weight_decay = 0;
  double momentum = 0;
  bool nesterov = false;
};

/// m = β1 m + (1-β1) g, v = β2 v + (1-β2) g². With bias correction in the rate, p -= lr √(1-β2^t)/(1-β1^t) · m / (√v + eps) (Kingma and Ba,
/// end of section 2); with corrected_eps, p -= lr · m/(1-β1^t) / (√(v/(1-β2^t)) + eps), their algorithm 1, which PyTorch has.
struct AdamOptions {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool corrected_eps = false;
};
/// Adam with decoupled decay: p is first multiplied by 1 - lr · weight_decay (Loshchilov and Hutter, 2019).
struct AdamWOptions {
  Schedule lr = 1e-3;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool corrected_eps = false;
};
/// g' = g + weight_decay · p, v = momentum · v + g', p -= lr · v (nesterov: g' + momentum · v; without momentum: g').
struct SgdOptions {
  Schedule lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};
/// p -= lr · (sign(β1 m + (1-β1) g) + weight_decay · p), then m = β2 m + (1-β2) g (Chen et al., 2023).
struct LionOptions {
  Schedule lr = 1e-4;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.99;
};
//   adamw({.lr = 3e-4, .weight_decay = 0.1}, {.clip_grad_norm = 1})
// Errors "optimizer.number" for a value out of range, "optimizer.nesterov" for nesterov without momentum, "optimizer.group" for a group
// without a filter or with a weight decay that the optimizer lacks (adam). compile() throws "optimizer.filter" for a filter that matches no
// parameter, "optimizer.rows" for rows that a parameter of their group does not have, or of one that is frozen.
OptimizerSpec adam(AdamOptions options = {}, OptimizerCommon common = {}, Where where = Where::current());
OptimizerSpec adamw(AdamWOptions options = {}, OptimizerCommon common = {}, Where where = Where::current());
OptimizerSpec sgd(SgdOptions options = {}, OptimizerCommon common = {}, Where where = Where::current());
OptimizerSpec lion(LionOptions options = {}, OptimizerCommon common = {}, Where where = Where::current());

}  // namespace lockstep
