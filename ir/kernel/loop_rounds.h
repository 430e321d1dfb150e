// SPDX-License-Identifier: Apache-2.0
// How many rounds the loops of a kernel make. Drivers may end loops silently after some number of them: DeviceProfile::max_loop_iterations.
#pragma once

#include <cstdint>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// A bound that holds for any number of rounds.
inline constexpr uint64_t kAnyRounds = uint64_t(1) << 62u;

struct LoopRounds {
  uint64_t most = 0;        ///< of all loops that one invocation runs, added up; kAnyRounds: unknown
  InstructionId unbounded;  ///< the first loop whose rounds are not known; invalid when `most` is a bound
};

/// A bound of the rounds of an entry point, found in its instructions alone: counted loops by their counters, all others as unbounded. The
/// cost of a loop is rounds * (1 + cost of its body) + 1, and both arms of an `if` and all cases of a `switch` count: a group of
/// invocations runs in step, a loop takes as long as its slowest invocation, and one that no invocation enters is still tried once. Loops
/// that unrolling dissolves, those with known bounds and at most `unrolled` instructions in all their rounds, count as their bodies.
LoopRounds loopRounds(const Module& module, const Function& entry, uint64_t unrolled = 0);

}  // namespace lockstep::kernel
