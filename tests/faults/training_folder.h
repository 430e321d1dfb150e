// SPDX-License-Identifier: Apache-2.0
// What a run folder may look like after a fault: each file is absent, old or complete, and nothing is gone that was there before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"

namespace lockstep::testing {

/// An undisturbed run, to compare with.
struct WholeRun {
  std::vector<std::string> losses;  ///< the lines of losses.jsonl
  io::TensorFile checkpoint;        ///< of the last step
};
WholeRun readWholeRun(const std::filesystem::path& folder);

/// The complete lines of a file; none where there is no file.
std::vector<std::string> completeLines(const std::filesystem::path& path);

/// The step of the newest checkpoint; 0 when there is none.
uint64_t savedStep(const std::filesystem::path& folder);

struct Expected {
  uint64_t reached = 0;          ///< steps whose losses and checkpoint were there before
  bool may_end_within = false;   ///< a line, where the process was killed or the disk was full
  bool may_leave_parts = false;  ///< files with temporary names, where the process was killed; the next run removes them
};

/// What is damaged or lost in the folder of a run; empty when nothing is.
std::string damageOf(const std::filesystem::path& folder, const WholeRun& whole, const Expected& expected);
/// What differs from an undisturbed run that is over; empty when nothing does.
std::string differenceOf(const std::filesystem::path& folder, const WholeRun& whole);

}  // namespace lockstep::testing
