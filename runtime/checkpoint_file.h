// SPDX-License-Identifier: Apache-2.0
// Private to the library: the form of checkpoint files.
//
// Tensors: each parameter under its own name; its part of another flat state as "<state>/<parameter>" ("m/l1.W"); every other state under
// its own name. Metadata, all text:
//   lockstep.checkpoint               2, the version of the form
//   lockstep.step, lockstep.seed      numbers; the step counter is also the counter of the random numbers
//   lockstep.optimizer.<field>        compiled into the program, so it must be equal to go on
//   lockstep.parameter.<name>         type and settings: "f32[16,1] weight_decay 0.01 lr_factor 1"; likewise
//   lockstep.state.<name>             type and initial value: "f32[64] 0"; likewise
//   lockstep.schedule.<field>         the learning rate, which goes on; after.<field> is the schedule that follows
//   lockstep.cursor.int.<name>, lockstep.cursor.text.<name>
#pragma once

#include <map>
#include <string>

#include "frontend/io/safetensors.h"
#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "runtime/checkpoint_metadata.h"

namespace lockstep::detail {

/// What is the same in all checkpoints of a training.
struct CheckpointForm {
  Metadata entries;                                                 ///< of optimizer and parameters, among others
  std::map<std::string, graph::ParameterLayout, std::less<>> flat;  ///< the flat states: which parameter lies where
};
CheckpointForm formOf(const program::Program& program);

/// A training between two steps.
struct SavedTraining {
  uint64_t step = 0, seed = 0;
  StateInfos infos;                                      ///< persistent states
  std::map<std::string, io::Array, std::less<>> states;  ///< their values
};

/// The entries of `form` are all in the file.
io::TensorFile formatCheckpoint(const CheckpointForm& form, const SavedTraining& saved);

/// `infos` are the states that the reader has; with `open_states` the file may bring others. Checks everything before it returns, but for
/// entries about neither optimizer, parameters nor states. Errors with exit code IncompatibleCheckpoint that name the first difference:
/// "checkpoint.version", "checkpoint.metadata", "checkpoint.optimizer", "checkpoint.parameter", "checkpoint.state"; for a damaged file
/// "checkpoint.missing", "checkpoint.unknown", "checkpoint.shape".
SavedTraining readCheckpoint(const CheckpointForm& form, StateInfos infos, bool open_states, const io::TensorFile& file);

}  // namespace lockstep::detail
