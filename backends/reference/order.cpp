// SPDX-License-Identifier: Apache-2.0
// Whether the order in which workgroups run can show in what a kernel writes, as far as that is plain to see: atomics whose order matters,
// and stores of several workgroups to one place. Such a kernel runs its workgroups one after the other.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "backends/reference/code.h"

namespace lockstep::reference {
namespace {

bool isAtomic(Opcode op) { return op >= Opcode::AtomicLoad && op <= Opcode::AtomicCompareExchange; }

/// Whether the word is the same in the end, in whatever order several of them come.
bool commutes(Opcode op) { return op >= Opcode::AtomicAdd && op <= Opcode::AtomicXor; }

class OrderAnalysis {
 public:
  OrderAnalysis(const Code& code, bool row)
      : code_(code), row_(row), by_group_(code.registers.size()), used_(code.registers.size()), lanes_by_group_(code.variables.size()) {
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

  /// Values of workgroup_id.x.
  struct Groups {
    uint32_t first = 0, end = UINT32_MAX;
  };
  /// Holds where workgroup_id.x is below `at`, or where it is not.
  struct Bound {
    uint32_t at = 0;
    bool is_below = true;
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
    const Groups around = groups_;
    for (const Step& step : steps) {
      if (step.kind == StepKind::Memory && code_.variables[code_.accesses[step.access].variable].home == Home::Buffer) checkBuffer(step);
      if (step.kind == StepKind::Pure) noteBound(step);
      const auto bound = step.kind == StepKind::If && step.a.isRegister() ? bounds_.find(step.a.value) : bounds_.end();
      if (bound == bounds_.end()) {
        check(step.body);
        check(step.other);
        continue;
      }
      const Groups before = groups_;
      const Groups below{before.first, std::min(before.end, bound->second.at)}, from{std::max(before.first, bound->second.at), before.end};
      groups_ = bound->second.is_below ? below : from;
      check(step.body);
      groups_ = bound->second.is_below ? from : below;
      check(step.other);
      // Where the first arm leaves, what follows is reached through the other one.
      const bool leaves = !step.body.empty() && step.body.back().kind == StepKind::Exit;
      if (!leaves) groups_ = before;
    }
    groups_ = around;
  }

  /// `workgroup_id.x < constant`, its opposite, and both of workgroup_id.x - constant: how a kernel that was merged of several tells their
  /// workgroups apart, and how each of them asks whether it is one of its own.
  void noteBound(const Step& step) {
    const auto offsetOf = [&](const Operand& operand) -> std::optional<uint32_t> {
      if (!operand.isRegister()) return std::nullopt;
      if (operand.value == code_.group_id[0]) return 0;
      const auto known = offsets_.find(operand.value);
      return known == offsets_.end() ? std::nullopt : std::optional(known->second);
    };
    const std::optional<uint32_t> left = offsetOf(step.a), right = offsetOf(step.b);
    if (step.op == Opcode::SubI && left && step.b.isConstant()) offsets_[step.dst] = *left + step.b.value;
    if (step.op == Opcode::LtU && left && step.b.isConstant()) keepBound(step.dst, *left, step.b.value, true);
    if (step.op == Opcode::LeU && right && step.a.isConstant()) keepBound(step.dst, *right, step.a.value, false);
  }

  /// Not where the difference may have wrapped.
  void keepBound(Register condition, uint32_t offset, uint32_t value, bool is_below) {
    if (offset > groups_.first || value > UINT32_MAX - offset) return;
    bounds_[condition] = {offset + value, is_below};
  }

  [[nodiscard]] bool isOneGroup() const { return row_ && groups_.end <= uint64_t{groups_.first} + 1; }

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
      if (step.op == Opcode::Store && !byGroup(access.index) && !isOneGroup()) ordered_ = true;
    }
    if (update.atomically && update.plainly) ordered_ = true;
  }

  const Code& code_;
  const bool row_;
  std::vector<bool> by_group_;            ///< registers that depend on the workgroup
  std::vector<bool> used_;                ///< registers that something reads
  std::vector<bool> lanes_by_group_;      ///< variables outside of buffers that hold what depends on the workgroup
  std::vector<Update> updates_;           ///< of each variable
  std::map<Register, uint32_t> offsets_;  ///< registers that hold workgroup_id.x minus a number
  std::map<Register, Bound> bounds_;      ///< conditions on workgroup_id.x
  Groups groups_;                         ///< that get to where check() is
  bool changed_ = false, ordered_ = false;
};

}  // namespace

bool needsOrder(const Code& code, bool row) { return OrderAnalysis(code, row).run(); }

}  // namespace lockstep::reference
