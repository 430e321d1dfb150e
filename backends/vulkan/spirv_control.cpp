// SPDX-License-Identifier: Apache-2.0
// Structured control flow. Calls are inlined before (ir/kernel/inline_calls.h).
#include <algorithm>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Op;
using kernel::OpGroup;

void Emitter::selectionMerge(spv::Block& merge) {
  std::vector<spv::IdImmediate> operands{{true, merge.getId()}, {false, spv::SelectionControlMaskNone}};
  builder_.createNoResultOp(spv::OpSelectionMerge, operands);
}

void Emitter::branchUnlessTerminated(spv::Block& target) {
  if (!builder_.getBuildPoint()->isTerminated()) builder_.createBranch(&target);
}

void Emitter::emitSwitchTerminator(spv::Id selector, spv::Block& otherwise, const std::vector<std::pair<uint32_t, spv::Block*>>& targets) {
  spv::Block* from = builder_.getBuildPoint();
  auto terminator = std::make_unique<spv::Instruction>(spv::OpSwitch);
  terminator->addIdOperand(selector);
  terminator->addIdOperand(otherwise.getId());
  otherwise.addPredecessor(from);
  for (const auto& [literal, target] : targets) {
    terminator->addImmediateOperand(literal);
    terminator->addIdOperand(target->getId());
    target->addPredecessor(from);
  }
  from->addInstruction(std::move(terminator));
}

void Emitter::countedLoop(uint32_t count, uint32_t step, spv::Id first, const std::function<void(spv::Id)>& body) {
  spv::Id type = scalarType(kernel::Scalar::U32);
  spv::Id variable = builder_.createVariable(spv::NoPrecision, spv::StorageClassFunction, type);
  addName(variable, "i");
  builder_.createStore(first, variable);
  spv::Block &header = builder_.makeNewBlock(), &test = builder_.makeNewBlock(), &inside = builder_.makeNewBlock();
  spv::Block &next = builder_.makeNewBlock(), &merge = builder_.makeNewBlock();
  builder_.createBranch(&header);
  continueIn(header);
  builder_.createLoopMerge(&merge, &next, spv::LoopControlMaskNone, {});
  builder_.createBranch(&test);
  continueIn(test);
  spv::Id index = builder_.createLoad(variable, spv::NoPrecision);
  spv::Id more = builder_.createBinOp(spv::OpULessThan, builder_.makeBoolType(), index, u32(count));
  builder_.createConditionalBranch(more, &inside, &merge);
  continueIn(inside);
  body(index);
  builder_.createBranch(&next);
  continueIn(next);
  builder_.createStore(builder_.createBinOp(spv::OpIAdd, type, index, u32(step)), variable);
  builder_.createBranch(&header);
  continueIn(merge);
}

void Emitter::emitBlock(BlockId id) {
  for (InstructionId instruction : module_[id].instructions) {
    emitInstruction(module_[instruction]);
    if (builder_.getBuildPoint()->isTerminated()) return;
  }
}

void Emitter::emitInstruction(const Instruction& in) {
  markLine(in);
  switch (kernel::info(in.op).group) {
    case OpGroup::Arithmetic:
    case OpGroup::Math:
    case OpGroup::Composite:
      return define(in, (this->*row(in.op).emit)(in));
    case OpGroup::Memory:
      return emitMemory(in);
    case OpGroup::Atomic:
      return emitAtomic(in);
    case OpGroup::Barrier:
      return emitBarrier(in);
    case OpGroup::Debug:
      return emitPrint(in);
    case OpGroup::SubgroupMatrix:
      return emitMatrix(in);
    case OpGroup::Subgroup:
      return define(in, emitSubgroup(in));
    case OpGroup::Call:
      internalError("a call is left after all calls were inlined");
    case OpGroup::Control:
      break;
  }
  if (in.op == Op::If) return emitIf(in);
  if (in.op == Op::Loop) return emitLoop(in);
  if (in.op == Op::Switch) return emitSwitch(in);
  if (in.op == Op::Return) return builder_.makeReturn(true);
  if (in.op == Op::Break) return builder_.createBranch(breakables_.back().merge);
  if (in.op == Op::Continue) {
    auto loop = std::find_if(breakables_.rbegin(), breakables_.rend(), [](const Breakable& b) { return b.next != nullptr; });
    return builder_.createBranch(loop->next);
  }
  internalError("break_if outside of the end of a continuing block");
}

void Emitter::emitIf(const Instruction& in) {
  spv::Id condition = value(in.operands[0]);
  bool has_else = in.blocks.size() > 1 && !module_[in.blocks[1]].instructions.empty();
  spv::Block &then = builder_.makeNewBlock(), &merge = builder_.makeNewBlock();
  spv::Block& otherwise = has_else ? builder_.makeNewBlock() : merge;
  selectionMerge(merge);
  builder_.createConditionalBranch(condition, &then, &otherwise);
  builder_.setBuildPoint(&then);
  emitBlock(in.blocks[0]);
  branchUnlessTerminated(merge);
  if (has_else) {
    builder_.setBuildPoint(&otherwise);
    emitBlock(in.blocks[1]);
    branchUnlessTerminated(merge);
  }
  builder_.setBuildPoint(&merge);
}

void Emitter::emitLoop(const Instruction& in) {
  std::optional<Place> rounds = startCountdown(in);
  spv::Block &header = builder_.makeNewBlock(), &body = builder_.makeNewBlock();
  spv::Block &next = builder_.makeNewBlock(), &merge = builder_.makeNewBlock();
  builder_.createBranch(&header);
  builder_.setBuildPoint(&header);
  builder_.createLoopMerge(&merge, &next, hasProducts(in) ? spv::LoopControlDontUnrollMask : spv::LoopControlMaskNone, {});
  builder_.createBranch(&body);
  breakables_.push_back({.merge = &merge, .next = &next, .hides_steps = rounds.has_value() || hasProducts(in)});
  builder_.setBuildPoint(&body);
  if (rounds) countDown(*rounds, merge);
  emitBlock(in.blocks[0]);
  branchUnlessTerminated(next);
  builder_.setBuildPoint(&next);
  spv::Id leave = spv::NoResult;
  if (in.blocks.size() > 1) {
    for (InstructionId id : module_[in.blocks[1]].instructions) {
      if (module_[id].op == Op::BreakIf) {
        leave = value(module_[id].operands[0]);
        markLine(module_[id]);
      } else {
        emitInstruction(module_[id]);
      }
    }
  }
  if (leave == spv::NoResult) {
    builder_.createBranch(&header);
  } else {
    builder_.createConditionalBranch(leave, &merge, &header);
  }
  builder_.setBuildPoint(&merge);
  breakables_.pop_back();
}

void Emitter::emitSwitch(const Instruction& in) {
  spv::Id selector = value(in.operands[0]);
  spv::Block& merge = builder_.makeNewBlock();
  std::vector<spv::Block*> blocks;
  std::vector<std::pair<uint32_t, spv::Block*>> targets;
  spv::Block* otherwise = &merge;
  for (const kernel::SwitchCase& one : in.cases) {
    blocks.push_back(&builder_.makeNewBlock());
    if (one.is_default) otherwise = blocks.back();
    for (uint32_t literal : one.selectors) targets.emplace_back(literal, blocks.back());
  }
  selectionMerge(merge);
  emitSwitchTerminator(selector, *otherwise, targets);
  breakables_.push_back({.merge = &merge});
  for (size_t i = 0; i < blocks.size(); ++i) {
    builder_.setBuildPoint(blocks[i]);
    emitBlock(in.blocks[i]);
    branchUnlessTerminated(merge);
  }
  builder_.setBuildPoint(&merge);
  breakables_.pop_back();
}

}  // namespace lockstep::vulkan
