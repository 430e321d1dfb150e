// SPDX-License-Identifier: Apache-2.0
// Values that nobody has written, followed through registers and memory until they are used: in arithmetic, an address, a condition or a
// buffer; copies alone are no use. And elements of workgroup arrays that are of an earlier round of a loop (sanitize/refills.h), followed
// through all that is computed of them until they reach a buffer. Only while a buffer with memory that nobody wrote is bound, or in a
// kernel with such a loop.
#include <algorithm>
#include <array>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/influence.h"
#include "backends/reference/sanitize/watch.h"

namespace lockstep::reference {
namespace {

/// Moves the bits of `a` on, so that the result is as unknown as they are.
bool copies(Opcode op) { return op == Opcode::Move || op == Opcode::Select || op == Opcode::PackHalf || op == Opcode::UnpackHalf; }

/// Whether an atomic with this operand leaves another value for sure; a maximum may not.
bool changes(Opcode op, uint32_t operand) {
  if (op == Opcode::AtomicStore || op == Opcode::AtomicExchange) return true;
  return (op == Opcode::AtomicAdd || op == Opcode::AtomicSub || op == Opcode::AtomicXor) && operand != 0;
}

}  // namespace

void Machine::startTaint() {
  const bool tracked = std::ranges::any_of(bindings_, [](const BufferView& buffer) { return buffer.written != nullptr; });
  if (options_.watch == nullptr || (!tracked && code_.refills.empty()) || !options_.watch->checks().memory) return;
  taint_.assign(code_.file_words, 0);
  lane_taint_.assign(lane_memory_.size(), 0);
  workgroup_taint_.assign(workgroup_memory_.size(), 0);
}

void Machine::clearTaint() {
  if (!any_taint_) return;
  std::ranges::fill(taint_, uint8_t{0});
  std::ranges::fill(lane_taint_, uint8_t{0});
  std::ranges::fill(workgroup_taint_, uint8_t{0});
  any_taint_ = false;
}

/// A use of an unknown value by an active lane; each is reported once, after which the value counts as known.
void Machine::useTainted(const Instruction& x, uint32_t slot, bool varying, TaintUse use) {
  for (uint32_t lane = 0; lane < (varying ? lanes_ : 1); ++lane) {
    if (taintOf(slot, varying, lane) != kUnknownValue || (varying && !isActive(lane))) continue;
    taint_[slot + (varying ? lane : 0)] = 0;
    reportTainted(x, varying ? lane : firstActive(), use);
  }
}

void Machine::reportTainted(const Instruction& x, uint32_t lane, TaintUse use) {
  options_.watch->add({.code = FindingCode::Uninitialised,
                       .site = x.site,
                       .other_site = options_.watch->lastUnwrittenLoad(),
                       .invocation = options_.watch->invocation(lane),
                       .limit = static_cast<uint32_t>(use)});
}

void Machine::taintPure(const Instruction& x) {
  const auto operands = operandsOf(x);
  const bool keeps = copies(x.op);
  const bool select = x.op == Opcode::Select;
  if (!keeps) {
    for (size_t k = 0; k < operandCount(x.op); ++k)
      useTainted(x, operands[k].first, (x.varying & operands[k].second) != 0, TaintUse::Arithmetic);
  } else if (select) {
    useTainted(x, x.c, (x.varying & kVaryingC) != 0, TaintUse::Condition);
  }
  const bool varying = (x.varying & kVaryingDst) != 0;
  for (uint32_t lane = 0; lane < (varying ? lanes_ : 1); ++lane) {
    if (x.masked && varying && !isActive(lane)) continue;
    uint8_t taint = 0;
    if (select) {
      const bool second = r_[x.c + ((x.varying & kVaryingC) != 0 ? lane : 0)] != 0;
      taint = second ? taintOf(x.b, (x.varying & kVaryingB) != 0, lane) : taintOf(x.a, (x.varying & kVaryingA) != 0, lane);
    } else if (keeps) {
      taint = taintOf(x.a, (x.varying & kVaryingA) != 0, lane);
    } else {
      taint = doubtOfResult(x, lane);
    }
    taint_[x.dst + lane] = taint;
  }
}

/// Of what an operation will give one lane.
uint8_t Machine::doubtOfResult(const Instruction& x, uint32_t lane) {
  DoubtfulOperands operands;
  Instruction alone = x;
  uint32_t* const slots[] = {&alone.a, &alone.b, &alone.c};
  bool any = false;
  for (size_t k = 0; k < operandCount(x.op); ++k) {
    const auto [first, bit] = operandsOf(x)[k];
    const uint32_t slot = first + ((x.varying & bit) != 0 ? lane : 0);
    if (taint_[slot] >= kFirstDoubt) operands.doubt[k] = taint_[slot];
    operands.bits[k] = r_[slot];
    *slots[k] = slot;
    any = any || operands.doubt[k] != 0;
  }
  if (!any) return 0;
  alone.dst = code_.scratch_row;
  routines_.pure[static_cast<size_t>(x.op)][0](r_, code_.width, alone);
  return doubtOf(x.op, operands, *scratch(0));
}

void Machine::taintControl(const Instruction& x) {
  if (!any_taint_) return;
  if (x.op == Opcode::JumpIfFalse) useTainted(x, x.a, false, TaintUse::Condition);
  if (x.op == Opcode::IfBegin) useTainted(x, x.a, true, TaintUse::Condition);
}

/// Before the instruction runs, and after its index was clamped.
void Machine::taintMemory(const Instruction& x) {
  const bool indexed = x.op == Opcode::Load || x.op == Opcode::Store || x.op == Opcode::LaneLoad || x.op == Opcode::LaneStore ||
                       x.op == Opcode::ClampIndex || x.op == Opcode::Address ||
                       (x.op >= Opcode::AtomicLoad && x.op <= Opcode::AtomicCompareExchange);
  if (any_taint_ && indexed && x.a != UINT32_MAX) useTainted(x, x.a, (x.varying & kVaryingA) != 0, TaintUse::Address);
  if (any_taint_ && x.op >= Opcode::SubgroupReduce && x.op <= Opcode::SubgroupShuffle && x.op != Opcode::SubgroupElect)
    useTainted(x, x.a, (x.varying & kVaryingA) != 0, TaintUse::Arithmetic);
  if (x.op == Opcode::Store) noteRefill(x);
  const bool makes = x.op == Opcode::ClampIndex || x.op == Opcode::Address || x.op == Opcode::ArrayLength ||
                     (x.op >= Opcode::AtomicLoad && x.op <= Opcode::SubgroupShuffle);
  if (any_taint_ && makes) std::fill_n(taint_.begin() + x.dst, (x.varying & kVaryingDst) != 0 ? code_.width : 1, uint8_t{0});
  if (any_taint_ && x.op == Opcode::SubgroupReduce) taintSubgroup(x);
  if (x.op == Opcode::Load || x.op == Opcode::LaneLoad) {
    taintLoad(x);
  } else if (x.op == Opcode::Store || x.op == Opcode::LaneStore) {
    if (any_taint_) taintStore(x);
  } else if (x.op >= Opcode::AtomicLoad && x.op <= Opcode::AtomicCompareExchange) {
    taintAtomic(x);
  } else if (any_taint_ && x.op == Opcode::Splat) {
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      if (!x.masked || isActive(lane)) taint_[x.dst + lane] = taint_[x.a];
    }
  }
}

/// Of word `at` of what an access reads. `at` counts from view().base, in words or halves.
uint8_t Machine::taintAt(const MemoryAccess& access, uint64_t at, uint32_t lane) const {
  if (access.home == Home::Buffer) {
    const uint8_t* written = bindings_[access.binding].written;
    return written != nullptr && written[access.half ? (access.offset + at) / 2 : access.offset + at] == 0 ? kUnknownValue : 0;
  }
  if (access.home == Home::Workgroup) return workgroup_taint_[access.half ? (access.offset + at) / 2 : access.offset + at];
  return access.home == Home::Lanes ? lane_taint_[(access.offset + at) * code_.width + lane] : 0;
}

void Machine::taintLoad(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  Watch& watch = *options_.watch;
  const bool partial =
      access.home == Home::Workgroup && watch.refills().tracks(access.variable) && watch.refills().isPartial(access.variable);
  if (!any_taint_ && !partial && (access.home != Home::Buffer || bindings_[access.binding].written == nullptr)) return;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values) {
      if (!value.used) continue;
      const uint64_t at = uint64_t{index} * access.stride + value.word;
      uint8_t taint = taintAt(access, at, lane);
      if (partial && taint == 0) taint = watch.doubtOfLoad(x, access, access.offset + at, index, lane);
      taint_[value.slot + (value.varying ? lane : 0)] = taint;
      any_taint_ = any_taint_ || taint != 0;
      if (taint == kUnknownValue && access.home == Home::Buffer) watch.loadedUnwritten(x.site);
    }
  }
}

void Machine::taintStore(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values) {
      const uint8_t taint = taintOf(value.slot, value.varying, lane);
      const uint64_t at = access.offset + uint64_t{index} * access.stride + value.word;
      if (access.home == Home::Lanes) lane_taint_[at * code_.width + lane] = taint;
      // Two halves share a byte, so a doubt about one of them would spread to the other.
      if (access.home == Home::Workgroup) workgroup_taint_[access.half ? at / 2 : at] = access.half && taint != kUnknownValue ? 0 : taint;
      if (access.home != Home::Buffer) continue;
      if (taint == kUnknownValue) reportTainted(x, lane, TaintUse::Output);
      if (taint >= kFirstDoubt) options_.watch->storedInDoubt(taint, lane);
    }
  }
}

void Machine::noteRefill(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  Refills& refills = options_.watch->refills();
  if (access.home != Home::Workgroup || !refills.tracks(access.variable)) return;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values)
      refills.store(access, x.site, access.offset + uint64_t{index} * access.stride + value.word, lane);
  }
}

/// A sum is as doubtful as its addends; of other operations, what is in doubt may have no say.
void Machine::taintSubgroup(const Instruction& x) {
  if (x.join != Opcode::AddF && x.join != Opcode::AddI) return;
  const bool varying = (x.varying & kVaryingA) != 0;
  for (uint32_t first = 0; first < lanes_; first += code_.subgroup_size) {
    const uint32_t end = std::min(first + code_.subgroup_size, lanes_);
    uint8_t doubt = 0;
    for (uint32_t k = first; k < end; ++k) {
      const uint32_t lane = code_.subgroup_order[k];
      const uint8_t taint = taintOf(x.a, varying, lane);
      if (isActive(lane) && taint >= kFirstDoubt && r_[x.a + (varying ? lane : 0)] != 0) doubt = taint;
    }
    for (uint32_t k = first; k < end; ++k)
      if (isActive(code_.subgroup_order[k])) taint_[x.dst + code_.subgroup_order[k]] = doubt;
  }
}

void Machine::taintAtomic(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const bool reads = x.op != Opcode::AtomicStore && x.op != Opcode::AtomicExchange;
  if (any_taint_ && x.op != Opcode::AtomicLoad)
    useTainted(x, x.b, (x.varying & kVaryingB) != 0, reads ? TaintUse::Arithmetic : TaintUse::Output);
  if (any_taint_ && x.op == Opcode::AtomicCompareExchange) useTainted(x, x.c, (x.varying & kVaryingC) != 0, TaintUse::Arithmetic);
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    const uint64_t at = uint64_t{index} * access.stride;
    const uint8_t operand = x.op == Opcode::AtomicLoad ? 0 : taintOf(x.b, (x.varying & kVaryingB) != 0, lane);
    if (operand >= kFirstDoubt && access.home == Home::Buffer && changes(x.op, r_[x.b + ((x.varying & kVaryingB) != 0 ? lane : 0)]))
      options_.watch->storedInDoubt(operand, lane);
    if (reads && access.home == Home::Buffer && taintAt(access, at, lane) != 0) {
      options_.watch->loadedUnwritten(x.site);
      reportTainted(x, lane, TaintUse::Arithmetic);
      bindings_[access.binding].written[access.offset + at] = 1;
    }
  }
}

}  // namespace lockstep::reference
