// SPDX-License-Identifier: Apache-2.0
// What the machine shows to the sanitizer, before an instruction runs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/watch.h"
#include "backends/reference/wraps.h"

namespace lockstep::reference {
namespace {

bool isFinite(uint32_t bits) { return (bits & 0x7f800000u) != 0x7f800000u; }

bool isAtomic(Opcode op) { return op >= Opcode::AtomicLoad && op <= Opcode::AtomicCompareExchange; }

/// What an operation with these operands has no value for.
std::optional<FindingCode> partialOn(Opcode op, uint32_t a, uint32_t b) {
  const bool divides = op == Opcode::DivI || op == Opcode::DivU || op == Opcode::RemI || op == Opcode::RemU;
  const bool shifts = op == Opcode::Shl || op == Opcode::ShrI || op == Opcode::ShrU;
  if (divides) return b == 0 ? std::optional(FindingCode::DivideByZero) : std::nullopt;
  if (shifts) return b >= 32 ? std::optional(FindingCode::Shift) : std::nullopt;
  if (op != Opcode::FloatToI && op != Opcode::FloatToU) return std::nullopt;
  const double value = std::trunc(static_cast<double>(std::bit_cast<float>(a)));
  const bool fits = op == Opcode::FloatToI ? value >= -2147483648.0 && value <= 2147483647.0 : value >= 0 && value <= 4294967295.0;
  return fits ? std::nullopt : std::optional(FindingCode::Conversion);
}

}  // namespace

void Machine::watch(const Instruction& x) {
  if (x.op == Opcode::ClampIndex) {
    clampIndex(x);
  } else if (x.op == Opcode::WatchIndex) {
    watchIndex(x);
  } else if (x.op == Opcode::WatchInteger) {
    watchInteger(x);
  } else if (x.op == Opcode::WatchFloat || x.op == Opcode::WatchStored) {
    watchFloat(x);
  } else if (x.op == Opcode::Load || x.op == Opcode::Store) {
    watchAccess(x);
  } else if (isAtomic(x.op)) {
    const MemoryAccess& access = code_.accesses[x.access];
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      const uint64_t word = uint64_t{access.offset} + uint64_t{indexOf(x, lane)} * access.stride;
      if (isActive(lane) && !isClamped(x, lane)) options_.watch->atomic(access, word, x.op != Opcode::AtomicLoad);
    }
  }
  // What ClampIndex noted is of the one access that follows it. Where a function is called twice, another access has the same site.
  const bool accesses = x.op == Opcode::Load || x.op == Opcode::Store || x.op == Opcode::LaneLoad || x.op == Opcode::LaneStore;
  if (accesses || x.op == Opcode::CheckIndex || isAtomic(x.op)) clamped_site_ = 0;
}

void Machine::clampIndex(const Instruction& x) {
  const uint32_t limit = limits_[x.access], last = limit == 0 ? 0 : limit - 1;
  const bool varying = (x.varying & kVaryingA) != 0;
  if (varying && routines_.scan(r_ + x.a, lanes_, limit).in_range) {
    std::copy_n(r_ + x.a, lanes_, r_ + x.dst);
    return;
  }
  for (uint32_t lane = 0; lane < (varying ? lanes_ : 1); ++lane) {
    const uint32_t index = indexOf(x, lane);
    r_[x.dst + ((x.varying & kVaryingDst) != 0 ? lane : 0)] = std::min(index, last);
    if (index < limit || (varying && !isActive(lane))) continue;
    noteClamped(x, lane, varying);
    if (!options_.watch->checks().memory) continue;
    options_.watch->add({.code = FindingCode::OutOfBounds,
                         .site = x.site,
                         .invocation = options_.watch->invocation(varying ? lane : firstActive()),
                         .variable = code_.accesses[x.access].variable,
                         .element = index,
                         .limit = limit});
  }
}

/// What a lane then accesses is not what it meant to, so it races with nobody.
void Machine::noteClamped(const Instruction& x, uint32_t lane, bool varying) {
  clamped_.resize(code_.width);
  if (clamped_site_ != x.site) std::ranges::fill(clamped_, uint8_t{0});
  clamped_site_ = x.site;
  for (uint32_t k = varying ? lane : 0; k <= (varying ? lane : lanes_ - 1); ++k) clamped_[k] = 1;
}

void Machine::watchInteger(const Instruction& x) {
  const bool varying = (x.varying & (kVaryingA | kVaryingB)) != 0;
  for (uint32_t lane = 0; lane < (varying ? lanes_ : 1); ++lane) {
    if (varying && !isActive(lane)) continue;
    const uint32_t a = r_[x.a + ((x.varying & kVaryingA) != 0 ? lane : 0)], b = r_[x.b + ((x.varying & kVaryingB) != 0 ? lane : 0)];
    const uint64_t who = options_.watch->invocation(varying ? lane : firstActive());
    if (r_[x.c] != kPartial) {
      const bool is_signed = r_[x.c] == kSignedWrap;
      const bool negative = !is_signed && (x.varying & kVaryingB) == 0 && b > kNegativeConstants;
      const double value = withoutWrapping(x.join, numberOf(a, is_signed), numberOf(b, is_signed || negative));
      const bool fits =
          fits32(value, is_signed) || fits32(withoutWrapping(x.join, numberOf(a, is_signed), numberOf(b, is_signed)), is_signed);
      if (!fits) options_.watch->add({.code = FindingCode::Wrap, .site = x.site, .invocation = who, .op = x.join, .exact = value});
      continue;
    }
    const std::optional<FindingCode> found = partialOn(x.join, a, b);
    if (found) options_.watch->add({.code = *found, .site = x.site, .invocation = who, .a = a, .b = b, .op = x.join});
  }
}

void Machine::watchFloat(const Instruction& x) {
  const bool varying = (x.varying & kVaryingA) != 0;
  if (varying ? !routines_.anyNotFinite(r_ + x.a, code_.width) : isFinite(r_[x.a])) return;
  const bool stores = x.op == Opcode::WatchStored;
  const bool has_third = x.join == Opcode::Fma;
  for (uint32_t lane = 0; lane < (varying || stores ? lanes_ : 1); ++lane) {
    const uint32_t result = r_[x.a + (varying ? lane : 0)];
    if (isFinite(result) || ((varying || stores) && !isActive(lane))) continue;
    if (stores) {
      options_.watch->storedNotFinite(lane);
      continue;
    }
    const uint32_t a = r_[x.b + ((x.varying & kVaryingB) != 0 ? lane : 0)], b = r_[x.c + ((x.varying & kVaryingC) != 0 ? lane : 0)];
    const bool has_second = operandCount(x.join) > 1;
    if (!isFinite(a) || (has_second && !isFinite(b)) || (has_third && options_.watch->hasNotFinite(lane))) continue;
    const uint32_t who = varying ? lane : firstActive();
    options_.watch->madeNotFinite({.code = FindingCode::NotFinite,
                                   .site = x.site,
                                   .invocation = options_.watch->invocation(who),
                                   .a = a,
                                   .b = b,
                                   .result = result,
                                   .op = x.join},
                                  who);
  }
}

/// Lanes of one instruction are as concurrent as all others.
void Machine::watchAccess(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  if (access.home != Home::Buffer && access.home != Home::Workgroup) return;
  AccessHistory* history = options_.watch->history(access);
  if (history == nullptr) return;
  HistoryTime now = options_.watch->now(access, x.site);
  const bool stores = x.op == Opcode::Store, varying = (x.varying & kVaryingA) != 0;
  if (clamped_site_ == x.site) {
    if (stores && access.home == Home::Workgroup) noteDeferredReads(*history, now);
    watchLanes(x, *history, now);
    return;
  }
  if (access.home == Home::Workgroup) {
    if (stores) noteDeferredReads(*history, now);
    if (!stores && !history->wasWrittenIn(now.epoch)) return deferRead(x, *history, now);
  }
  if (varying && full() && access.stride == access.values.size() && std::has_single_bit(access.stride) && access.stride <= 4) {
    const uint32_t* index = r_ + x.a;
    if (routines_.scan(index, lanes_, UINT32_MAX).contiguous) {
      now.lane_shift = static_cast<uint32_t>(std::countr_zero(access.stride));
      const uint64_t first = access.offset + uint64_t{index[0]} * access.stride;
      const uint32_t count = lanes_ * access.stride;
      if (stores ? history->writeRow(first, count, now, routines_) : history->readRow(first, count, now, routines_)) return;
    }
  }
  stores || varying ? watchLanes(x, *history, now) : watchUniformLoad(x, *history, now);
}

void Machine::watchLanes(const Instruction& x, AccessHistory& history, const HistoryTime& now) {
  const MemoryAccess& access = code_.accesses[x.access];
  const bool stores = x.op == Opcode::Store;
  for (const MemoryValue& value : access.values) {
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      if (!isActive(lane) || isClamped(x, lane)) continue;
      const uint32_t element = indexOf(x, lane);
      const uint64_t word = access.offset + uint64_t{element} * access.stride + value.word;
      const AccessHistory::Conflict conflict = stores ? history.write(word, lane, now) : history.read(word, lane, now);
      if (conflict.kind == AccessHistory::Conflict::Kind::None) continue;
      options_.watch->race(conflict, x, access, element, lane, stores && writesTheSame(x, access, value, lane, conflict));
    }
  }
}

void Machine::watchUniformLoad(const Instruction& x, AccessHistory& history, const HistoryTime& now) {
  const MemoryAccess& access = code_.accesses[x.access];
  const uint32_t lane = firstActive(), element = indexOf(x, 0);
  for (const MemoryValue& value : access.values) {
    const uint64_t word = access.offset + uint64_t{element} * access.stride + value.word;
    const AccessHistory::Conflict conflict = history.readByAll(word, lane, active_ > 1, now);
    if (conflict.kind == AccessHistory::Conflict::Kind::None) continue;
    const uint32_t who = !conflict.other_group && conflict.lane == lane ? nextActive(lane) : lane;
    options_.watch->race(conflict, x, access, element, who, false);
  }
}

/// A read of workgroup memory can only conflict with a write between the same two barriers. Mostly there is none, so it is noted when there
/// is one.
void Machine::deferRead(const Instruction& x, AccessHistory& history, const HistoryTime& now) {
  const bool varying = (x.varying & kVaryingA) != 0;
  const uint32_t none = 0;
  const std::span<const uint32_t> index(x.a == UINT32_MAX ? &none : r_ + x.a, varying ? lanes_ : 1);
  history.defer({.access = x.access, .now = now}, index, full() ? std::span<const uint32_t>() : std::span(mask_, lanes_));
  if (history.isDeferringMuch()) noteDeferredReads(history, now);
}

void Machine::noteDeferredReads(AccessHistory& history, const HistoryTime& now) {
  for (const AccessHistory::DeferredRead& read : history.takeDeferred(now.epoch)) {
    const MemoryAccess& access = code_.accesses[read.access];
    const auto reads = [&](uint32_t lane) { return read.mask.empty() || read.mask[lane] != 0; };
    for (const MemoryValue& value : access.values) {
      const auto wordOf = [&](uint32_t index) { return access.offset + uint64_t{index} * access.stride + value.word; };
      if (read.index.size() != 1) {
        for (uint32_t lane = 0; lane < read.index.size(); ++lane)
          if (reads(lane)) (void)history.read(wordOf(read.index[lane]), lane, read.now);
        continue;
      }
      uint32_t first = 0, count = 0;
      for (uint32_t lane = lanes_; lane-- > 0;) {
        if (!reads(lane)) continue;
        first = lane;
        ++count;
      }
      (void)history.readByAll(wordOf(read.index[0]), first, count > 1, read.now);
    }
  }
}

/// Whether a lane stores what the write that it conflicts with did.
bool Machine::writesTheSame(const Instruction& x, const MemoryAccess& access, const MemoryValue& value, uint32_t lane,
                            const AccessHistory::Conflict& conflict) const {
  const auto of = [&](uint32_t k) { return r_[value.slot + (value.varying ? k : 0)]; };
  // The same instruction, which has not run yet; else memory has it.
  if (!conflict.other_group && conflict.site == x.site && conflict.lane < lane && indexOf(x, conflict.lane) == indexOf(x, lane) &&
      isActive(conflict.lane)) {
    return of(conflict.lane) == of(lane);
  }
  const View where = view(access, x.access);
  const uint64_t unit = uint64_t{indexOf(x, lane)} * access.stride + value.word;
  if (!access.half) return where.base[unit] == of(lane);
  uint16_t there = 0;
  std::memcpy(&there, halfView(access).base + 2 * (access.offset + unit), sizeof there);
  return there == static_cast<uint16_t>(of(lane));
}

void Machine::divergentBarrier(const Instruction& x, uint32_t absent) {
  if (!options_.watch->checks().barriers) return;
  options_.watch->add({.code = FindingCode::DivergentBarrier, .site = x.site, .invocation = options_.watch->invocation(absent)});
}

/// A loop that asks an atomic for the way on waits for another invocation, which does not come while this one runs.
void Machine::endlessLoop(const Instruction& x, uint32_t pc) {
  if (!options_.watch->checks().loops) return;
  const auto begin = code_.instructions.begin();
  const bool asks = std::any_of(begin + x.target, begin + pc, [](const Instruction& inner) {
    return inner.op >= Opcode::AtomicLoad && inner.op <= Opcode::AtomicCompareExchange && inner.op != Opcode::AtomicStore;
  });
  options_.watch->add({.code = asks ? FindingCode::Waits : FindingCode::EndlessLoop,
                       .site = x.site,
                       .invocation = options_.watch->invocation(firstActive())});
}

uint32_t Machine::firstActive() const {
  uint32_t lane = 0;
  while (lane + 1 < lanes_ && !isActive(lane)) ++lane;
  return lane;
}

uint32_t Machine::nextActive(uint32_t lane) const {
  for (uint32_t next = lane + 1; next < lanes_; ++next) {
    if (isActive(next)) return next;
  }
  return lane;
}

}  // namespace lockstep::reference
