// SPDX-License-Identifier: Apache-2.0
// A training that was dumped: its folder, and what its trainer made of it.
#pragma once

#include <filesystem>
#include <string>

#include "frontend/io/safetensors.h"
#include "frontend/lockstep.h"
#include "ir/program/program.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {

struct DumpedTraining {
  explicit DumpedTraining(const std::string& name) : scratch(name) {}
  ScratchDirectory scratch;
  std::string program_file;       ///< the last one of the dump
  io::TensorFile start, batches;  ///< as the files have them
  io::TensorFile middle, end;     ///< checkpoints of the trainer, without a place in its data
  std::vector<float> losses;

  [[nodiscard]] std::string folder() const { return (scratch / "dump").string(); }
  [[nodiscard]] program::Program program() const;
};

/// Trains for `steps` (even) with random batches; integers of the batch are below `integers`. The dump has the batches of all steps.
void train(DumpedTraining& training, detail::CompileRequest request, int64_t steps, int64_t integers);

/// The texts of tensors that differ, by name; empty where all are equal to the bit.
std::string differences(const io::TensorFile& a, const io::TensorFile& b);

}  // namespace lockstep::testing
