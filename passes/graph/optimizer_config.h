// SPDX-License-Identifier: Apache-2.0
// What the optimizer pass is told, the names of its states, and the scalars that a step brings along.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::passes {

enum class OptimizerKind : uint8_t { Adam, AdamW, Sgd, Lion };

/// `count` slices along an axis of a parameter.
struct RowRange {
  int64_t first = 0, count = 0, axis = 0;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// What applies to one parameter.
struct ParameterSetting {
  double lr_factor = 1;
  double weight_decay = 0;
  bool normalize = false;           ///< its gradient becomes g / (|g|₂ + 1e-8)
  bool frozen = false;              ///< no update, no moments; the gradient is not asked for
  std::vector<RowRange> rows = {};  ///< not empty: all other elements, their moments and averages stay bit for bit
  friend bool operator==(const ParameterSetting&, const ParameterSetting&) = default;
};

/// See loss_scale.h.
struct LossScaling {
  double initial = 65536;          ///< a power of two
  int64_t growth_interval = 2000;  ///< updates in a row before the scale is doubled
  friend bool operator==(const LossScaling&, const LossScaling&) = default;
};

/// Learning rates are step scalars, so they may change without compiling again.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::Adam;
  double beta1 = 0.9, beta2 = 0.999;  ///< adam, adamw, lion
  double epsilon = 1e-8;              ///< adam, adamw
  bool corrected_epsilon = false;     ///< see stepScalars
  double weight_decay = 0;            ///< adamw, lion: decoupled; sgd: added to the gradient. Of parameters that decay by their flag
  double momentum = 0;                ///< sgd
  bool nesterov = false;              ///< sgd, needs momentum > 0
  double clip_grad_value = 0;         ///< 0: none; else every gradient element is limited to [-value, value]
  double clip_grad_norm = 0;          ///< 0: none; else g * min(1, max / (norm + clip_epsilon)), one norm over all trained parameters
  double clip_epsilon = 1e-6;
  double ema_decay = 0;                          ///< 0: none; else the state `ema` follows the parameters
  int64_t accumulate = 1;                        ///< runs whose gradients are averaged before one update
  bool skip_non_finite = true;                   ///< a loss or norm that is not finite leaves every state as it was
  bool check_gradients = false;                  ///< there is a norm also without clip_grad_norm
  std::optional<LossScaling> loss_scaling = {};  ///< gradients come multiplied by a scale; needs skip_non_finite and check_gradients
  /// By name; a parameter that is not here has weight_decay if its flag says that it decays.
  std::map<std::string, ParameterSetting, std::less<>> parameters = {};
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

ParameterSetting settingOf(const OptimizerConfig& config, const graph::ParameterInfo& parameter);
/// The parameters that are not frozen, in their order. Moments lie as layoutParameters places these.
std::vector<graph::ParameterInfo> trainedParameters(const std::vector<graph::ParameterInfo>& parameters, const OptimizerConfig& config);

/// State leaves: f32[total] of the layout of all parameters (params, ema) or of the trained ones.
inline constexpr std::string_view kParameterState = "params";
inline constexpr std::string_view kAverageState = "ema";
inline constexpr std::string_view kFirstMomentState = "m";  ///< adam, lion: first moment; sgd: velocity
inline constexpr std::string_view kSecondMomentState = "v";
inline constexpr std::string_view kAccumulatedState = "accumulated";  ///< gradients since the last update

/// f32[1], with loss_scaling: the scale, and the updates since it changed.
inline constexpr std::string_view kLossScaleState = "loss_scale", kGoodStepsState = "loss_scale_good_steps";
inline constexpr double kLargestLossScale = 16777216;  // 2^24: from there on f32 cannot count steps one by one

/// One of the states above, other than the parameters themselves.
bool isOptimizerState(std::string_view name);
/// One of them that holds something for every trained parameter.
bool isMomentState(std::string_view name);

/// The result f32[] of every run with clip_grad_norm or check_gradients: the norm of all gradients before they are clipped by it.
inline constexpr std::string_view kGradientNorm = "step.grad_norm";

/// The result f32[] of every run with loss_scaling: the scale that its gradients had.
inline constexpr std::string_view kLossScale = "step.loss_scale";

/// The input f32[4] of every run.
inline constexpr std::string_view kScalarsInput = "step.scalars";
/// {rate, lr, epsilon, apply} of a step, as formulas of program::kStepNames. With t = step, c1 = 1 - beta1^t and c2 = 1 - beta2^t the rate
/// of adam and adamw is lr √c2 / c1 (Kingma and Ba, end of section 2), so the step is rate · m / (√v + epsilon). There epsilon is outside
/// of the bias correction; corrected_epsilon sends epsilon √c2, which gives lr · (m / c1) / (√(v / c2) + epsilon), their algorithm 1 and
/// PyTorch's form. `apply` is 0 in the runs of a step before its last one.
std::array<std::string, 4> stepFormulas(const OptimizerConfig& config);
/// Their values in step t (1-based).
std::array<double, 4> stepScalars(const OptimizerConfig& config, double lr, uint64_t t, bool apply = true);

}  // namespace lockstep::passes
