// SPDX-License-Identifier: Apache-2.0
// Which words of a kernel's buffers depend on the order of its invocations: atomics come in any order, so a recorded value of such a word
// is one of several right ones.
#pragma once

#include <memory>
#include <vector>

#include "backends/dispatch.h"

namespace lockstep::conformance {

/// Whether the order of atomics can be seen: one gives back what was there before, or stores what the next one replaces.
bool showsOrder(const kernel::Module& module);

/// Runs kernels on the reference in several orders.
class OrderProbe {
 public:
  /// For each buffer, one flag a word: true where two orders left different values. Empty when a run fails.
  std::vector<std::vector<bool>> dependentWords(const program::ValidProgram& program, const std::vector<Bytes>& before);

 private:
  std::vector<std::unique_ptr<Backend>> orders_;
};

}  // namespace lockstep::conformance
