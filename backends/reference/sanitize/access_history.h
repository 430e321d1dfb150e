// SPDX-License-Identifier: Apache-2.0
// Who touched each word of a memory last, so that an access finds another one that nothing keeps apart from it.
//
// Between two barriers is an epoch. A workgroup's epochs follow each other, and workgroups run one after the other, so the number of an
// epoch names its workgroup. A word has a stamp of its last write and one of its last read:
//
//   bits 12..31  epoch; a stamp of 0: none yet
//   bit 11       kStampOthers: other workgroups read it, too
//   bit 10       kStampMany: other lanes of this epoch read it, too
//   bits 0..9    lane
//
// An access conflicts with a stamp of another workgroup (its epoch is before the first one of the running workgroup; memory of one
// workgroup has no others), or of the same epoch and another lane. Two reads never do. That finds each pair of which one is the last write
// or, for a write, any read: a write that is hidden by a later one conflicted with that one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/reference/instruction.h"

namespace lockstep::reference {

/// Numbers epochs and knows their workgroups.
class EpochClock {
 public:
  /// A clock that starts again at each workgroup is one of its own memory.
  explicit EpochClock(bool shared) : shared_(shared) {}
  void beginGroup(uint64_t group);
  void barrier();
  [[nodiscard]] HistoryTime now(uint32_t site) const { return {.epoch = epoch_, .first = shared_ ? first_ : 0, .site = site}; }
  [[nodiscard]] uint32_t epoch() const { return epoch_; }
  [[nodiscard]] uint64_t groupOf(uint32_t epoch) const { return groups_[epoch]; }
  /// Whether so many epochs were counted that a stamp has no room for more; then histories are renumbered, see restart().
  [[nodiscard]] bool isFull() const { return epoch_ + 2 >= kMostEpochs; }
  /// Epochs of other workgroups become 1, earlier ones of this workgroup 2, and the next one 3.
  void restart();
  [[nodiscard]] uint32_t firstOfGroup() const { return first_; }

 private:
  static constexpr uint32_t kMostEpochs = 1u << (32 - kStampEpoch);
  static constexpr uint64_t kUnknownGroup = UINT64_MAX;
  bool shared_;
  uint32_t epoch_ = 0, first_ = 0;
  std::vector<uint64_t> groups_{kUnknownGroup};  ///< by epoch
};

class AccessHistory {
 public:
  /// `reads`: whether anything reads this memory.
  AccessHistory(uint64_t words, bool reads) : written_(words), writers_(words), read_(reads ? words : 0), readers_(reads ? words : 0) {}

  /// What an access conflicts with.
  struct Conflict {
    enum class Kind : uint8_t { None, Write, Read };
    Kind kind = Kind::None;
    bool other_group = false;
    bool unknown = false;  ///< which invocation it was is not known: there were several
    uint32_t epoch = 0, lane = 0, site = 0;
  };
  [[nodiscard]] Conflict write(uint64_t word, uint32_t lane, const HistoryTime& now);
  [[nodiscard]] Conflict read(uint64_t word, uint32_t lane, const HistoryTime& now);
  /// The same for `count` consecutive words of lanes 0, 1, ... (HistoryTime::lane_shift); false when some may conflict, and then nothing is
  /// noted.
  bool writeRow(uint64_t first, uint32_t count, const HistoryTime& now, const VectorRoutines& routines);
  bool readRow(uint64_t first, uint32_t count, const HistoryTime& now, const VectorRoutines& routines);
  /// One word that all lanes read.
  [[nodiscard]] Conflict readByAll(uint64_t word, uint32_t lane, bool several, const HistoryTime& now);
  void renumber(uint32_t first_of_group);

  /// Reads that are not noted yet. Of `index` there is one per lane, or one for all; an empty `mask`: all lanes read.
  struct DeferredRead {
    uint32_t access = 0;
    HistoryTime now;
    std::span<const uint32_t> index{}, mask{};
  };
  /// `read` with copies of `index` and `mask`. Reads of earlier epochs are forgotten.
  void defer(const DeferredRead& read, std::span<const uint32_t> index, std::span<const uint32_t> mask);
  [[nodiscard]] bool isDeferringMuch() const { return deferred_words_.size() > kMostDeferred; }
  /// Those of this epoch, which are then no longer deferred. They live until the next call of defer().
  [[nodiscard]] std::vector<DeferredRead> takeDeferred(uint32_t epoch);
  [[nodiscard]] bool wasWrittenIn(uint32_t epoch) const { return last_write_ == epoch; }

 private:
  /// The conflict of an access with the last write of a word.
  [[nodiscard]] Conflict withWriter(uint64_t word, const HistoryTime& now) const;

  static constexpr size_t kMostDeferred = size_t{1} << 20;
  struct Deferred {
    DeferredRead read;
    size_t index, indices, masks;  ///< the first word in deferred_words_, and how many
  };

  std::vector<uint32_t> written_, writers_;  ///< stamp and instruction of the last write of each word
  std::vector<uint32_t> read_, readers_;     ///< of the last read
  uint32_t last_write_ = 0;                  ///< epoch of the last write of any word
  uint32_t deferred_epoch_ = 0;
  std::vector<Deferred> deferred_;
  std::vector<uint32_t> deferred_words_;
};

}  // namespace lockstep::reference
