// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/access_history.h"

#include <algorithm>

namespace lockstep::reference {
namespace {

uint32_t epochOf(uint32_t stamp) { return stamp >> kStampEpoch; }
uint32_t stampOf(uint32_t epoch, uint32_t lane) { return epoch << kStampEpoch | lane; }

/// Whether a write with this stamp and an access of `lane` are not ordered.
bool conflictsWithWrite(uint32_t stamp, uint32_t lane, const HistoryTime& now) {
  if (stamp == 0) return false;
  return epochOf(stamp) < now.first || (epochOf(stamp) == now.epoch && (stamp & kStampLane) != lane);
}

bool conflictsWithRead(uint32_t stamp, uint32_t lane, const HistoryTime& now) {
  if (stamp == 0) return false;
  if ((stamp & kStampOthers) != 0 || epochOf(stamp) < now.first) return true;
  return epochOf(stamp) == now.epoch && ((stamp & kStampMany) != 0 || (stamp & kStampLane) != lane);
}

/// The stamp of a word after `lane` read it.
uint32_t afterRead(uint32_t stamp, uint32_t lane, const HistoryTime& now) {
  uint32_t next = stampOf(now.epoch, lane);
  if (stamp == 0) return next;
  next |= epochOf(stamp) < now.first ? kStampOthers : stamp & kStampOthers;
  if (epochOf(stamp) == now.epoch) next |= (stamp & kStampLane) != lane ? kStampMany : stamp & kStampMany;
  return next;
}

}  // namespace

void EpochClock::beginGroup(uint64_t group) {
  ++epoch_;
  first_ = epoch_;
  groups_.resize(epoch_ + 1, kUnknownGroup);
  groups_[epoch_] = group;
}

void EpochClock::barrier() {
  ++epoch_;
  groups_.push_back(groups_.back());
}

void EpochClock::restart() {
  groups_ = {kUnknownGroup, kUnknownGroup, groups_.back(), groups_.back()};
  first_ = 2;
  epoch_ = 3;
}

void AccessHistory::defer(const DeferredRead& read, std::span<const uint32_t> index, std::span<const uint32_t> mask) {
  if (deferred_epoch_ != read.now.epoch) (void)takeDeferred(read.now.epoch);
  if (deferred_.empty()) deferred_words_.clear();
  deferred_epoch_ = read.now.epoch;
  deferred_.push_back({.read = read, .index = deferred_words_.size(), .indices = index.size(), .masks = mask.size()});
  deferred_words_.insert(deferred_words_.end(), index.begin(), index.end());
  deferred_words_.insert(deferred_words_.end(), mask.begin(), mask.end());
}

std::vector<AccessHistory::DeferredRead> AccessHistory::takeDeferred(uint32_t epoch) {
  std::vector<DeferredRead> reads;
  if (deferred_epoch_ == epoch) {
    for (Deferred& one : deferred_) {
      const std::span<const uint32_t> words(deferred_words_);
      one.read.index = words.subspan(one.index, one.indices);
      one.read.mask = words.subspan(one.index + one.indices, one.masks);
      reads.push_back(one.read);
    }
  }
  deferred_.clear();
  return reads;
}

void AccessHistory::renumber(uint32_t first_of_group) {
  deferred_.clear();
  last_write_ = 0;
  for (std::vector<uint32_t>* stamps : {&written_, &read_}) {
    for (uint32_t& stamp : *stamps) {
      if (stamp == 0) continue;
      const bool own = epochOf(stamp) >= first_of_group;
      stamp = stampOf(own ? 2 : 1, stamp & kStampLane) | (stamp & kStampOthers);
    }
  }
}

AccessHistory::Conflict AccessHistory::withWriter(uint64_t word, const HistoryTime& now) const {
  const uint32_t written = written_[word];
  return {.kind = Conflict::Kind::Write,
          .other_group = epochOf(written) < now.first,
          .epoch = epochOf(written),
          .lane = written & kStampLane,
          .site = writers_[word]};
}

AccessHistory::Conflict AccessHistory::write(uint64_t word, uint32_t lane, const HistoryTime& now) {
  Conflict conflict;
  const uint32_t written = written_[word], read = read_.empty() ? 0 : read_[word];
  if (conflictsWithWrite(written, lane, now)) {
    conflict = withWriter(word, now);
  } else if (conflictsWithRead(read, lane, now)) {
    const bool own_epoch = epochOf(read) == now.epoch;
    const bool in_epoch = own_epoch && ((read & kStampMany) != 0 || (read & kStampLane) != lane);
    conflict = {.kind = Conflict::Kind::Read,
                .other_group = !in_epoch,
                .unknown = in_epoch ? (read & kStampLane) == lane : epochOf(read) >= now.first,
                .epoch = epochOf(read),
                .lane = read & kStampLane,
                .site = readers_[word]};
  }
  written_[word] = stampOf(now.epoch, lane);
  writers_[word] = now.site;
  last_write_ = now.epoch;
  return conflict;
}

AccessHistory::Conflict AccessHistory::read(uint64_t word, uint32_t lane, const HistoryTime& now) {
  Conflict conflict;
  const uint32_t written = written_[word];
  if (conflictsWithWrite(written, lane, now)) {
    conflict = withWriter(word, now);
  }
  if (!read_.empty()) {
    read_[word] = afterRead(read_[word], lane, now);
    readers_[word] = now.site;
  }
  return conflict;
}

AccessHistory::Conflict AccessHistory::readByAll(uint64_t word, uint32_t lane, bool several, const HistoryTime& now) {
  Conflict conflict = read(word, lane, now);
  // The write of one of several readers conflicts with the other ones.
  const bool own_write = conflict.kind == Conflict::Kind::None && epochOf(written_[word]) == now.epoch && written_[word] != 0;
  if (several && own_write) {
    conflict = {.kind = Conflict::Kind::Write, .epoch = now.epoch, .lane = written_[word] & kStampLane, .site = writers_[word]};
  }
  if (several && !read_.empty()) read_[word] |= kStampMany;
  return conflict;
}

bool AccessHistory::writeRow(uint64_t first, uint32_t count, const HistoryTime& now, const VectorRoutines& routines) {
  last_write_ = now.epoch;
  return routines.noteWrites(written_.data() + first, writers_.data() + first, read_.empty() ? nullptr : read_.data() + first, now, count);
}

bool AccessHistory::readRow(uint64_t first, uint32_t count, const HistoryTime& now, const VectorRoutines& routines) {
  if (read_.empty()) return true;
  return routines.noteReads(read_.data() + first, readers_.data() + first, written_.data() + first, now, count);
}

}  // namespace lockstep::reference
