// SPDX-License-Identifier: Apache-2.0
// `lockstep run` of a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::tools {

/// What was asked for, as it was written.
struct KernelOptions {
  std::string path, entry, dispatch = "1", immediate, out_of_bounds, device = "auto", sanitize, why, print_from;
  std::vector<std::string> binds, outs, overrides, expects, withins, devices;
  double rtol = 1e-5, atol = 0;
  int64_t runs = 3;  ///< of each of `devices`
  int64_t repeat = 0, loop_budget = int64_t{1} << 30, schedules = 0, schedule_seed = 1;
  bool json = false;
};

/// Reads the kernel, runs it with its bindings and prints or writes what --out names. Codes run.*, usage.* and those of the readers.
Result<ExitCode> runKernelFile(const KernelOptions& options);

}  // namespace lockstep::tools
