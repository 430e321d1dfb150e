// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/watch.h"

#include <algorithm>

namespace lockstep::reference {
namespace {

constexpr size_t kMostSightings = 1000;  ///< distinct ones; later ones are not kept
constexpr size_t kMostPending = 4096;    ///< of one workgroup

}  // namespace

Watch::Watch(const Bytecode& code, std::span<const BufferView> bindings, const SanitizeChecks& checks)
    : code_(code),
      bindings_(bindings.begin(), bindings.end()),
      checks_(checks),
      words_(code.variables.size()),
      halves_(code.variables.size()),
      refills_(code) {
  if (!checks.races) return;
  struct Uses {
    bool loads = false, stores = false;
  };
  std::vector<std::array<Uses, 2>> uses(code.variables.size());
  for (const Instruction& x : code.instructions) {
    if (x.op != Opcode::Load && x.op != Opcode::Store) continue;
    const MemoryAccess& access = code.accesses[x.access];
    if (access.home != Home::Buffer && access.home != Home::Workgroup) continue;
    Uses& use = uses[access.variable][access.half ? 1 : 0];
    (x.op == Opcode::Load ? use.loads : use.stores) = true;
  }
  for (size_t k = 0; k < code.variables.size(); ++k) {
    const Variable& variable = code.variables[k];
    const uint64_t words = variable.home == Home::Buffer ? bindings[variable.binding].count : uint64_t{variable.offset} + variable.words;
    // What is only read, or only accessed by atomics, has no races.
    if (uses[k][0].stores) words_[k] = std::make_unique<AccessHistory>(words, uses[k][0].loads);
    if (uses[k][1].stores) halves_[k] = std::make_unique<AccessHistory>(2 * words, uses[k][1].loads);
  }
}

void Watch::beginGroup(uint64_t group) {
  group_ = group;
  storage_.beginGroup(group);
  workgroup_.beginGroup(group);
  renumberIfFull();
  refills_.beginGroup();
  for (OldRead& read : old_reads_) read.lanes.clear();
  atomics_of_group_.clear();
  pending_.clear();
  pending_sites_.clear();
  lanes_not_finite_.clear();
}

void Watch::barrier(uint32_t spaces) {
  if ((spaces & kOrdersWorkgroup) != 0) {
    workgroup_.barrier();
    refills_.barrier();
  }
  if ((spaces & kOrdersStorage) != 0) storage_.barrier();
  renumberIfFull();
}

void Watch::renumberIfFull() {
  for (EpochClock* clock : {&storage_, &workgroup_}) {
    if (!clock->isFull()) continue;
    for (size_t k = 0; k < code_.variables.size(); ++k) {
      if (&clockOf(code_.variables[k].home) != clock) continue;
      if (words_[k] != nullptr) words_[k]->renumber(clock->firstOfGroup());
      if (halves_[k] != nullptr) halves_[k]->renumber(clock->firstOfGroup());
    }
    clock->restart();
    if (clock == &storage_) atomic_writes_.clear();
  }
}

AccessHistory* Watch::history(const MemoryAccess& access) { return (access.half ? halves_ : words_)[access.variable].get(); }

HistoryTime Watch::now(const MemoryAccess& access, uint32_t site) const {
  return (access.home == Home::Buffer ? storage_ : workgroup_).now(site);
}

void Watch::add(const Sighting& sighting) {
  const auto [found, inserted] =
      known_.try_emplace({sighting.code, sighting.site, sighting.other_site, sighting.variable}, sightings_.size());
  if (inserted && sightings_.size() < kMostSightings) {
    sightings_.push_back(sighting);
  } else if (inserted) {
    known_.erase(found);
  } else if (Sighting& known = sightings_[found->second]; known.warning && !sighting.warning) {
    const uint64_t count = known.count + 1;
    known = sighting;
    known.count = count;
  } else {
    ++known.count;
  }
}

void Watch::race(const AccessHistory::Conflict& conflict, const Instruction& x, const MemoryAccess& access, uint64_t element, uint32_t lane,
                 bool same_value) {
  const EpochClock& clock = clockOf(access.home);
  const uint64_t group = conflict.other_group ? clock.groupOf(conflict.epoch) : group_;
  Sighting sighting{.code = conflict.other_group          ? FindingCode::RaceBetweenWorkgroups
                            : access.home == Home::Buffer ? FindingCode::RaceStorage
                                                          : FindingCode::RaceWorkgroup,
                    .site = x.site,
                    .other_site = conflict.site,
                    .invocation = invocation(lane),
                    .variable = access.variable,
                    .element = element,
                    .other_writes = conflict.kind == AccessHistory::Conflict::Kind::Write,
                    .here_writes = x.op == Opcode::Store};
  if (!conflict.unknown && group != UINT64_MAX) sighting.other_invocation = group * code_.group_lanes + conflict.lane;
  sighting.same_value = same_value && sighting.other_writes && sighting.here_writes;
  sighting.by_atomics = conflict.other_group && orderedByAtomics(group, conflict.epoch);
  sighting.warning = sighting.same_value || sighting.by_atomics;
  add(sighting);
  // Memory that began without values is an output, each element of which is to be written once.
  const bool output = access.home == Home::Buffer && bindings_[access.binding].is_output;
  if (output && checks_.memory && conflict.other_group && sighting.other_writes && sighting.here_writes && !same_value) {
    sighting.code = FindingCode::WrittenTwice;
    add(sighting);
  }
}

uint32_t Watch::storeTo(uint32_t variable) const {
  for (const Instruction& x : code_.instructions) {
    const bool writes = x.op == Opcode::Store || (x.op > Opcode::AtomicLoad && x.op <= Opcode::AtomicCompareExchange);
    if (writes && code_.accesses[x.access].variable == variable) return x.site;
  }
  return 0;
}

void Watch::finish(const std::function<bool(uint32_t variable, uint64_t word)>& covered) {
  if (!checks_.memory) return;
  std::erase_if(sightings_,
                [&](const Sighting& one) { return one.code == FindingCode::EarlierRound && refills_.isTriangle(one.other_site); });
  for (uint32_t k = 0; k < code_.variables.size(); ++k) {
    const Variable& variable = code_.variables[k];
    const uint32_t store = variable.home == Home::Buffer ? storeTo(k) : 0;
    if (store == 0 || !bindings_[variable.binding].is_output) continue;
    const BufferView& buffer = bindings_[variable.binding];
    Sighting sighting{.code = FindingCode::NeverWritten, .site = store, .variable = k, .count = 0};
    for (uint32_t word = 0; word < buffer.count; ++word) {
      if (buffer.written[word] != 0 || !covered(k, word)) continue;
      if (sighting.count == 0) sighting.element = word;
      ++sighting.count;
      sighting.limit = word;
    }
    if (sighting.count != 0 && sightings_.size() < kMostSightings) sightings_.push_back(sighting);
  }
}

void Watch::atomic(const MemoryAccess& access, uint64_t word, bool writes) {
  if (!checks_.races || access.home != Home::Buffer) return;
  const Place place{access.variable, word};
  atomics_of_group_.insert(place);
  if (!writes) return;
  std::vector<AtomicWrite>& log = atomic_writes_[place];
  if (log.empty() || log.back().group != group_) log.push_back({group_, 0});
  log.back().epoch = storage_.epoch();
}

/// Whether this workgroup has seen, by an atomic, one that `group` wrote after its access in `epoch`.
bool Watch::orderedByAtomics(uint64_t group, uint32_t epoch) const {
  return std::ranges::any_of(atomics_of_group_, [&](const Place& place) {
    const auto log = atomic_writes_.find(place);
    if (log == atomic_writes_.end()) return false;
    const auto found = std::ranges::lower_bound(log->second, group, {}, &AtomicWrite::group);
    return found != log->second.end() && found->group == group && found->epoch >= epoch;
  });
}

uint8_t Watch::doubtOfLoad(const Instruction& x, const MemoryAccess& access, uint64_t at, uint64_t element, uint32_t lane) {
  const std::optional<Refills::Old> old = refills_.find(access, x.site, at);
  if (!old) return 0;
  auto read = std::ranges::find_if(old_reads_, [&](const OldRead& one) { return one.load == x.site && one.store == old->store; });
  if (read == old_reads_.end()) {
    if (old_reads_.size() + kFirstDoubt > UINT8_MAX) return 0;
    read = old_reads_.insert(read, {.load = x.site, .store = old->store, .lanes = {}});
  }
  read->lanes.try_emplace(lane, Sighting{.code = FindingCode::EarlierRound,
                                         .warning = true,
                                         .site = x.site,
                                         .other_site = old->store,
                                         .invocation = invocation(lane),
                                         .variable = access.variable,
                                         .element = element,
                                         .a = old->barriers});
  return static_cast<uint8_t>(read - old_reads_.begin() + kFirstDoubt);
}

void Watch::storedInDoubt(uint8_t doubt, uint32_t lane) {
  const std::map<uint32_t, Sighting>& lanes = old_reads_[doubt - kFirstDoubt].lanes;
  const auto own = lanes.find(lane);
  add(own != lanes.end() ? own->second : lanes.begin()->second);
}

void Watch::madeNotFinite(const Sighting& sighting, uint32_t lane) {
  lanes_not_finite_.insert(lane);
  if (pending_.size() < kMostPending && pending_sites_.emplace(sighting.site, lane).second) pending_.push_back({sighting, lane});
}

void Watch::storedNotFinite(uint32_t lane) {
  const bool own = lanes_not_finite_.contains(lane);
  // Without one of its own, it came from another invocation through workgroup memory.
  std::erase_if(pending_, [&](const Pending& pending) {
    if (own && pending.lane != lane) return false;
    add(pending.sighting);
    return true;
  });
}

}  // namespace lockstep::reference
