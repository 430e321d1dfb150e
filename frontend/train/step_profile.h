// SPDX-License-Identifier: Apache-2.0
// Where one training step, or one run of a forward, spent its time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/location.h"

namespace lockstep {

/// One command of a step that ran with timestamps. There, commands run one after the other.
struct ProfiledCommand {
  std::string label;                       ///< what it computes: "matmul+add+relu"
  std::string kernel = {};                 ///< "k3_shared_tiled"; empty for copies and fills
  std::array<uint32_t, 3> groups{};        ///< workgroups; zeros for copies and fills
  uint32_t level = 0;                      ///< those of one level do not depend on each other; ascending
  double start = 0;                        ///< seconds after the first command began
  double seconds = 0;                      ///< on the device
  uint64_t bytes = 0;                      ///< that it reads or writes, each once
  std::optional<uint64_t> operations = 0;  ///< arithmetic, counted from the graph; absent: not known, for a kernel of one's own
  std::vector<Location> lines = {};        ///< the calls that its kernel computes, here or in another command; empty: none of the user's
};

struct StepProfile {
  uint64_t step = 0;                      ///< 1-based; of a forward the number of the run
  std::vector<ProfiledCommand> commands;  ///< in the order in which they ran; with `accumulate` those of all runs
  double prepare_seconds = 0;             ///< the host checked and copied the batch
  double run_seconds = 0;                 ///< the host submitted the timed step and waited for it
  uint64_t input_bytes = 0;               ///< that the host writes for a step: batch and scalars
  uint64_t output_bytes = 0;              ///< that it reads back: loss and other outputs
};

}  // namespace lockstep
