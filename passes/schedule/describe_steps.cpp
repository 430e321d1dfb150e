// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/describe_steps.h"

#include <array>

namespace lockstep::passes {

using program::Program;

namespace {

std::vector<program::StatePart> partsOf(const graph::ParameterLayout& layout) {
  std::vector<program::StatePart> parts;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) parts.push_back({slot.name, slot.offset});
  return parts;
}

program::InputSource sourceOf(const program::InputPort& port, const std::optional<OptimizerConfig>& optimizer) {
  if (port.name == graph::kRandomKeyInput) return program::KeySource{};
  if (port.name != kScalarsInput || !optimizer) return port.source;
  const std::array<std::string, 4> formulas = stepFormulas(*optimizer);
  return program::FormulaSource{{formulas.begin(), formulas.end()}};
}

}  // namespace

Program describeSteps(Program program, const StepsConfig& config) {
  for (program::InputPort& port : program.inputs) port.source = sourceOf(port, config.optimizer);
  // Between steps the sum of gradients is zero.
  std::erase_if(program.states, [&](const program::PersistentState& state) { return program[state.buffer].name == kAccumulatedState; });
  for (program::PersistentState& state : program.states) {
    const std::string& name = program[state.buffer].name;
    if (name == kParameterState || name == kAverageState) {
      state.parts = partsOf(graph::layoutParameters(program.parameters));
    } else if (isMomentState(name) && config.optimizer) {
      state.parts = partsOf(graph::layoutParameters(trainedParameters(program.parameters, *config.optimizer)));
    }
  }
  if (config.optimizer && !config.rate.empty()) program.steps = program::Steps{config.optimizer->accumulate, config.rate};
  if (!config.checkpoint.empty()) program.checkpoint = config.checkpoint;
  return program;
}

}  // namespace lockstep::passes
