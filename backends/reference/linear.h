// SPDX-License-Identifier: Apache-2.0
// Linear code: scalar code with its control flow turned into mask operations and jumps, still with unlimited registers. Between the
// tree (code.h) and the bytecode (bytecode.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backends/reference/code.h"

namespace lockstep::reference {

constexpr uint32_t kNone = UINT32_MAX;

struct Linear {
  Opcode op = Opcode::End;
  Register dst = kNone;
  Operand a{}, b{}, c{};
  Opcode join = Opcode::Move;  ///< Subgroup*, Watch*
  uint32_t access = kNone;
  uint32_t frame = 0;       ///< If*, Scope*, Clear: mask frame; Barrier: the spaces that it orders
  uint32_t alive = 0;       ///< IfEnd, ScopeEnd with `left`: frame of the innermost scope that lanes may have left
  uint32_t target = kNone;  ///< label
  bool left = false;        ///< IfEnd, ScopeEnd: lanes may have left for an outer scope
  bool masked = false;      ///< assigns a varying variable in the active lanes
  bool dead = false;
  uint32_t site = 0;
  [[nodiscard]] bool isPure() const { return op < Opcode::Splat; }
};

struct LinearCode {
  std::vector<Linear> steps;
  std::vector<uint32_t> labels;                      ///< label -> index of a step
  std::vector<std::pair<uint32_t, uint32_t>> loops;  ///< first and last step of each loop, inner before outer
  uint32_t frames = 0;
};

LinearCode linearise(const Code& code);
/// Fuses multiply and add, reads variables in place and writes results straight into variables.
void optimise(const Code& code, std::vector<Access>& accesses, LinearCode& linear);

/// Calls `visit(operand, is_definition)` for every register that a step touches; accesses' values included.
template <class Visit>
void visitRegisters(Linear& step, std::vector<Access>& accesses, Visit visit) {
  for (Operand* operand : {&step.a, &step.b, &step.c})
    if (operand->isRegister()) visit(operand->value, false);
  if (step.access != kNone) {
    Access& access = accesses[step.access];
    bool uses_index = step.op != Opcode::Address && step.op != Opcode::CheckIndex && step.op != Opcode::ClampIndex;
    if (uses_index && access.index.isRegister()) visit(access.index.value, false);
    bool loads = step.op == Opcode::Load || step.op == Opcode::LaneLoad;
    for (Operand& value : access.values)
      if (value.isRegister()) visit(value.value, loads);
  }
  if (step.dst != kNone) visit(step.dst, true);
}

}  // namespace lockstep::reference
