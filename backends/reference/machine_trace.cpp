// SPDX-License-Identifier: Apache-2.0
// Shows the accesses of invocations to a tracer (sanitize/tracer.h), after the instruction ran.
#include "backends/reference/machine.h"
#include "backends/reference/sanitize/tracer.h"

namespace lockstep::reference {

void Machine::traceMemory(const Instruction& x) {
  Tracer& tracer = *options_.tracer;
  if (x.op == Opcode::Splat) return tracer.splat(x, r_, mask_, lanes_);
  const bool loads = x.op == Opcode::Load || x.op == Opcode::LaneLoad, stores = x.op == Opcode::Store || x.op == Opcode::LaneStore;
  const bool atomic = x.op >= Opcode::AtomicLoad && x.op <= Opcode::AtomicCompareExchange;
  if (!loads && !stores && !atomic) return traceOther(x);
  const MemoryAccess& access = code_.accesses[x.access];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    const uint64_t element = access.offset + uint64_t{index} * access.stride;
    if (atomic) {
      const bool varying = (x.varying & kVaryingDst) != 0;
      tracer.load(x, access, element, lane, x.dst + (varying ? lane : 0), r_[x.dst + (varying ? lane : 0)]);
      if (x.op != Opcode::AtomicLoad) {
        const uint32_t slot = x.b + ((x.varying & kVaryingB) != 0 ? lane : 0);
        tracer.store(x, access, element, lane, slot, r_[slot]);
      }
      continue;
    }
    for (const MemoryValue& value : access.values) {
      const uint32_t slot = value.slot + (value.varying ? lane : 0);
      // Halves have words of their own.
      const uint64_t word = element + value.word;
      if (stores) tracer.store(x, access, word, lane, slot, r_[slot]);
      if (loads && value.used) tracer.load(x, access, word, lane, slot, r_[slot]);
    }
  }
}

/// Subgroup operations, lengths, addresses: results that are not taken apart further.
void Machine::traceOther(const Instruction& x) {
  if (x.op == Opcode::ClampIndex || x.op == Opcode::Address || x.op == Opcode::ArrayLength ||
      (x.op >= Opcode::SubgroupReduce && x.op <= Opcode::SubgroupShuffle)) {
    Instruction made = x;
    made.op = Opcode::ArrayLength;
    options_.tracer->before(made, r_);
    options_.tracer->after(made, r_, mask_);
  }
}

}  // namespace lockstep::reference
