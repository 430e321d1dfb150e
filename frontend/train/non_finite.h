// SPDX-License-Identifier: Apache-2.0
// Private to the front end: where numbers stop being finite. Compiled once, and only when a loss is not finite.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/train/session.h"
#include "frontend/train/step_result.h"

namespace lockstep::detail {

/// The loss and its gradients with a count of the elements that are not finite beside each f32 value.
class NonFiniteProbe {
 public:
  /// Compiles; throws Error. The optimizer of the options is left out, so nothing is updated.
  NonFiniteProbe(const graph::Graph& traced, passes::CompileOptions options, std::shared_ptr<States> states, std::vector<InputSpec> inputs);
  /// Runs with the states as they are now. Absent inputs count as zeros; nothing when all values are finite.
  [[nodiscard]] std::optional<NonFiniteOrigin> find(const std::vector<HostTensor>& inputs);

 private:
  struct Probed {
    NonFiniteOrigin::Value value;
    std::vector<size_t> operands;  ///< indices of probed values
    bool in_gradient = false;
  };
  graph::Graph addProbes(const graph::Graph& traced, const std::vector<std::string>& wrt);

  std::vector<InputSpec> inputs_;
  std::vector<Probed> probed_;  ///< in execution order
  std::unique_ptr<Session> session_;
};

/// The diagnostic of a step whose loss, or else the norm of its gradients, is not finite.
Diagnostic describeNonFinite(const StepResult& result, const std::optional<NonFiniteOrigin>& origin);

}  // namespace lockstep::detail
