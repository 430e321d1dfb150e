// SPDX-License-Identifier: Apache-2.0
// Errors of floats on the command line: which elements of a result may be far from the real numbers that they stand for.
#pragma once

#include <map>
#include <string>

#include "frontend/io/jsonl.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep::tools {

/// An element of a result with an error bound, in units in the last place of its exact value.
struct RankedElement {
  size_t word = 0;
  double value = 0, exact = 0;
  double error_ulp = 0, bound_ulp = 0;  ///< of this run; of any device
  Location where;                       ///< where most of the error comes from; may be empty
};
/// The words with the largest errors, then bounds, at most `most` of them.
std::vector<RankedElement> rankErrors(const RoundingBounds& bounds, const Bytes& bytes, size_t most);

/// As docs/schemas/run.json has it: the ten worst elements of each buffer.
io::Json roundingJson(const KernelResult& result, const kernel::Module& module);
/// As docs/schemas/run.json has them: the comparisons and conversions that a device may decide differently.
io::Json unstableChoicesJson(const std::vector<RoundingBounds::Choice>& choices);
/// On stderr: the three worst elements of each buffer, and the unstable choices.
void printRounding(const KernelResult& result, const kernel::Module& module);

}  // namespace lockstep::tools
