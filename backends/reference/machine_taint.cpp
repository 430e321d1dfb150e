// SPDX-License-Identifier: Apache-2.0
// Values that nobody has written, followed through registers and memory until they are used: in arithmetic, an address, a condition or a
// buffer. Only while a buffer with such memory is bound; copies alone are no use.
#include <algorithm>
#include <array>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/watch.h"

namespace lockstep::reference {
namespace {

/// Moves the bits of `a` on, so that the result is as unknown as they are.
bool copies(Opcode op) { return op == Opcode::Move || op == Opcode::Select || op == Opcode::PackHalf || op == Opcode::UnpackHalf; }

}  // namespace

void Machine::startTaint() {
  const bool tracked = std::ranges::any_of(bindings_, [](const BufferView& buffer) { return buffer.written != nullptr; });
  if (options_.watch == nullptr || !tracked || !options_.watch->checks().memory) return;
  taint_.assign(code_.file_words, 0);
  lane_taint_.assign(lane_memory_.size(), 0);
  workgroup_taint_.assign(workgroup_memory_.size(), 0);
}

void Machine::clearTaint() {
  std::ranges::fill(taint_, uint8_t{0});
  std::ranges::fill(lane_taint_, uint8_t{0});
  std::ranges::fill(workgroup_taint_, uint8_t{0});
  any_taint_ = false;
}

bool Machine::isTainted(uint32_t slot, bool varying, uint32_t lane) const { return taint_[slot + (varying ? lane : 0)] != 0; }

/// A use of an unknown value by an active lane; each is reported once, after which the value counts as known.
void Machine::useTainted(const Instruction& x, uint32_t slot, bool varying, TaintUse use) {
  for (uint32_t lane = 0; lane < (varying ? lanes_ : 1); ++lane) {
    if (!isTainted(slot, varying, lane) || (varying && !isActive(lane))) continue;
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
    bool tainted = false;
    if (select) {
      const bool second = r_[x.c + ((x.varying & kVaryingC) != 0 ? lane : 0)] != 0;
      tainted = second ? isTainted(x.b, (x.varying & kVaryingB) != 0, lane) : isTainted(x.a, (x.varying & kVaryingA) != 0, lane);
    } else if (keeps) {
      tainted = isTainted(x.a, (x.varying & kVaryingA) != 0, lane);
    }
    taint_[x.dst + lane] = tainted ? 1 : 0;
  }
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
  const bool makes = x.op == Opcode::ClampIndex || x.op == Opcode::Address || x.op == Opcode::ArrayLength ||
                     (x.op >= Opcode::AtomicLoad && x.op <= Opcode::SubgroupShuffle);
  if (any_taint_ && makes) std::fill_n(taint_.begin() + x.dst, (x.varying & kVaryingDst) != 0 ? code_.width : 1, uint8_t{0});
  if (x.op == Opcode::Load || x.op == Opcode::LaneLoad) {
    taintLoad(x);
  } else if (x.op == Opcode::Store || x.op == Opcode::LaneStore) {
    if (any_taint_) taintStore(x);
  } else if (x.op >= Opcode::AtomicLoad && x.op <= Opcode::AtomicCompareExchange) {
    taintAtomic(x);
  } else if (any_taint_ && x.op == Opcode::Splat) {
    const bool tainted = taint_[x.a] != 0;
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      if (!x.masked || isActive(lane)) taint_[x.dst + lane] = tainted ? 1 : 0;
    }
  }
}

/// Whether word `at` of what an access reads is unknown. `at` counts from view().base, in words or halves.
bool Machine::isUnknown(const MemoryAccess& access, uint64_t at, uint32_t lane) const {
  if (access.home == Home::Buffer) {
    const uint8_t* written = bindings_[access.binding].written;
    return written != nullptr && written[access.half ? (access.offset + at) / 2 : access.offset + at] == 0;
  }
  if (access.home == Home::Workgroup) return workgroup_taint_[access.half ? (access.offset + at) / 2 : access.offset + at] != 0;
  return access.home == Home::Lanes && lane_taint_[(access.offset + at) * code_.width + lane] != 0;
}

void Machine::taintLoad(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  if (!any_taint_ && (access.home != Home::Buffer || bindings_[access.binding].written == nullptr)) return;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values) {
      if (!value.used) continue;
      const bool unknown = isUnknown(access, uint64_t{index} * access.stride + value.word, lane);
      taint_[value.slot + (value.varying ? lane : 0)] = unknown ? 1 : 0;
      if (unknown) {
        any_taint_ = true;
        if (access.home == Home::Buffer) options_.watch->loadedUnwritten(x.site);
      }
    }
  }
}

void Machine::taintStore(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values) {
      const bool tainted = isTainted(value.slot, value.varying, lane);
      const uint64_t at = access.offset + uint64_t{index} * access.stride + value.word;
      if (access.home == Home::Lanes) lane_taint_[at * code_.width + lane] = tainted ? 1 : 0;
      if (access.home == Home::Workgroup) workgroup_taint_[access.half ? at / 2 : at] = tainted ? 1 : 0;
      if (access.home == Home::Buffer && tainted) reportTainted(x, lane, TaintUse::Output);
    }
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
    if (reads && access.home == Home::Buffer && isUnknown(access, at, lane)) {
      options_.watch->loadedUnwritten(x.site);
      reportTainted(x, lane, TaintUse::Arithmetic);
      bindings_[access.binding].written[access.offset + at] = 1;
    }
  }
}

}  // namespace lockstep::reference
