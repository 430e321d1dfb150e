// SPDX-License-Identifier: Apache-2.0
// Structured control flow and inlining. A called function whose only return is its last instruction is emitted in place; any other one
// becomes the single case of a switch, which a return leaves. A return inside a loop or switch of the callee cannot leave two
// constructs at once in SPIR-V, so it sets a flag that is looked at behind each of them.
#include <algorithm>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Op;
using kernel::OpGroup;

namespace {

size_t countReturns(const kernel::Module& module, BlockId block) {
  size_t count = 0;
  for (InstructionId id : module[block].instructions) {
    const Instruction& in = module[id];
    if (in.op == Op::Return) ++count;
    for (BlockId inner : in.blocks) count += countReturns(module, inner);
  }
  return count;
}

/// Whether the function can be emitted in place: no return, or one at the very end.
bool returnsAtTheEnd(const kernel::Module& module, const kernel::Function& function) {
  const std::vector<InstructionId>& body = module[function.body].instructions;
  size_t at_end = !body.empty() && module[body.back()].op == Op::Return ? 1 : 0;
  return countReturns(module, function.body) == at_end;
}

}  // namespace

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
  builder_.setBuildPoint(&header);
  builder_.createLoopMerge(&merge, &next, spv::LoopControlMaskNone, {});
  builder_.createBranch(&test);
  builder_.setBuildPoint(&test);
  spv::Id index = builder_.createLoad(variable, spv::NoPrecision);
  spv::Id more = builder_.createBinOp(spv::OpULessThan, builder_.makeBoolType(), index, u32(count));
  builder_.createConditionalBranch(more, &inside, &merge);
  builder_.setBuildPoint(&inside);
  body(index);
  builder_.createBranch(&next);
  builder_.setBuildPoint(&next);
  builder_.createStore(builder_.createBinOp(spv::OpIAdd, type, index, u32(step)), variable);
  builder_.createBranch(&header);
  builder_.setBuildPoint(&merge);
}

void Emitter::emitBlock(BlockId id) {
  for (InstructionId instruction : module_[id].instructions) {
    emitInstruction(module_[instruction]);
    if (builder_.getBuildPoint()->isTerminated()) return;
  }
}

void Emitter::emitInstruction(const Instruction& in) {
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
    case OpGroup::Subgroup:
      return define(in, emitSubgroup(in));
    case OpGroup::Call:
      return emitCall(in);
    case OpGroup::Control:
      break;
  }
  if (in.op == Op::If) return emitIf(in);
  if (in.op == Op::Loop) return emitLoop(in);
  if (in.op == Op::Switch) return emitSwitch(in);
  if (in.op == Op::Return) return emitReturn(in);
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
  builder_.createLoopMerge(&merge, &next, spv::LoopControlMaskNone, {});
  builder_.createBranch(&body);
  breakables_.push_back({.merge = &merge, .next = &next, .counted = rounds.has_value()});
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
  leaveAfterReturn();
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
  leaveAfterReturn();
}

void Emitter::leaveAfterReturn() {
  bool returned = breakables_.back().returned;
  breakables_.pop_back();
  if (!returned) return;
  const Frame& frame = frames_.back();
  // Only the wrapper is left when this was the callee's outermost loop or switch; otherwise the next one has to look as well.
  if (breakables_.size() - 1 > frame.wrapper) breakables_.back().returned = true;
  spv::Block &leave = builder_.makeNewBlock(), &stay = builder_.makeNewBlock();
  spv::Id flag = builder_.createLoad(frame.returned->base, spv::NoPrecision);
  selectionMerge(stay);
  builder_.createConditionalBranch(flag, &leave, &stay);
  builder_.setBuildPoint(&leave);
  builder_.createBranch(breakables_.back().merge);
  builder_.setBuildPoint(&stay);
}

void Emitter::emitReturn(const Instruction& in) {
  Frame& frame = frames_.back();
  if (frame.is_entry) {
    builder_.makeReturn(true);
    return;
  }
  spv::Id result = in.operands.empty() ? spv::NoResult : value(in.operands[0]);
  if (!frame.wrapped) {
    frame.value = result;
    return;
  }
  if (result != spv::NoResult) builder_.createStore(result, frame.result->base);
  if (breakables_.size() - 1 > frame.wrapper) {
    breakables_.back().returned = true;
    builder_.createStore(builder_.makeBoolConstant(true), frame.returned->base);
  }
  builder_.createBranch(breakables_.back().merge);
}

void Emitter::emitCall(const Instruction& in) {
  const kernel::Function& callee = module_.functions[in.immediate];
  for (size_t i = 0; i < callee.parameters.size(); ++i) {
    kernel::ValueId parameter = callee.parameters[i].value;
    if (typeOf(parameter).kind == kernel::TypeKind::Pointer) {
      places_[parameter.index()] = place(in.operands[i]);
    } else {
      ids_[parameter.index()] = value(in.operands[i]);
    }
  }
  if (returnsAtTheEnd(module_, callee)) {
    frames_.push_back({});
    emitBlock(callee.body);
    spv::Id result = frames_.back().value;
    frames_.pop_back();
    return define(in, result);
  }
  Frame frame{.wrapped = true, .wrapper = breakables_.size(), .result = {}, .returned = {}};
  bool has_result = types_[callee.return_type].kind != kernel::TypeKind::Void;
  if (has_result) frame.result = localVariable(callee.return_type, plainName(callee.name + "_result"));
  frame.returned = localVariable(types_.boolean(), plainName(callee.name + "_returned"));
  builder_.createStore(builder_.makeBoolConstant(false), frame.returned->base);
  spv::Block &body = builder_.makeNewBlock(), &merge = builder_.makeNewBlock();
  selectionMerge(merge);
  emitSwitchTerminator(u32(0), body, {});
  breakables_.push_back({.merge = &merge});
  frames_.push_back(frame);
  builder_.setBuildPoint(&body);
  emitBlock(callee.body);
  branchUnlessTerminated(merge);
  frames_.pop_back();
  breakables_.pop_back();
  builder_.setBuildPoint(&merge);
  if (has_result) define(in, builder_.createLoad(frame.result->base, spv::NoPrecision));
}

}  // namespace lockstep::vulkan
