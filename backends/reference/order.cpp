// SPDX-License-Identifier: Apache-2.0
// Whether the order in which workgroups run can show in what a kernel writes, as far as that is plain to see: atomics whose order matters,
// and stores of several workgroups to one place. Such a kernel runs its workgroups one after the other.
#include <vector>

#include "backends/reference/code.h"

namespace lockstep::reference {
namespace {

bool isAtomic(Opcode op) { return op >= Opcode::AtomicLoad && op <= Opcode::AtomicCompareExchange; }

/// Whether the word is the same in the end, in whatever order several of them come.
bool commutes(Opcode op) { return op >= Opcode::AtomicAdd && op <= Opcode::AtomicXor; }

class OrderAnalysis {
 public:
  explicit OrderAnalysis(const Code& code)
      : code_(code), by_group_(code.registers.size()), used_(code.registers.size()), lanes_by_group_(code.variables.size()) {
    for (const Register group : code.group_id) by_group_[group] = true;
  }

  bool run() {
    do {
      changed_ = false;
      spread(code_.body);
    } while (changed_);
    updates_.assign(code_.variables.size(), Update{});
    check(code_.body);
    return ordered_;
  }

 private:
  /// What a buffer is accessed by.
  struct Update {
    bool plainly = false, atomically = false;
    Opcode op = Opcode::Move;
  };

  [[nodiscard]] bool byGroup(const Operand& operand) const { return operand.isRegister() && by_group_[operand.value]; }

  void mark(Register r, bool value) {
    if (r == UINT32_MAX || !value || by_group_[r]) return;
    by_group_[r] = changed_ = true;
  }

  void use(const Operand& operand) {
    if (operand.isRegister()) used_[operand.value] = true;
  }

  /// Finds the registers that depend on the workgroup. What depends on it by control flow alone is left out, which errs towards order.
  void spread(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      for (const Operand& operand : {step.a, step.b, step.c}) {
        use(operand);
        mark(step.dst, byGroup(operand));
      }
      if (step.kind == StepKind::Memory) spreadMemory(step);
      if (step.kind == StepKind::Print) {
        for (const Operand& value : code_.accesses[step.access].values) use(value);
      }
      spread(step.body);
      spread(step.other);
    }
  }

  void spreadMemory(const Step& step) {
    const Access& access = code_.accesses[step.access];
    use(access.index);
    bool depends = byGroup(access.index) || lanes_by_group_[access.variable];
    if (step.op == Opcode::Load || step.op == Opcode::LaneLoad) {
      for (const Operand& value : access.values) mark(value.value, depends);
    } else if (isAtomic(step.op)) {
      mark(step.dst, depends);
    } else {
      for (const Operand& value : access.values) {
        use(value);
        depends = depends || byGroup(value);
      }
      // Memory of a lane or a workgroup; of a buffer only the place counts.
      if (depends && code_.variables[access.variable].home != Home::Buffer && !lanes_by_group_[access.variable]) {
        lanes_by_group_[access.variable] = changed_ = true;
      }
    }
  }

  void check(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.kind == StepKind::Memory && code_.variables[code_.accesses[step.access].variable].home == Home::Buffer) checkBuffer(step);
      check(step.body);
      check(step.other);
    }
  }

  void checkBuffer(const Step& step) {
    const Access& access = code_.accesses[step.access];
    Update& update = updates_[access.variable];
    if (isAtomic(step.op)) {
      const bool other_op = update.atomically && update.op != step.op;
      update.atomically = true;
      update.op = step.op;
      if (!commutes(step.op) || used_[step.dst] || other_op) ordered_ = true;
    } else {
      update.plainly = true;
      if (step.op == Opcode::Store && !byGroup(access.index)) ordered_ = true;
    }
    if (update.atomically && update.plainly) ordered_ = true;
  }

  const Code& code_;
  std::vector<bool> by_group_;        ///< registers that depend on the workgroup
  std::vector<bool> used_;            ///< registers that something reads
  std::vector<bool> lanes_by_group_;  ///< variables outside of buffers that hold what depends on the workgroup
  std::vector<Update> updates_;       ///< of each variable
  bool changed_ = false, ordered_ = false;
};

}  // namespace

bool needsOrder(const Code& code) { return OrderAnalysis(code).run(); }

}  // namespace lockstep::reference
