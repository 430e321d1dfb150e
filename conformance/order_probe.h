// SPDX-License-Identifier: Apache-2.0
// Compares what a kernel left with what was recorded. Atomics come in any order, so a recorded value of a word that shows the order is one
// of several right ones; the reference, which can run invocations in many orders, tells which.
#pragma once

#include <string>
#include <vector>

#include "backends/dispatch.h"

namespace lockstep::conformance {

/// A word of a buffer that holds something else than what was recorded.
struct WordDifference {
  size_t buffer = 0, word = 0;
  uint32_t recorded = 0, found = 0;
};

/// "buffer 1, byte 64: expected 0x00000001, found 0x00000002".
std::string toString(const WordDifference& difference);

/// In ascending order. Both have the same buffers of the same sizes.
std::vector<WordDifference> compareBuffers(const std::vector<Bytes>& recorded, const std::vector<Bytes>& found);

/// Whether the order of atomics can be seen: one gives back what was there before, or stores what the next one replaces.
bool showsOrder(const kernel::Module& module);

/// So many that, of 256 invocations, each comes first in one of them.
constexpr uint64_t kMostOrders = 2048;

/// Runs the program on the reference in at most this many orders and drops each difference that they explain: two orders left different
/// values in that word, and what was found there is a value that some order left in such a word of that buffer. Gives the rest.
std::vector<WordDifference> unexplainedByOrder(const program::ValidProgram& program, const std::vector<Bytes>& before,
                                               std::vector<WordDifference> differences, uint64_t orders = kMostOrders);

}  // namespace lockstep::conformance
