// SPDX-License-Identifier: Apache-2.0
// Shows the accesses of invocations to a tracer (sanitize/tracer.h), after the instruction ran.
#include "backends/reference/machine.h"
#include "backends/reference/sanitize/tracer.h"

namespace lockstep::reference {
namespace {

/// Word `word` of the memory of the variable's home, as an access counts it.
TracedPlace placeOf(const Bytecode& code, const MemoryAccess& access, uint64_t word) {
  const Variable& variable = code.variables[access.variable];
  const uint64_t unit = access.half ? 2 : variable.unit;
  return {.variable = access.variable, .byte = word * unit - uint64_t{variable.offset} * variable.unit, .size = access.half ? 2u : 4u};
}

}  // namespace

void Machine::traceMemory(const Instruction& x) {
  Tracer& tracer = *options_.tracer;
  if (x.op == Opcode::Splat) return tracer.splat(x, r_, mask_, lanes_);
  const bool loads = x.op == Opcode::Load || x.op == Opcode::LaneLoad, stores = x.op == Opcode::Store || x.op == Opcode::LaneStore;
  if (!loads && !stores) return traceOther(x);
  const MemoryAccess& access = code_.accesses[x.access];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    const uint64_t element = access.offset + uint64_t{index} * access.stride;
    for (uint32_t k = 0; k < access.values.size(); ++k) {
      const MemoryValue& value = access.values[k];
      const uint32_t slot = value.slot + (value.varying ? lane : 0);
      TracedPlace place = placeOf(code_, access, element + value.word);
      place.component = k;
      if (stores) tracer.store(x, place, lane, slot, r_[slot]);
      if (loads && value.used) tracer.load(x, place, lane, slot, r_[slot]);
    }
  }
}

void Machine::traceAtomic(const Instruction& x, uint32_t lane, uint64_t element, uint32_t stored) {
  const uint32_t operand = x.b + ((x.varying & kVaryingB) != 0 ? lane : 0), compare = x.c + ((x.varying & kVaryingC) != 0 ? lane : 0);
  const uint32_t result = x.dst + lane;
  const bool fails = x.op == Opcode::AtomicCompareExchange && r_[result] != r_[compare];
  options_.tracer->atomic(x, placeOf(code_, code_.accesses[x.access], element), lane,
                          {.result = result,
                           .operand = operand,
                           .old_bits = r_[result],
                           .operand_bits = r_[operand],
                           .stored_bits = stored,
                           .stores = x.op != Opcode::AtomicLoad && !fails});
}

/// Subgroup operations, lengths, addresses: results that are not taken apart further.
void Machine::traceOther(const Instruction& x) {
  if (x.op == Opcode::ClampIndex || x.op == Opcode::Address || x.op == Opcode::ArrayLength ||
      (x.op >= Opcode::SubgroupReduce && x.op <= Opcode::SubgroupShuffle)) {
    options_.tracer->leaf(x, r_, mask_);
  }
}

}  // namespace lockstep::reference
