// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/program/program.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::passes {

struct StepsConfig {
  std::optional<OptimizerConfig> optimizer;  ///< absent: the program does not train
  std::string rate;                          ///< formula of the learning rate; empty: unknown, so only who has the rate can train with it
  std::map<std::string, std::string, std::less<>> checkpoint;
};

/// Completes what a program says of the host's part in a step: which inputs are made and how, which states persist and whose values lie in
/// the flat ones, how many runs a step has. Nothing else of the program changes. A program that says it already keeps it.
program::Program describeSteps(program::Program program, const StepsConfig& config);

}  // namespace lockstep::passes
