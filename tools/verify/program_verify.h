// SPDX-License-Identifier: Apache-2.0
// Programs on a device and on a judge, kernel by kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiment/experiment.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct ProgramVerifyOptions {
  std::string device = "auto";
  std::string against = "reference";  ///< the judge
  std::string inputs = {};            ///< of a program: empty for the inputs.safetensors beside it
  std::string out = {};               ///< folder for the first difference; empty: verify-<name> below the current one
  int64_t rounds = 2;                 ///< runs, all on the same inputs; states go on from run to run
  bool json = false;
};

/// A .program of a dump. ExitCode::NumericCheck when a kernel is beyond its bound.
Result<ExitCode> verifyProgram(const std::string& path, const ProgramVerifyOptions& options);
/// The program of a sample's training step, made for the device, on its first batch.
Result<ExitCode> verifyTrain(const std::string& sample, const ProgramVerifyOptions& options);

/// Compiles a sample with the device, the data and the passes of `options` into a dump folder and runs its first step there, whose inputs
/// the folder has then. Steps and seed are those of the recipe.
Status dumpSample(const std::string& sample, ExperimentOptions options, const std::filesystem::path& folder);
/// The stage of a dump whose file ends so ("-optimizer.located"), the last one of several. code verify.dump
Result<std::filesystem::path> findStage(const std::filesystem::path& folder, const std::string& ending);

}  // namespace lockstep::tools
