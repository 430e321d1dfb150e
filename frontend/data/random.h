// SPDX-License-Identifier: Apache-2.0
// Random numbers for data on the host: the same on every machine, and for a seed and a stream always the same sequence.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "ir/support/philox.h"

namespace lockstep {

/// A sequence of its own for each pair of seed and stream; data of step s are drawn from Random(seed, s).
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t word() {
    // The top bit of the last word keeps these draws apart from parameters, whose streams count from 0.
    const uint32_t counter = drawn_ / 4;
    if (drawn_ % 4 == 0) {
      block_ = philox::words({counter, static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32), 1u << 31},
                             {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    }
    return block_[drawn_++ % 4];
  }
  /// In [0, 1), a multiple of 2^-24, so that it is exact as f32 too.
  double uniform() { return static_cast<double>(word() >> 8) * 0x1p-24; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// A whole number of at least 0 and below `count`, which is at least 1. Signed, so that `below(5) - 2` is what it looks like.
  int64_t below(uint32_t count) { return static_cast<int64_t>((uint64_t{word()} * count) >> 32); }
  /// Standard normal, by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t seed_, stream_;
  uint32_t drawn_ = 0;
  std::array<uint32_t, 4> block_{};
};

}  // namespace lockstep
