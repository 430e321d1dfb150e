// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/inline_calls.h"

#include <algorithm>

#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Function;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;

/// Functions that call each other twice in a row double with each of them.
constexpr size_t kMaxInstructions = 1 << 16;

class Inliner {
 public:
  explicit Inliner(Module module) : module_(std::move(module)) {}

  Module run() {
    for (const Function& function : module_.functions) {
      block(function.body, 1);
      callees_.push_back(describe(function));
    }
    dropUncalled();
    return std::move(module_);
  }

 private:
  struct Callee {
    bool inlinable = false;
    uint32_t nesting = 0;  // blocks inside blocks
    size_t size = 0;       // instructions
  };

  [[nodiscard]] uint32_t nestingOf(BlockId id) const {
    uint32_t deepest = 0;
    for (InstructionId instruction : module_[id].instructions) {
      for (BlockId inner : module_[instruction].blocks) deepest = std::max(deepest, nestingOf(inner));
    }
    return deepest + 1;
  }

  [[nodiscard]] Callee describe(const Function& function) const {
    size_t returns = 0, size = 0;
    forEachInstruction(module_, function.body, [&](InstructionId, const Instruction& each) {
      returns += each.op == Op::Return ? 1 : 0;
      ++size;
    });
    const auto& body = module_[function.body].instructions;
    bool at_the_end = returns == 1 && module_[body.back()].op == Op::Return;
    return {.inlinable = returns == 0 || at_the_end, .nesting = nestingOf(function.body), .size = size};
  }

  void block(BlockId id, uint32_t nesting) {
    std::vector<InstructionId> old = std::move(module_.blocks[id.index()].instructions), kept;
    for (InstructionId each : old) {
      map_.rewrite(module_.instructions[each.index()].operands);
      const Instruction& instruction = module_[each];
      if (instruction.op == Op::Call && fits(callees_[instruction.immediate], nesting)) {
        splice(each, kept);
        continue;
      }
      const std::vector<BlockId> inner = instruction.blocks;
      for (BlockId one : inner) block(one, nesting + 1);
      kept.push_back(each);
    }
    module_.blocks[id.index()].instructions = std::move(kept);
  }

  [[nodiscard]] bool fits(const Callee& callee, uint32_t nesting) const {
    return callee.inlinable && nesting - 1 + callee.nesting <= kernel::kMaxBlockNesting &&
           module_.instructions.size() + callee.size <= kMaxInstructions;
  }

  void splice(InstructionId call_id, std::vector<InstructionId>& into) {
    const Instruction call = module_[call_id];
    const Function& callee = module_.functions[call.immediate];
    for (size_t i = 0; i < call.operands.size(); ++i) map_.set(callee.parameters[i].value, call.operands[i]);
    for (InstructionId id : module_[callee.body].instructions) {
      if (module_[id].op != Op::Return) {
        into.push_back(copyInstruction(module_, id, map_));
      } else if (call.result.valid()) {
        map_.set(call.result, map_(module_[id].operands[0]));
      }
    }
  }

  void dropUncalled() {
    std::vector<bool> called(module_.functions.size(), false);
    // Callers stand after their callees, so one walk from the end finds what is called from what stays.
    for (size_t i = module_.functions.size(); i-- > 0;) {
      if (!module_.functions[i].workgroup_size && !called[i]) continue;
      called[i] = true;
      forEachInstruction(module_, module_.functions[i].body, [&](InstructionId, const Instruction& each) {
        if (each.op == Op::Call) called[each.immediate] = true;
      });
    }
    std::vector<uint32_t> number(module_.functions.size());
    std::vector<Function> kept;
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      number[i] = static_cast<uint32_t>(kept.size());
      if (!called[i]) continue;
      for (const kernel::Parameter& parameter : module_.functions[i].parameters) module_.values[parameter.value.index()].index = number[i];
      kept.push_back(std::move(module_.functions[i]));
    }
    for (Instruction& each : module_.instructions) {
      if (each.op == Op::Call) each.immediate = number[each.immediate];
    }
    module_.functions = std::move(kept);
  }

  Module module_;
  std::vector<Callee> callees_;
  ValueMap map_;
};

}  // namespace

Module inlineCalls(Module module) { return Inliner(std::move(module)).run(); }

}  // namespace lockstep::passes
