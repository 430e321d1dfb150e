// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/optimizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/program/formula.h"
#include "ir/program/program.h"

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
  return name == kAverageState || name == kLossScaleState || name == kGoodStepsState || isMomentState(name);
}

bool isMomentState(std::string_view name) { return name == kFirstMomentState || name == kSecondMomentState || name == kAccumulatedState; }

std::array<std::string, 4> stepFormulas(const OptimizerConfig& config) {
  const std::string epsilon = fmt::format("{}", config.epsilon);
  if (config.kind != OptimizerKind::Adam && config.kind != OptimizerKind::AdamW) return {"lr", "lr", epsilon, "last"};
  const std::string root = fmt::format("sqrt(1 - pow({}, step))", config.beta2);
  return {fmt::format("lr * ({} / (1 - pow({}, step)))", root, config.beta1), "lr",
          config.corrected_epsilon ? fmt::format("{} * {}", epsilon, root) : epsilon, "last"};
}

std::array<double, 4> stepScalars(const OptimizerConfig& config, double lr, uint64_t t, bool apply) {
  const std::array values{static_cast<double>(t), lr, apply ? 1.0 : 0.0};
  const std::array<std::string, 4> formulas = stepFormulas(config);
  std::array<double, 4> scalars{};
  for (size_t i = 0; i < scalars.size(); ++i) scalars[i] = program::Formula::parse(formulas[i], program::kStepNames).orThrow()(values);
  return scalars;
}

}  // namespace lockstep::passes
