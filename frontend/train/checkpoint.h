// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the form of checkpoint files.
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
#include "frontend/optim/optim.h"
#include "frontend/train/checkpoint_data.h"
#include "frontend/train/shared_model.h"

namespace lockstep::detail {

/// What a training run needs to go on, beside its model and optimizer.
struct TrainingState {
  uint64_t step = 0, seed = 0;
  Schedule schedule;
  DataCursor cursor;
  std::map<std::string, StateInfo, std::less<>> infos;   ///< persistent states
  std::map<std::string, io::Array, std::less<>> states;  ///< their values
};

io::TensorFile formatCheckpoint(const TrainedModel& model, const TrainingState& state);

/// With `open_states` the file may bring states that the model has not declared yet. Checks everything before it returns. Errors with exit
/// code IncompatibleCheckpoint that name the first difference: "checkpoint.version", "checkpoint.metadata", "checkpoint.optimizer",
/// "checkpoint.parameter", "checkpoint.state"; for a damaged file "checkpoint.missing", "checkpoint.unknown", "checkpoint.shape".
TrainingState readCheckpoint(const TrainedModel& model, bool open_states, const io::TensorFile& file);

}  // namespace lockstep::detail
