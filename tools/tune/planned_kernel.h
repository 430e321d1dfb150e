// SPDX-License-Identifier: Apache-2.0
// One kernel with one of its plans on a device: what `lockstep tune` times. All plans of a kernel run on the same memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "passes/schedule/choose_plan.h"

namespace lockstep::tools {

/// The memory of all plans of one kernel.
class KernelMemory {
 public:
  /// Inputs of floats get numbers between -1 and 1, the same for every kernel; integers, which may be indices, get zeros. Codes of the
  /// backend.
  static Result<KernelMemory> make(Backend& backend, const graph::Graph& body);

  /// Fills the results with what no kernel makes, so that a plan which leaves some out is found.
  [[nodiscard]] Status clearResults() const;
  /// The bytes of each result.
  using Contents = std::vector<std::vector<std::byte>>;
  [[nodiscard]] Result<Contents> results() const;
  /// The elements of all results, one after the other.
  [[nodiscard]] std::vector<double> numbers(const Contents& results) const;

 private:
  friend class PlannedKernel;
  struct Slot {
    graph::TensorType type;
    std::shared_ptr<Memory> memory;
  };
  [[nodiscard]] std::vector<graph::TensorType> types() const;
  std::vector<Slot> slots_;  ///< the inputs, then the results: the bindings of a dispatch
  size_t inputs_ = 0;
};

class PlannedKernel {
 public:
  /// One for each of the plans, or why it cannot be: codes of the emitters and of the backend. They are emitted on several threads and
  /// compiled as the backend does with several programs.
  static std::vector<Result<PlannedKernel>> makeAll(Backend& backend, const graph::Graph& body, std::span<const passes::PlanChoice> choices,
                                                    const KernelMemory& memory);

  /// Seconds of the fastest of `rounds` runs, by timestamps.
  Result<double> fastest(int rounds);
  /// What the driver tells of the kernel, such as its registers; may be empty.
  [[nodiscard]] std::string facts() const;

 private:
  ArenaSet arenas_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace lockstep::tools
