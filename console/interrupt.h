// SPDX-License-Identifier: Apache-2.0
// Signals that end a program which has something to finish first.
#pragma once

#include <atomic>

namespace lockstep::console {

/// From now on true after Ctrl-C, what a scheduler or `kill` sends, a terminal that closes, and a write that the system answers with a
/// signal. The first signal sets it, the second of a kind ends the program at once.
const std::atomic<bool>& catchInterrupts();

}  // namespace lockstep::console
