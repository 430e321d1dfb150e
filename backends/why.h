// SPDX-License-Identifier: Apache-2.0
// Why an element of a result has its value: the chain of stores, operations and loads that made it, on the CPU reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/dispatch.h"
#include "ir/support/result.h"

namespace lockstep {

struct WhyLine {
  uint32_t depth = 0;  ///< what a line is made of follows it, one deeper
  Location where;
  std::string text;  ///< "acc * scale = 12.5: 25 * 0.5"
};

/// Runs a program of one dispatch (makeProgram()), whose kernel clamps its indices, and explains one number in buffer number `buffer`, most
/// recent operation first, at most 60 lines. `index` counts words of 4 bytes; where the type of the buffer has f16 in it, halves of 2
/// bytes. Padding counts, too. Codes: why.word (it is out of range, or no invocation wrote it) and those of the reference.
Result<std::vector<WhyLine>> why(const program::ValidProgram& program, const std::vector<Bytes>& buffers, size_t buffer, uint64_t index);

}  // namespace lockstep
