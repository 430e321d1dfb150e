// SPDX-License-Identifier: Apache-2.0
// A stage of a dump taken to a program that runs, with some of the passes that it still lacks left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "passes/pipeline.h"
#include "passes/stage.h"

namespace lockstep::tools {

struct PassChoice {
  std::vector<std::string> disabled;  ///< optional passes, kernel passes among them
  size_t fused_nodes = SIZE_MAX;      ///< only so many of the first nodes of the graph are fused with others; see FuseConfig::joining
};

struct BuiltProgram {
  program::Program program;
  std::optional<graph::Graph> grouped;        ///< what schedule took
  std::optional<program::Program> scheduled;  ///< what schedule gave
  size_t fusable = 0;                         ///< nodes of what fuse took
};

/// The stage that a form is at. A graph must have gone through `optimizer` or `bindParameters`; code bisect.stage.
Result<passes::Stage> stageOf(const passes::Form& form);

/// The optional passes that a stage still lacks, kernel passes one by one, in the order of the pipeline.
std::vector<std::string> optionalPassesAfter(passes::Stage stage);

/// Runs the passes that the form lacks and the profile takes, with the profile and the measured plans of `options`. Codes of the passes.
Result<BuiltProgram> buildFrom(const passes::Form& form, passes::CompileOptions options, const PassChoice& choice);

}  // namespace lockstep::tools
