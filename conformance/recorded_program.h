// SPDX-License-Identifier: Apache-2.0
// Lines of cts_programs and consensus: a program, its dispatch, and what its buffers hold before and after it.
#pragma once

#include <string>
#include <vector>

#include "backends/dispatch.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::conformance {

/// One dispatch and what its buffers hold before and after it.
struct RecordedRun {
  std::string name;  ///< of the fill; may be empty
  std::vector<Bytes> before, after;
};

struct RecordedProgram {
  std::string family, name, text;
  wgsl::ReadOptions options = {};
  KernelDispatch dispatch = {};  ///< without its module
  std::vector<RecordedRun> runs = {};
};

/// A line of cts_programs, and one of consensus. Both throw nlohmann::json::exception for a line that is not such a test.
RecordedProgram readTrace(const std::string& line);
RecordedProgram readConsensus(const std::string& line);

}  // namespace lockstep::conformance
