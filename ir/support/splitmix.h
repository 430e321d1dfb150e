// SPDX-License-Identifier: Apache-2.0
// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): the same numbers on every machine.
#pragma once

#include <cstdint>

namespace lockstep {

/// The next random number; `state` is the seed at first.
constexpr uint64_t splitmix64(uint64_t& state) {
  uint64_t bits = state += 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

}  // namespace lockstep
