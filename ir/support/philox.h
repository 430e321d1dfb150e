// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): a counter-based generator.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::philox {

inline constexpr std::array<uint32_t, 2> kMultipliers{0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::array<uint32_t, 2> kWeyl{0x9E3779B9u, 0xBB67AE85u};
inline constexpr int kRounds = 10;

/// Four random words for a counter under a key.
constexpr std::array<uint32_t, 4> words(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    uint64_t a = uint64_t{kMultipliers[0]} * counter[0], b = uint64_t{kMultipliers[1]} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeyl[0];
    key[1] += kWeyl[1];
  }
  return counter;
}

}  // namespace lockstep::philox
