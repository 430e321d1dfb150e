// SPDX-License-Identifier: Apache-2.0
// What the sanitizer knows of one dispatch, and what it has found. The machine shows it accesses, operands and results; it runs workgroups
// one after the other then, so that what is found does not depend on threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/access_history.h"
#include "backends/reference/sanitize/refills.h"
#include "backends/sanitize.h"
#include "ir/support/finding.h"

namespace lockstep::reference {

enum class FindingCode : uint8_t {
  RaceWorkgroup,
  RaceStorage,
  RaceBetweenWorkgroups,
  OutOfBounds,
  Uninitialised,
  EarlierRound,
  NeverWritten,
  WrittenTwice,
  DivideByZero,
  Shift,
  Conversion,
  NotFinite,
  EndlessLoop,
  Waits,
  DivergentBarrier,
  Cancellation,
  Absorption,
  Denormal,
  Contraction,
  Wrap
};

/// What is known of a value, in a byte: 0 is nothing; that nobody wrote it; or from here on, which load of an old value it came from.
constexpr uint8_t kUnknownValue = 1, kFirstDoubt = 2;

/// One distinct fault. Invocations count from 0: workgroup * group_lanes + local_invocation_index.
struct Sighting {
  static constexpr uint64_t kUnknown = UINT64_MAX;
  FindingCode code{};
  bool warning = false;
  uint32_t site = 0, other_site = 0;  ///< as in Instruction
  uint64_t invocation = kUnknown, other_invocation = kUnknown;
  uint32_t variable = UINT32_MAX;                  ///< index into Bytecode::variables
  uint64_t element = 0;                            ///< races: of the array that is accessed; out of bounds: the index; never
                                                   ///< written: the first word
  uint32_t limit = 0;                              ///< out of bounds: the elements; never written: the last word; uninitialised: a
                                                   ///< TaintUse
  uint32_t a = 0, b = 0, result = 0;               ///< integers and floats: bits; earlier round: `a` barriers ago
  Opcode op = Opcode::End;                         ///< the same
  bool other_writes = false, here_writes = false;  ///< races
  bool same_value = false;                         ///< races of two writes
  bool by_atomics = false;                         ///< races that only the order of atomics prevents
  double exact = 0;                                ///< rounding: what `result` stands for; wraps: what does not fit
  double bound = 0;                                ///< rounding: how far it may be
  uint64_t count = 1;
};

class Watch {
 public:
  Watch(const Bytecode& code, std::span<const BufferView> bindings, const SanitizeChecks& checks);

  void beginGroup(uint64_t group);
  /// `spaces`: kOrdersWorkgroup, kOrdersStorage.
  void barrier(uint32_t spaces);
  void add(const Sighting& sighting);

  /// Null where an access cannot race.
  [[nodiscard]] AccessHistory* history(const MemoryAccess& access);
  [[nodiscard]] HistoryTime now(const MemoryAccess& access, uint32_t site) const;
  /// A conflict of `lane` on `element`; `same_value`: both are writes, of equal bits.
  void race(const AccessHistory::Conflict& conflict, const Instruction& x, const MemoryAccess& access, uint64_t element, uint32_t lane,
            bool same_value);
  void atomic(const MemoryAccess& access, uint64_t word, bool writes);

  /// A value that is not finite was made of finite ones; it counts once it reaches a buffer.
  void madeNotFinite(const Sighting& sighting, uint32_t lane);
  void storedNotFinite(uint32_t lane);
  [[nodiscard]] bool hasNotFinite(uint32_t lane) const { return lanes_not_finite_.contains(lane); }

  /// The instruction that last loaded what nobody had written: where a value that is used later came from, as a rule.
  void loadedUnwritten(uint32_t site) { last_unwritten_load_ = site; }
  [[nodiscard]] uint32_t lastUnwrittenLoad() const { return last_unwritten_load_; }
  [[nodiscard]] Refills& refills() { return refills_; }
  /// The doubt that comes with what a lane loads from word `at` of an array, an element that may be of an earlier round (kFirstDoubt or
  /// more); 0: none.
  [[nodiscard]] uint8_t doubtOfLoad(const Instruction& x, const MemoryAccess& access, uint64_t at, uint64_t element, uint32_t lane);
  /// What a lane stores to a buffer depends on such a value: now it is a fault.
  void storedInDoubt(uint8_t doubt, uint32_t lane);
  /// After all workgroups: what of the buffers that began without values was never written. `covered` says of a variable and a word of its
  /// buffer whether the word is part of a value, and not padding.
  void finish(const std::function<bool(uint32_t variable, uint64_t word)>& covered);

  [[nodiscard]] uint64_t invocation(uint32_t lane) const { return group_ * code_.group_lanes + lane; }
  [[nodiscard]] const SanitizeChecks& checks() const { return checks_; }
  [[nodiscard]] const std::vector<Sighting>& sightings() const { return sightings_; }

 private:
  struct Place {
    uint32_t variable;
    uint64_t word;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct AtomicWrite {
    uint64_t group;
    uint32_t epoch;  ///< of storage
  };
  struct Pending {
    Sighting sighting;
    uint32_t lane;
  };

  [[nodiscard]] bool orderedByAtomics(uint64_t group, uint32_t epoch) const;
  void renumberIfFull();
  EpochClock& clockOf(Home home) { return home == Home::Buffer ? storage_ : workgroup_; }

  /// The first store to a variable, 0 when there is none.
  [[nodiscard]] uint32_t storeTo(uint32_t variable) const;

  const Bytecode& code_;
  std::vector<BufferView> bindings_;
  SanitizeChecks checks_;
  uint32_t last_unwritten_load_ = 0;
  uint64_t group_ = 0;
  EpochClock storage_{true}, workgroup_{false};
  std::vector<std::unique_ptr<AccessHistory>> words_, halves_;  ///< by variable; null where nothing can race
  std::vector<Sighting> sightings_;
  std::map<std::tuple<FindingCode, uint32_t, uint32_t, uint32_t>, size_t> known_;  ///< by code, sites and variable
  // A workgroup that reads by an atomic what another one wrote by an atomic runs after it, as far as it can tell.
  std::map<Place, std::vector<AtomicWrite>> atomic_writes_;  ///< ascending by workgroup
  std::set<Place> atomics_of_group_;
  Refills refills_;
  /// Loads of old values, by doubt - kFirstDoubt: what each lane of the workgroup read first there.
  struct OldRead {
    uint32_t load, store;  ///< sites
    std::map<uint32_t, Sighting> lanes;
  };
  std::vector<OldRead> old_reads_;
  std::vector<Pending> pending_;
  std::set<uint32_t> lanes_not_finite_;
  std::set<std::pair<uint32_t, uint32_t>> pending_sites_;  ///< site and lane
};

/// Watch::finish with the layout of the module's variables.
void finish(Watch& watch, const Bytecode& code, const kernel::Module& module);
/// What the shadows of a dispatch say of the buffers that it wrote.
void findErrors(Watch& watch, uint32_t dispatch, const Bytecode& code, std::span<const BufferView> bindings);
/// The findings as one reads them. `kernel` is the kernel's name in the program, `module` what `code` was decoded from.
std::vector<Finding> findingsOf(const Watch& watch, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
                                std::array<uint32_t, 3> groups);

}  // namespace lockstep::reference
