// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/optimizer_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lockstep::passes {

ParameterSetting settingOf(const OptimizerConfig& config, const graph::ParameterInfo& parameter) {
  if (auto found = config.parameters.find(parameter.name); found != config.parameters.end()) return found->second;
  return {.weight_decay = parameter.decay ? config.weight_decay : 0};
}

std::vector<graph::ParameterInfo> trainedParameters(const std::vector<graph::ParameterInfo>& parameters, const OptimizerConfig& config) {
  std::vector<graph::ParameterInfo> trained;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(trained),
               [&](const graph::ParameterInfo& parameter) { return !settingOf(config, parameter).frozen; });
  return trained;
}

bool isOptimizerState(std::string_view name) {
  return name == kAverageState || name == kFirstMomentState || name == kSecondMomentState || name == kAccumulatedState;
}

std::array<double, 4> stepScalars(const OptimizerConfig& config, double lr, uint64_t t, bool apply) {
  double rate = lr, epsilon = config.epsilon;
  if (config.kind == OptimizerKind::Adam || config.kind == OptimizerKind::AdamW) {
    double root = std::sqrt(1 - std::pow(config.beta2, static_cast<double>(t)));
    rate *= root / (1 - std::pow(config.beta1, static_cast<double>(t)));
    if (config.corrected_epsilon) epsilon *= root;
  }
  return {rate, lr, epsilon, apply ? 1.0 : 0.0};
}

}  // namespace lockstep::passes
