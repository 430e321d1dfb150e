// SPDX-License-Identifier: Apache-2.0
// What a training step gives back. A mistake in the call is thrown before anything runs; whatever goes wrong later is in the result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/trace/host_values.h"
#include "ir/support/diagnostic.h"
#include "ir/support/where.h"

namespace lockstep {

enum class FailureKind : uint8_t {
  NonFinite,    ///< the loss or the gradient norm is NaN or infinite
  DeviceLost,   ///< make a new trainer and load a checkpoint
  OutOfMemory,  ///< on the device
  Device,       ///< another failure of the device, as the diagnostics say
  Index,        ///< a label or an index of the batch is outside of its range
};

/// Where numbers stopped being finite: the first value in execution order (inputs and parameters, forward, gradients) with an element
/// that is NaN or infinite.
struct NonFiniteOrigin {
  struct Value {
    std::string name;  ///< of a leaf or a named value; else "%17"
    std::string op;    ///< "log"; of a leaf "input", "parameter" or "state"
    graph::TensorType type;
    int64_t non_finite = 0;  ///< elements that are NaN or infinite
    Location where;          ///< the call that made it
  };
  Value value;
  std::vector<Value> operands;  ///< f32 operands only; all finite, unless the value is a leaf
  bool in_gradient = false;     ///< the backward pass made it
};

struct StepFailure {
  FailureKind kind = FailureKind::Device;
  std::vector<Diagnostic> diagnostics;    ///< one at least
  std::optional<NonFiniteOrigin> origin;  ///< of NonFinite, when it was looked for and found
  ExitCode exit_code = ExitCode::NumericCheck;
};

/// Completed, or failed.
struct StepResult {
  uint64_t step = 0;  ///< 1-based
  float loss = 0;     ///< before the update of this step; NaN when the device failed or an index was wrong
  double lr = 0;      ///< the learning rate of this step
  /// Of all gradients together, before they are clipped by it; only with clip_grad_norm or check_gradients of the optimizer.
  std::optional<float> grad_norm;
  /// That the gradients of this step were computed with; with mixed(f16) only.
  std::optional<float> loss_scale = {};
  /// The gradients were too large for the loss scale: the step changed nothing but the scale, which is half as large in the next one. That
  /// is not a failure; gradients that are not finite at a scale of 1 are.
  bool overflowed = false;
  Captures captures;  ///< empty unless they were asked for
  std::optional<StepFailure> failure;

  [[nodiscard]] bool completed() const { return !failure.has_value(); }
  /// The result itself, or its failure thrown as Error with its exit code: NumericCheck, DeviceLost, OutOfMemory, or BadInput for a kernel
  /// of the user's that fails.
  const StepResult& or_throw(Where where = Where::current()) const;
};

}  // namespace lockstep
