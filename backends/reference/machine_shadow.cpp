// SPDX-License-Identifier: Apache-2.0
// Shadows of values (sanitize/shadows.h) that move between registers and memory. Each function is called after its instruction ran.
#include <algorithm>
#include <array>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/shadows.h"

namespace lockstep::reference {

Shadow* Machine::shadowsOf(const MemoryAccess& access) const {
  if (access.home == Home::Buffer) {
    Shadow* shadows = bindings_[access.binding].shadows;
    return shadows == nullptr ? nullptr : shadows + access.offset;
  }
  if (access.home == Home::Workgroup) return options_.shadows->workgroupMemory().data() + access.offset;
  return access.home == Home::Lanes ? options_.shadows->laneMemory().data() + size_t{access.offset} * code_.width : nullptr;
}

void Machine::shadowMemory(const Instruction& x) {
  if (x.op == Opcode::Load || x.op == Opcode::LaneLoad) {
    shadowLoad(x);
  } else if (x.op == Opcode::Store || x.op == Opcode::LaneStore) {
    shadowStore(x);
  } else if (x.op == Opcode::Splat) {
    const Shadow shadow = options_.shadows->of(x.a, r_[x.a]);
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      if (!x.masked || isActive(lane)) options_.shadows->set(x.dst + lane, shadow);
    }
  } else if (x.op >= Opcode::SubgroupReduce && x.op <= Opcode::SubgroupShuffle) {
    shadowSubgroup(x);
  }
}

void Machine::shadowLoad(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const Shadow* shadows = access.half ? nullptr : shadowsOf(access);
  const bool lanes = access.home == Home::Lanes;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values) {
      if (!value.used) continue;
      const uint32_t slot = value.slot + (value.varying ? lane : 0);
      const size_t at = size_t{index} * access.stride + value.word;
      const Shadow shadow = shadows == nullptr ? Shadow{} : shadows[lanes ? at * code_.width + lane : at];
      options_.shadows->setLoaded(slot, Shadows::checked(shadow, r_[slot]), x.site);
    }
  }
}

void Machine::shadowStore(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  Shadow* shadows = access.half ? nullptr : shadowsOf(access);
  if (shadows == nullptr) return;
  const bool lanes = access.home == Home::Lanes;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint32_t index = indexOf(x, lane);
    if (!isActive(lane) || index >= limits_[x.access]) continue;
    for (const MemoryValue& value : access.values) {
      const uint32_t slot = value.slot + (value.varying ? lane : 0);
      const size_t at = size_t{index} * access.stride + value.word;
      shadows[lanes ? at * code_.width + lane : at] = options_.shadows->of(slot, r_[slot]);
    }
  }
}

/// Sums and products of floats come from all operands, in any order; what is moved is found again by its bits.
void Machine::shadowSubgroup(const Instruction& x) {
  const bool joins = x.op <= Opcode::SubgroupExclusive && isContinuous(x.join);
  const bool moves = x.op == Opcode::SubgroupFirst || x.op == Opcode::SubgroupShuffle;
  if (!joins && !moves) return;
  const bool varying = (x.varying & kVaryingA) != 0;
  std::vector<Shadow> operands;
  for (uint32_t first = 0; first < lanes_; first += code_.subgroup_size) {
    operands.clear();
    const uint32_t end = std::min(first + code_.subgroup_size, lanes_);
    for (uint32_t k = first; k < end; ++k) {
      const uint32_t lane = code_.subgroup_order[k];
      const uint32_t slot = x.a + (varying ? lane : 0);
      const Shadow operand = options_.shadows->of(slot, r_[slot]);
      const uint32_t result = r_[x.dst + lane];
      if (x.op == Opcode::SubgroupInclusive && isActive(lane)) operands.push_back(operand);
      if (joins && x.op != Opcode::SubgroupReduce && isActive(lane))
        options_.shadows->set(x.dst + lane, options_.shadows->combined(x.join, operands, result, x.site));
      if (x.op != Opcode::SubgroupInclusive && (moves || isActive(lane))) operands.push_back(operand);
    }
    if (x.op == Opcode::SubgroupInclusive || x.op == Opcode::SubgroupExclusive) continue;
    for (uint32_t k = first; k < end; ++k) {
      const uint32_t lane = code_.subgroup_order[k];
      if (!isActive(lane)) continue;
      const uint32_t result = r_[x.dst + lane];
      const auto source = std::ranges::find(operands, result, &Shadow::bits);
      options_.shadows->set(x.dst + lane, x.op == Opcode::SubgroupReduce ? options_.shadows->combined(x.join, operands, result, x.site)
                                          : source != operands.end()     ? *source
                                                                         : Shadow{});
    }
  }
}

}  // namespace lockstep::reference
