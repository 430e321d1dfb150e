// SPDX-License-Identifier: Apache-2.0
// What --dump-ir writes: every stage as a text, every kernel, and what each pass did. An empty folder name: nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/stage.h"

namespace lockstep::passes {

/// What one pass did.
struct PassRecord {
  std::string name;
  double seconds = 0;
  bool changed = true;
  std::string statistics;  ///< "nodes 120 -> 96"
  uint64_t visits = 0;     ///< how much it looked at, where that might grow faster than the model
};

/// NN-name.graph with NN-name.located, or NN-name.program. Failures: "dump.write".
Status dumpForm(const std::string& directory, size_t number, std::string_view name, const Form& form);
/// passes.txt: what each pass took and did. Columns: name, seconds, changed or unchanged, statistics.
Status dumpRecords(const std::string& directory, const std::vector<PassRecord>& records);
/// One .kir per kernel; all are emitted.
Status dumpKernels(const std::string& directory, const program::Program& program);

}  // namespace lockstep::passes
