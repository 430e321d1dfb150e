// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/refills.h"

#include <algorithm>

namespace lockstep::reference {

Refills::Refills(const Bytecode& code) : places_(code.variables.size(), kNowhere) {
  for (const Refill& refill : code.refills) {
    if (!tracks(refill.variable)) {
      places_[refill.variable] = static_cast<uint32_t>(arrays_.size());
      const Variable& variable = code.variables[refill.variable];
      arrays_.push_back({.first = 2 * uint64_t{variable.offset}, .marks = std::vector<Mark>(2 * size_t{variable.words}), .rounds = {}});
    }
    arrays_[places_[refill.variable]].rounds.push_back({.refill = &refill});
  }
}

void Refills::beginGroup() {
  ++epoch_;
  for (Array& array : arrays_) {
    for (Round& round : array.rounds) {
      if (round.isSmaller() && round.shrank) triangles_.insert(round.refill->store);
      round = {.refill = round.refill};
    }
  }
}

size_t Refills::indexIn(const Array& array, const MemoryAccess& access, uint64_t at) { return (access.half ? at : 2 * at) - array.first; }

void Refills::store(const MemoryAccess& access, uint32_t site, uint64_t at, uint32_t lane) {
  Array& array = arrays_[places_[access.variable]];
  Mark& mark = array.marks[indexIn(array, access, at)];
  const auto round = std::ranges::find(array.rounds, site, [](const Round& one) { return one.refill->store; });
  if (round != array.rounds.end()) {
    if (round->epoch != epoch_) {
      if (round->isSmaller() && round->shrank) triangles_.insert(site);
      *round = {.refill = round->refill,
                .epoch = epoch_,
                .previous = round->epoch,
                .count = 0,
                .previous_count = round->count,
                .repeats = round->epoch != 0,
                .shrank = round->isSmaller()};
    }
    const bool again = mark.epoch == epoch_;
    if (!again) ++round->count;
    if (mark.site != site || mark.lane != lane || (!again && mark.epoch != round->previous)) round->repeats = false;
  }
  mark = {.epoch = epoch_, .site = site, .lane = lane};
}

/// Before the next barrier, the round may not have come to its end.
bool Refills::isPartial(const Round& round) const { return round.isSmaller() && round.epoch < epoch_; }

bool Refills::isPartial(uint32_t variable) const {
  return std::ranges::any_of(arrays_[places_[variable]].rounds, [&](const Round& round) { return isPartial(round); });
}

std::optional<Refills::Old> Refills::find(const MemoryAccess& access, uint32_t site, uint64_t at) const {
  const Array& array = arrays_[places_[access.variable]];
  const Mark& mark = array.marks[indexIn(array, access, at)];
  for (const Round& round : array.rounds) {
    const bool left = mark.site == round.refill->store && mark.epoch == round.previous;
    if (left && isPartial(round) && std::ranges::find(round.refill->loads, site) != round.refill->loads.end())
      return Old{.store = mark.site, .barriers = epoch_ - mark.epoch};
  }
  return std::nullopt;
}

bool Refills::isTriangle(uint32_t site) const {
  if (triangles_.contains(site)) return true;
  return std::ranges::any_of(arrays_, [&](const Array& array) {
    return std::ranges::any_of(array.rounds,
                               [&](const Round& round) { return round.refill->store == site && round.isSmaller() && round.shrank; });
  });
}

}  // namespace lockstep::reference
