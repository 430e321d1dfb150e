// SPDX-License-Identifier: Apache-2.0
// Which registers hold one value for all lanes, and which constructs lanes enter or leave apart. Starts from "everything is uniform" and
// goes up to a fixed point, so the answer is the most uniform one that is consistent.
#include <vector>

#include "backends/reference/code.h"

namespace lockstep::reference {
namespace {

struct Construct {
  uint32_t id;
  bool is_loop;
};

class Analysis {
 public:
  explicit Analysis(Code& code) : code_(code), variables_(code.registers.size()) {}

  void run() {
    for (Register r : code_.local_id) code_.registers[r].varying = true;
    code_.registers[code_.subgroup_lane].varying = code_.registers[code_.subgroup_id].varying = true;
    for (Register r : code_.group_id) code_.registers[r].varying = code_.batched;
    collecting_ = true;
    walk(code_.body);
    collecting_ = false;
    do {
      changed_ = false;
      walk(code_.body);
    } while (changed_);
  }

 private:
  /// Where a variable was declared, and the loop (if one) beside the declaration that holds all its reads.
  struct VariableFacts {
    size_t depth = 0;
    uint32_t loop = UINT32_MAX;
    bool read = false, read_elsewhere = false;
  };

  [[nodiscard]] bool varying(const Operand& operand) const { return operand.isRegister() && code_.registers[operand.value].varying; }

  void mark(Register r, bool value) {
    if (r == UINT32_MAX || !value || code_.registers[r].varying) return;
    code_.registers[r].varying = true;
    changed_ = true;
  }

  void noteRead(const Operand& operand) {
    if (!operand.isRegister() || !code_.registers[operand.value].variable) return;
    VariableFacts& facts = variables_[operand.value];
    bool in_loop = stack_.size() > facts.depth && stack_[facts.depth].is_loop;
    uint32_t loop = in_loop ? stack_[facts.depth].id : UINT32_MAX;
    facts.read_elsewhere = facts.read_elsewhere || !in_loop || (facts.read && facts.loop != loop);
    facts.read = true;
    facts.loop = loop;
  }

  /// Whether lanes that are away now may read the variable later. Lanes that left a loop for good do not count when the variable is
  /// declared right before the loop and read only in it.
  [[nodiscard]] bool assignedApart(Register r) const {
    const VariableFacts& facts = variables_[r];
    for (size_t depth = facts.depth; depth < stack_.size(); ++depth) {
      // Lanes that left the entry point (construct 0) never come back.
      if (!code_.divergent[stack_[depth].id] || stack_[depth].id == 0) continue;
      bool own_loop = depth == facts.depth && stack_[depth].is_loop && !facts.read_elsewhere && facts.loop == stack_[depth].id;
      if (!own_loop) return true;
    }
    return false;
  }

  void memory(const Step& step) {
    const Access& access = code_.accesses[step.access];
    if (collecting_) return;
    bool lanes = step.op == Opcode::LaneLoad;
    if (lanes || step.op == Opcode::Load) {
      bool apart = lanes || varying(access.index) || (code_.batched && code_.variables[access.variable].home == Home::Workgroup);
      for (const Operand& value : access.values) mark(value.value, apart);
    } else {
      mark(step.dst, true);
    }
  }

  void walk(const std::vector<Step>& steps) {
    for (const Step& step : steps) visit(step);
  }

  void nested(const Step& step, const std::vector<Step>& body) {
    stack_.push_back({step.construct, step.kind == StepKind::Loop});
    walk(body);
    stack_.pop_back();
  }

  void visit(const Step& step) {
    if (collecting_) {
      noteRead(step.a);
      noteRead(step.b);
      noteRead(step.c);
    }
    switch (step.kind) {
      case StepKind::Pure:
      case StepKind::Address:
      case StepKind::Clamp:
        mark(step.dst, varying(step.a) || varying(step.b) || varying(step.c));
        break;
      case StepKind::Declare:
        if (collecting_) variables_[step.dst].depth = stack_.size();
        mark(step.dst, varying(step.a));
        break;
      case StepKind::Assign:
        if (!collecting_) mark(step.dst, varying(step.a) || assignedApart(step.dst));
        break;
      case StepKind::Memory:
        memory(step);
        break;
      case StepKind::Subgroup:
        mark(step.dst, true);
        break;
      case StepKind::Check:
      case StepKind::Watch:
      case StepKind::Length:
      case StepKind::Print:
      case StepKind::Barrier:
        break;
      case StepKind::If:
        if (varying(step.a)) setDivergent(step.construct);
        nested(step, step.body);
        nested(step, step.other);
        break;
      case StepKind::Loop:
      case StepKind::Scope:
        nested(step, step.body);
        break;
      case StepKind::Exit:
        leave(step.construct);
        break;
    }
  }

  /// Lanes leave `target` apart when any construct inside it, around the exit, is entered or left apart.
  void leave(uint32_t target) {
    for (size_t depth = stack_.size(); depth > 0 && stack_[depth - 1].id != target; --depth)
      if (code_.divergent[stack_[depth - 1].id]) setDivergent(target);
  }

  void setDivergent(uint32_t construct) {
    if (code_.divergent[construct]) return;
    code_.divergent[construct] = true;
    changed_ = true;
  }

  Code& code_;
  std::vector<VariableFacts> variables_;
  std::vector<Construct> stack_;
  bool collecting_ = false, changed_ = false;
};

void countUses(const Code& code, const std::vector<Step>& steps, std::vector<uint32_t>& uses) {
  auto use = [&](const Operand& operand) {
    if (operand.isRegister()) ++uses[operand.value];
  };
  for (const Step& step : steps) {
    use(step.a);
    use(step.b);
    use(step.c);
    if (step.kind == StepKind::Memory || step.kind == StepKind::Print) {
      use(code.accesses[step.access].index);
      if (step.op == Opcode::Store || step.op == Opcode::LaneStore || step.kind == StepKind::Print)
        for (const Operand& value : code.accesses[step.access].values) use(value);
    }
    countUses(code, step.body, uses);
    countUses(code, step.other, uses);
  }
}

void dropUnused(std::vector<Step>& steps, std::vector<uint32_t>& uses) {
  for (size_t k = steps.size(); k-- > 0;) {
    Step& step = steps[k];
    dropUnused(step.other, uses);
    dropUnused(step.body, uses);
    if (step.kind != StepKind::Pure || uses[step.dst] != 0) continue;
    for (const Operand* operand : {&step.a, &step.b, &step.c})
      if (operand->isRegister()) --uses[operand->value];
    step.dst = UINT32_MAX;
  }
  std::erase_if(steps, [](const Step& step) { return step.kind == StepKind::Pure && step.dst == UINT32_MAX; });
}

}  // namespace

void analyseUniformity(Code& code) {
  for (RegisterInfo& info : code.registers) info.varying = false;
  code.divergent.assign(code.construct_count, false);
  Analysis(code).run();
}

void removeDeadSteps(Code& code) {
  std::vector<uint32_t> uses(code.registers.size());
  countUses(code, code.body, uses);
  dropUnused(code.body, uses);
}

}  // namespace lockstep::reference
