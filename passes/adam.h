// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"

namespace lockstep::passes {

enum class OptimizerKind : uint8_t { Adam, AdamW, Sgd };

/// The update rule; rates are step scalars, so they may change without compiling again.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::Adam;
  double beta1 = 0.9, beta2 = 0.999,
         epsilon = 1e-8;      ///< adam, adamw; epsilon is outside the bias correction (Kingma and Ba, end of section 2)
  double weight_decay = 0;    ///< adamw: decoupled; sgd: added to the gradient; decayed parameters only
  double momentum = 0;        ///< sgd
  bool nesterov = false;      ///< sgd, needs momentum > 0
  double clip_grad_norm = 0;  ///< 0: no clipping; else g * min(1, max / (norm + clip_epsilon))
  double clip_epsilon = 1e-6;
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

/// Step scalars that the optimizer reads: f32[] inputs that the trainer computes in f64 for step t (1-based).
inline constexpr std::string_view kRateInput = "step.rate";      ///< adam: lr * sqrt(1 - beta2^t) / (1 - beta1^t); sgd: lr
inline constexpr std::string_view kShrinkInput = "step.shrink";  ///< adamw: lr * weight_decay
/// State leaves of f32[layout.total].
inline constexpr std::string_view kParameterState = "params";
inline constexpr std::string_view kFirstMomentState = "m";  ///< adam: first moment; sgd: velocity
inline constexpr std::string_view kSecondMomentState = "v";

/// Fails when there are no parameters (adam.C1) or nesterov has no momentum (adam.C2).
/// Turns a graph with gradient outputs into a training step: parameters become views of the leaf `params`, gradients are packed, clipped
/// and applied by one flat expression, and the next versions of the states become outputs. Gradient outputs disappear.
///   %w = parameter "w"            =>  %p = state "params"  %w = reshape (narrow %p ...)
///   output gradient "w" %g            %g1 = pack %g ...  output next_state "params" %12
Result<graph::Graph> adam(const graph::Graph& graph, const OptimizerConfig& config);

/// Only the first half: parameters become views of `params`. For programs that share a trainer's parameters.
Result<graph::Graph> bindParameters(const graph::Graph& graph);

}  // namespace lockstep::passes
