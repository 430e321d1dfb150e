// SPDX-License-Identifier: Apache-2.0
// How much the passes look at. Tests compare it for models of n and of 4n layers: a count says what a time on a busy machine cannot.
#pragma once

#include <cstdint>

namespace lockstep::passes {

namespace detail {
inline thread_local uint64_t visits = 0;
}

/// Counts `count` things that the innermost loop of a pass looked at.
inline void countVisits(uint64_t count = 1) { detail::visits += count; }
/// Of this thread since it began.
inline uint64_t visitsSoFar() { return detail::visits; }

}  // namespace lockstep::passes
