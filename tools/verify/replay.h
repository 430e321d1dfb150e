// SPDX-License-Identifier: Apache-2.0
// Runs a stage of a dump folder again: a graph on the evaluator, a program on a device.
#pragma once

#include <string>
#include <vector>

#include "backends/dispatch.h"
#include "frontend/io/safetensors.h"
#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "ir/support/finding.h"
#include "ir/support/result.h"
#include "runtime/device.h"

namespace lockstep::tools {

struct Replayed {
  /// One tensor per output, named "<kind>.<name>": "loss.loss", "next_state.params".
  io::TensorFile outputs;
  std::vector<Finding> findings;  ///< of the device "sanitizer"
};

/// `path` ends in .graph or .program; `inputs` holds parameters, states and inputs by name, as --dump-ir writes them. Codes
/// replay.stage, replay.input, replay.device and those of the readers.
Result<Replayed> replay(const std::string& path, const io::TensorFile& inputs, const std::string& device);

/// The outputs of a graph of any stage on the evaluator, in f64. Its notes point into its own text.
Result<io::TensorFile> evaluateStage(const graph::Graph& graph, const io::TensorFile& inputs);
/// The outputs and the next states of a program that has its kernels or lacks some of the last passes.
Result<Replayed> runStage(program::Program program, const io::TensorFile& inputs, const detail::Device& device);
/// A .program with the passes run that it lacks, for a profile. What its text claims of its kernels is not believed.
Result<program::Program> readProgram(const std::string& path, const program::DeviceProfile& profile);

/// The value of an input, parameter or state as memory has it. Shapes may differ, since views of a parameter may be flat in the file. code
/// replay.input
Result<Bytes> leafBytes(const io::TensorFile& inputs, const std::string& name, const graph::TensorType& type);

/// "next_state.params"
std::string outputName(graph::OutputKind kind, const std::string& name);

/// One line per output: its name, its shape, and its value or norm.
std::string summarise(const io::TensorFile& outputs);

}  // namespace lockstep::tools
