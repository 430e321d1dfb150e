// SPDX-License-Identifier: Apache-2.0
// Jumps, fall-through and calls.
#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/validate_internal.h"

namespace lockstep::kernel {
namespace {

constexpr std::string_view kControl = "kernel.control";

/// How control may leave an instruction or block ("behaviors" of the WGSL specification).
struct Exits {
  bool next = false, breaks = false, continues = false;
  void merge(const Exits& other) {
    next = next || other.next;
    breaks = breaks || other.breaks;
    continues = continues || other.continues;
  }
};

/// What may stand at a place.
struct Surroundings {
  bool breakable = false;      // in a loop's body or a switch
  bool continuable = false;    // in a loop's body
  bool in_continuing = false;  // anywhere below a continuing block
  bool continuing = false;     // directly in one
};

class ControlChecker {
 public:
  ControlChecker(const Module& module, Problems& problems) : module_(module), problems_(problems) {}

  void run() {
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      function_ = FunctionId(i);
      const Function& function = module_.functions[i];
      Exits exits = checkBlock(function.body, {});
      if (exits.next && function.return_type != module_.types.voidType()) {
        problems_.add(at(function_), kControl, "a path through the function ends without returning a value");
      }
    }
  }

 private:
  Exits checkBlock(BlockId block, const Surroundings& around) {
    const std::vector<InstructionId>& instructions = module_[block].instructions;
    Exits exits{.next = true};
    for (size_t i = 0; i < instructions.size(); ++i) {
      Op op = module_[instructions[i]].op;
      bool is_last = i + 1 == instructions.size();
      bool is_jump = op == Op::Break || op == Op::Continue || op == Op::Return || op == Op::BreakIf;
      if (is_jump && !is_last)
        problems_.add(at(instructions[i + 1]), kControl, fmt::format("nothing may follow {} in a block", info(op).text));
      Exits own = checkInstruction(instructions[i], around);
      // What cannot be reached adds no exits.
      if (!exits.next) continue;
      exits.next = false;
      exits.merge(own);
    }
    return exits;
  }

  Exits checkInstruction(InstructionId id, const Surroundings& around) {
    const Instruction& instruction = module_[id];
    Surroundings inner = around;
    inner.continuing = false;
    Exits exits{.next = true};
    if (instruction.op == Op::Break) {
      if (!around.breakable) problems_.add(at(id), kControl, "break stands outside a loop's body and a switch", breakRemedy(around));
      exits = {.breaks = true};
    } else if (instruction.op == Op::Continue) {
      if (!around.continuable) problems_.add(at(id), kControl, "continue stands outside a loop's body");
      exits = {.continues = true};
    } else if (instruction.op == Op::BreakIf) {
      if (!around.continuing) problems_.add(at(id), kControl, "break_if stands outside a continuing block");
      exits = {.next = true, .breaks = true};
    } else if (instruction.op == Op::Return) {
      if (around.in_continuing) problems_.add(at(id), kControl, "return stands in a continuing block");
      exits = {};
    } else if (instruction.op == Op::If) {
      exits = checkBlock(instruction.blocks[0], inner);
      exits.merge(checkBlock(instruction.blocks[1], inner));
    } else if (instruction.op == Op::Loop) {
      exits = checkLoop(instruction, inner);
    } else if (instruction.op == Op::Switch) {
      exits = checkSwitch(id, instruction, inner);
    } else if (instruction.op == Op::Call) {
      checkCall(id, instruction);
    }
    return exits;
  }

  static std::string breakRemedy(const Surroundings& around) { return around.continuing || around.in_continuing ? "use break_if" : ""; }

  Exits checkLoop(const Instruction& loop, const Surroundings& around) {
    Surroundings body = around;
    body.breakable = body.continuable = true;
    Surroundings continuing{.breakable = false, .continuable = false, .in_continuing = true, .continuing = true};
    Exits exits = checkBlock(loop.blocks[0], body);
    exits.merge(checkBlock(loop.blocks[1], continuing));
    return {.next = exits.breaks};
  }

  Exits checkSwitch(InstructionId id, const Instruction& instruction, const Surroundings& around) {
    Surroundings inner = around;
    inner.breakable = true;
    std::vector<uint32_t> seen;
    size_t defaults = 0;
    Exits exits;
    for (size_t i = 0; i < instruction.blocks.size(); ++i) {
      const SwitchCase& choice = instruction.cases[i];
      if (choice.selectors.empty() && !choice.is_default) problems_.add(at(instruction.blocks[i]), kControl, "a case has no selector");
      if (choice.is_default) ++defaults;
      for (uint32_t selector : choice.selectors) {
        if (std::find(seen.begin(), seen.end(), selector) != seen.end()) {
          problems_.add(at(instruction.blocks[i]), kControl,
                        fmt::format("selector {} stands in two cases", selectorText(instruction, selector)));
        }
        seen.push_back(selector);
      }
      exits.merge(checkBlock(instruction.blocks[i], inner));
    }
    if (defaults != 1) problems_.add(at(id), kControl, fmt::format("a switch has exactly one default, not {}", defaults));
    return {.next = exits.next || exits.breaks, .continues = exits.continues};
  }

  [[nodiscard]] std::string selectorText(const Instruction& instruction, uint32_t selector) const {
    bool is_signed = module_.typeOf(instruction.operands[0]).is(Scalar::I32);
    return is_signed ? fmt::format("{}", static_cast<int32_t>(selector)) : fmt::format("{}", selector);
  }

  void checkCall(InstructionId id, const Instruction& call) {
    if (call.immediate >= function_.index()) {
      std::string_view problem =
          call.immediate == function_.index() ? "a function calls itself" : "a function is called before it is declared";
      problems_.add(at(id), "kernel.recursion", std::string(problem), "callees stand before callers, so that no function reaches itself");
    } else if (module_.functions[call.immediate].workgroup_size) {
      problems_.add(at(id), kControl, "an entry point is called");
    }
  }

  const Module& module_;
  Problems& problems_;
  FunctionId function_;
};

}  // namespace

void checkControl(const Module& module, Problems& problems) { ControlChecker(module, problems).run(); }

}  // namespace lockstep::kernel
