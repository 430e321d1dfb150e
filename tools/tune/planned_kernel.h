// SPDX-License-Identifier: Apache-2.0
// One kernel with one of its plans on a device, on memory of its own: what `lockstep tune` times.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::tools {

class PlannedKernel {
 public:
  /// Inputs of floats get numbers between -1 and 1, the same for every plan; integers, which may be indices, get zeros. Codes of the
  /// emitters and of the backend.
  static Result<PlannedKernel> make(Backend& backend, const program::SymbolicKernel& kernel, const std::array<uint32_t, 3>& groups);

  /// Seconds of the fastest of `rounds` runs, by timestamps.
  Result<double> fastest(int rounds);
  /// The elements of all results, as the last run left them.
  [[nodiscard]] Result<std::vector<double>> results() const;

 private:
  struct Slot {
    graph::TensorType type;
    std::shared_ptr<Memory> memory;
  };
  ArenaSet arenas_;
  std::vector<Slot> results_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace lockstep::tools
