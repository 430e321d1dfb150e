// SPDX-License-Identifier: Apache-2.0
// Which elements of workgroup arrays a round of a loop left as an earlier round had them. A store that fills an array again in each round
// (Refill, code.h) runs in one epoch of each round, an epoch being what lies between two barriers. A round is partial when each element
// that it wrote was written by the same lane in the round before, and others were that it did not write: those are old.
//
// A ring buffer, a double buffer or a queue writes other elements in each round, so no round of theirs is partial. Where one partial round
// follows another one, the array is a triangle, whose elements are done one after the other: of that store nothing counts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "backends/reference/bytecode.h"

namespace lockstep::reference {

class Refills {
 public:
  /// `code` outlives this.
  explicit Refills(const Bytecode& code);

  void beginGroup();
  void barrier() { ++epoch_; }
  /// Whether there is a refill of the variable, so that its stores and loads matter.
  [[nodiscard]] bool tracks(uint32_t variable) const { return places_[variable] != kNowhere; }
  /// A lane stores one word, or half, of an access. `at` counts from the start of the memory of the variable's home.
  void store(const MemoryAccess& access, uint32_t site, uint64_t at, uint32_t lane);
  /// Whether the last round of some refill of the variable was partial.
  [[nodiscard]] bool isPartial(uint32_t variable) const;

  struct Old {
    uint32_t store = 0;     ///< the site
    uint32_t barriers = 0;  ///< since then
  };
  /// What a load at `site` finds there, if it is old.
  [[nodiscard]] std::optional<Old> find(const MemoryAccess& access, uint32_t site, uint64_t at) const;
  /// Whether the refill whose store is at `site` is that of a triangle, as far as is known.
  [[nodiscard]] bool isTriangle(uint32_t site) const;

 private:
  /// The last store to a word or half.
  struct Mark {
    uint32_t epoch = 0, site = 0, lane = 0;
  };
  /// The last two rounds of a refill: their epochs, 0 where there was none, and how many words they wrote.
  struct Round {
    const Refill* refill;
    uint32_t epoch = 0, previous = 0;
    uint64_t count = 0, previous_count = 0;
    bool repeats = false;  ///< the last one wrote nothing that the one before had not written, lane by lane
    bool shrank = false;   ///< the one before was partial
    [[nodiscard]] bool isSmaller() const { return repeats && count < previous_count; }
  };
  struct Array {
    uint64_t first = 0;  ///< half in the memory of its home
    std::vector<Mark> marks;
    std::vector<Round> rounds;
  };
  static constexpr uint32_t kNowhere = UINT32_MAX;

  [[nodiscard]] bool isPartial(const Round& round) const;
  [[nodiscard]] static size_t indexIn(const Array& array, const MemoryAccess& access, uint64_t at);

  std::vector<uint32_t> places_;  ///< by variable: index into arrays_
  std::vector<Array> arrays_;
  std::set<uint32_t> triangles_;  ///< sites of stores
  uint32_t epoch_ = 0;
};

}  // namespace lockstep::reference
