// SPDX-License-Identifier: Apache-2.0
// Ids, ownership and dominance.
#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/validate_internal.h"

namespace lockstep::kernel {
namespace {

constexpr std::string_view kStructure = "kernel.structure";

class IdChecker {
 public:
  IdChecker(const Module& module, Problems& problems)
      : module_(module),
        problems_(problems),
        types_(module.types),
        block_seen_(module.blocks.size()),
        instruction_seen_(module.instructions.size()),
        parameter_seen_(module.values.size()),
        constant_seen_(module.values.size()) {}

  void run() {
    for (size_t i = 0; i < module_.globals.size(); ++i) checkGlobal(i);
    for (size_t i = 0; i < module_.functions.size(); ++i) checkFunction(FunctionId(i));
  }

 private:
  void checkGlobal(size_t index) {
    const GlobalVariable& global = module_.globals[index];
    bool type_known = isType(global.type);
    bool owned = isValue(global.value) && module_[global.value].kind == ValueKind::Variable && module_[global.value].index == index;
    if (!type_known || !owned || !isType(module_[global.value].type)) {
      problems_.add(atGlobal(index), kStructure, "the variable's type or value is out of range or belongs to another variable");
    } else {
      const Type& pointer = module_.typeOf(global.value);
      bool fits = pointer.kind == TypeKind::Pointer && pointer.element == global.type && pointer.space == global.space &&
                  pointer.access == global.access;
      if (!fits) {
        problems_.add(
            atGlobal(index), kStructure,
            fmt::format("the variable's value is of type {}, which is not a pointer to it", typeText(module_[global.value].type)));
      }
    }
    bool constant = !global.initializer.valid() || (isValue(global.initializer) && module_[global.initializer].kind == ValueKind::Constant);
    if (!constant) {
      problems_.add(atGlobal(index), kStructure, "the initializer is not a constant");
    } else if (global.initializer.valid()) {
      checkConstant(global.initializer, atGlobal(index));
    }
  }

  void checkFunction(FunctionId id) {
    const Function& function = module_[id];
    if (!isType(function.return_type)) problems_.add(at(id), kStructure, "the return type is out of range");
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      ValueId value = function.parameters[i].value;
      bool owned = isValue(value) && module_[value].kind == ValueKind::Parameter && module_[value].index == id.index() &&
                   isType(module_[value].type) && !parameter_seen_[value.index()];
      if (!owned) {
        problems_.add(atParameter(id, i), kStructure, "the parameter's value is out of range or belongs to another parameter");
      } else {
        parameter_seen_[value.index()] = true;
      }
    }
    checkBlock(function.body, at(id), 1);
  }

  void checkBlock(BlockId id, Subject owner, uint32_t nesting) {
    if (id.index() >= module_.blocks.size()) {
      problems_.add(owner, kStructure, "a block is out of range");
    } else if (block_seen_[id.index()]) {
      problems_.add(owner, kStructure, "a block has two parents");
    } else if (nesting > kMaxBlockNesting) {
      problems_.add(owner, kStructure, fmt::format("blocks nest deeper than {}", kMaxBlockNesting));
    } else {
      block_seen_[id.index()] = true;
      for (InstructionId instruction : module_[id].instructions) checkInstruction(instruction, owner, nesting);
    }
  }

  void checkInstruction(InstructionId id, Subject owner, uint32_t nesting) {
    if (id.index() >= module_.instructions.size()) {
      problems_.add(owner, kStructure, "an instruction of the block is out of range");
      return;
    }
    if (instruction_seen_[id.index()]) {
      problems_.add(at(id), kStructure, "the instruction stands in two places");
      return;
    }
    instruction_seen_[id.index()] = true;
    const Instruction& instruction = module_[id];
    checkResult(id, instruction);
    int wanted = info(instruction.op).operands;
    if (wanted >= 0 && instruction.operands.size() != static_cast<size_t>(wanted)) {
      problems_.add(at(id), kStructure,
                    fmt::format("{} takes {} operands, not {}", info(instruction.op).text, wanted, instruction.operands.size()));
    }
    for (size_t i = 0; i < instruction.operands.size(); ++i) checkOperand(atOperand(id, i), instruction.operands[i]);
    checkBlockCount(id, instruction);
    if (instruction.op == Op::Call && instruction.immediate >= module_.functions.size()) {
      problems_.add(at(id), kStructure, "the called function is out of range");
    }
    for (BlockId block : instruction.blocks) checkBlock(block, at(id), nesting + 1);
  }

  void checkResult(InstructionId id, const Instruction& instruction) {
    if (!isType(instruction.type)) {
      problems_.add(at(id), kStructure, "the result type is out of range");
      return;
    }
    bool has_type = instruction.type != module_.types.voidType();
    if (has_type != instruction.result.valid()) {
      std::string_view what = has_type ? "a result type but no result" : "a result without a type";
      problems_.add(at(id), kStructure, fmt::format("{} has {}", info(instruction.op).text, what));
      return;
    }
    if (!has_type) return;
    bool owned = isValue(instruction.result) && module_[instruction.result].kind == ValueKind::Instruction &&
                 module_[instruction.result].index == id.index() && module_[instruction.result].type == instruction.type;
    if (!owned) problems_.add(at(id), kStructure, "the result's value is out of range, of another type or of another instruction");
  }

  void checkOperand(Subject subject, ValueId id) {
    if (!isValue(id) || !isType(module_[id].type)) {
      problems_.add(subject, kStructure, "the operand is out of range");
      return;
    }
    const Value& value = module_[id];
    bool owned = true;
    switch (value.kind) {
      case ValueKind::Constant:
        checkConstant(id, subject);
        break;
      case ValueKind::Variable:
        owned = value.index < module_.globals.size() && module_.globals[value.index].value == id;
        break;
      case ValueKind::Parameter:
        owned = value.index < module_.functions.size();
        break;
      case ValueKind::Instruction:
        owned = value.index < module_.instructions.size() && module_.instructions[value.index].result == id;
        break;
    }
    if (!owned) problems_.add(subject, kStructure, "the operand belongs to a variable, parameter or instruction that is gone");
  }

  /// Constants are checked where they are used; the arena may hold others.
  void checkConstant(ValueId id, Subject user) {
    if (!isValue(id) || !isType(module_[id].type)) {
      problems_.add(user, kStructure, "a constant is out of range");
      return;
    }
    if (constant_seen_[id.index()]) return;
    constant_seen_[id.index()] = true;
    const Value& value = module_[id];
    if (!isConstructible(module_.types, value.type)) {
      problems_.add(user, "kernel.constant", fmt::format("there are no constants of type {}", typeText(value.type)));
      return;
    }
    if (value.elements.empty()) return;
    if (value.elements.size() != types_.elementCount(value.type)) {
      problems_.add(user, "kernel.constant",
                    fmt::format("a constant of type {} has {} elements", typeText(value.type), value.elements.size()));
      return;
    }
    for (size_t i = 0; i < value.elements.size(); ++i) {
      ValueId element = value.elements[i];
      // Made before the whole, so constants cannot form a circle.
      if (element.index() >= id.index() || module_[element].kind != ValueKind::Constant) {
        problems_.add(user, kStructure, "an element of a constant is not a constant that was made before it");
      } else if (module_[element].type != types_.elementOf(value.type, static_cast<uint32_t>(i))) {
        problems_.add(
            user, "kernel.constant",
            fmt::format("element {} of a constant of type {} is of type {}", i, typeText(value.type), typeText(module_[element].type)));
      } else {
        checkConstant(element, user);
      }
    }
  }

  void checkBlockCount(InstructionId id, const Instruction& instruction) {
    size_t wanted = 0;
    if (instruction.op == Op::If || instruction.op == Op::Loop) wanted = 2;
    if (instruction.op == Op::Switch) wanted = instruction.cases.size();
    if (instruction.blocks.size() != wanted) {
      problems_.add(at(id), kStructure,
                    fmt::format("{} owns {} blocks, not {}", info(instruction.op).text, wanted, instruction.blocks.size()));
    }
    if (instruction.op != Op::Switch && !instruction.cases.empty()) problems_.add(at(id), kStructure, "only a switch has cases");
  }

  [[nodiscard]] bool isType(TypeId id) const { return id.index() < module_.types.size(); }
  [[nodiscard]] bool isValue(ValueId id) const { return id.index() < module_.values.size(); }
  [[nodiscard]] std::string typeText(TypeId id) const { return module_.types.toString(id); }

  const Module& module_;
  Problems& problems_;
  TypeTable types_;  // a copy, because elementOf may add to it
  std::vector<bool> block_seen_, instruction_seen_, parameter_seen_, constant_seen_;
};

/// Walks blocks in order and keeps the set of values that are defined on every path to the place.
class DominanceChecker {
 public:
  DominanceChecker(const Module& module, Problems& problems) : module_(module), problems_(problems), visible_(module.values.size()) {}

  void run() {
    for (const Function& function : module_.functions) {
      for (const Parameter& parameter : function.parameters) visible_[parameter.value.index()] = true;
      std::vector<ValueId> defined = enter(function.body);
      hide(defined, 0);
      for (const Parameter& parameter : function.parameters) visible_[parameter.value.index()] = false;
    }
  }

 private:
  /// Checks a block and leaves what it defines visible; returns that.
  std::vector<ValueId> enter(BlockId block, bool is_loop_body = false) {
    std::vector<ValueId> defined;
    size_t before_continue = SIZE_MAX;
    for (InstructionId id : module_[block].instructions) {
      const Instruction& instruction = module_[id];
      for (size_t i = 0; i < instruction.operands.size(); ++i) checkUse(id, i, instruction.operands[i]);
      if (instruction.op == Op::Loop) {
        enterLoop(instruction);
      } else {
        for (BlockId inner : instruction.blocks) {
          std::vector<ValueId> hidden = enter(inner);
          hide(hidden, 0);
        }
      }
      // The continuing block is reached from here, without what follows.
      if (is_loop_body && before_continue == SIZE_MAX && holdsContinue(id)) before_continue = defined.size();
      if (instruction.result.valid()) {
        defined.push_back(instruction.result);
        visible_[instruction.result.index()] = true;
      }
    }
    if (before_continue != SIZE_MAX) {
      hide(defined, before_continue);
      defined.resize(before_continue);
    }
    return defined;
  }

  void enterLoop(const Instruction& loop) {
    std::vector<ValueId> body = enter(loop.blocks[0], true);
    std::vector<ValueId> continuing = enter(loop.blocks[1]);
    hide(continuing, 0);
    hide(body, 0);
  }

  /// True when the instruction is, or holds, a `continue` of the loop around it.
  bool holdsContinue(InstructionId id) const {
    const Instruction& instruction = module_[id];
    if (instruction.op == Op::Continue) return true;
    if (instruction.op == Op::Loop) return false;
    return std::any_of(instruction.blocks.begin(), instruction.blocks.end(), [&](BlockId block) {
      const auto& inner = module_[block].instructions;
      return std::any_of(inner.begin(), inner.end(), [&](InstructionId each) { return holdsContinue(each); });
    });
  }

  void hide(const std::vector<ValueId>& values, size_t from) {
    for (size_t i = from; i < values.size(); ++i) visible_[values[i].index()] = false;
  }

  void checkUse(InstructionId id, size_t operand, ValueId value) {
    ValueKind kind = module_[value].kind;
    if (kind == ValueKind::Constant || kind == ValueKind::Variable || visible_[value.index()]) return;
    problems_.add(atOperand(id, operand), "kernel.dominance", "the operand is not defined on every path that leads here",
                  "carry the value out of its block in a function-space var");
  }

  const Module& module_;
  Problems& problems_;
  std::vector<bool> visible_;
};

}  // namespace

void checkIds(const Module& module, Problems& problems) { IdChecker(module, problems).run(); }
void checkDominance(const Module& module, Problems& problems) { DominanceChecker(module, problems).run(); }

}  // namespace lockstep::kernel
