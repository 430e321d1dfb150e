// SPDX-License-Identifier: Apache-2.0
// Loops whose steps depend on each other: recurrent networks, decoding, anything that is not an associative scan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// What one step of a loop gives.
struct LoopStep {
  std::vector<Tensor> carry;         ///< for the next step: as many tensors as it got, of their types
  std::vector<Tensor> results = {};  ///< of this step alone
};
/// One step: from what the last one carried on and from this step's slices. It may read any other tensor, parameters and modules too, and
/// draw random numbers, which differ from step to step.
using LoopBody = std::function<LoopStep(const std::vector<Tensor>& carry, const std::vector<Tensor>& slices)>;

struct LoopOptions {
  std::optional<int64_t> steps = {};  ///< needed where nothing is sliced
  bool reverse = false;               ///< from the last slice to the first; results stay at the places of their slices
};

struct LoopResult {
  std::vector<Tensor> carry;  ///< after the last step
  /// By carry: its values after each step, at the places of the slices, [steps, ...]; a tensor that was never set for carries that the
  /// body changes by write_rows alone, of which nothing but the rows is written in a step.
  std::vector<Tensor> history;
  std::vector<Tensor> results;  ///< of all steps, one row per slice
};

/// Calls `body` once and runs it for each row of `sliced` along the first axis, one after the other. The work of compiling, the kernels and
/// the commands do not grow with the number of steps; each step costs as much as its kernels do by themselves, and those that depend on
/// each other wait for each other. Gradients run the other way and keep the carries of all steps; none passes a loop with carries that are
/// written by write_rows alone. Loops inside of loops are unrolled.
/// Carries, slices and results have elements of 32 bits, but carries that are written by write_rows alone may have fewer. An index in the
/// body that is outside of its range is an error of the step, as outside of loops.
/// Errors "scan.steps" where the number of steps is not said, or said otherwise by a slice; "scan.carry" for a body that carries other
/// types on than it got; "scan.capture" for one that captures or prints a tensor; "scan.buffer" for one that updates a buffer.
LoopResult scan(const LoopBody& body, std::vector<Tensor> carry, std::vector<Tensor> sliced = {}, LoopOptions options = {},
                Where where = Where::current());

}  // namespace lockstep
