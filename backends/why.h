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

/// Runs a program of one dispatch (makeProgram()), whose kernel clamps its indices, and explains word `word` of buffer number `buffer`,
/// most recent operation first, at most 60 lines. Codes: why.word (there is no such word, or no kernel wrote it) and those of the
/// reference.
Result<std::vector<WhyLine>> why(const program::ValidProgram& program, const std::vector<Bytes>& buffers, size_t buffer, uint64_t word);

}  // namespace lockstep
