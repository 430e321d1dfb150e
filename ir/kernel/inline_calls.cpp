// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/inline_calls.h"

#include <algorithm>
#include <utility>

#include "ir/kernel/edit.h"
#include "ir/kernel/queries.h"

namespace lockstep::kernel {
namespace {

/// Functions that call each other twice in a row double with each of them. Half as many are too few for attention by units of 8 x 8 x 8 in
/// subgroups of 8, where each invocation has many elements.
constexpr size_t kMaxInstructions = 1 << 17;

/// Copies the bodies of callees into the functions that call them.
class Inliner {
 public:
  /// `all`: whatever the callee returns from and however large the module becomes.
  Inliner(Module module, bool all) : module_(std::move(module)), all_(all) {
    for (size_t i = 0; i < module_.instructions.size(); ++i) sources_.emplace_back(i);
  }

  Module runPass() {
    // Callees stand before their callers, so what is copied has no calls left that could be inlined.
    for (const Function& function : module_.functions) {
      rewrite(function.body, 1);
      callees_.push_back(describe(function));
    }
    dropUncalled();
    return std::move(module_);
  }

  InlinedModule runEntry() {
    for (const Function& function : module_.functions) callees_.push_back(describe(function));
    const auto entry = module_.entryPoint() - module_.functions.data();
    rewrite(module_.functions[static_cast<size_t>(entry)].body, 1);
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      if (i == static_cast<size_t>(entry)) continue;
      module_.functions[i].workgroup_size.reset();
      module_.functions[i].subgroup_size = 0;
    }
    dropUncalled();
    return {std::move(module_), std::move(sources_)};
  }

 private:
  struct Callee {
    bool returns_from_inside = false;
    uint32_t nesting = 0;  // blocks inside blocks
    size_t size = 0;       // instructions
  };
  /// A callee that returns from inside, while it is copied into its switch.
  struct Wrapper {
    ValueId result;    ///< variable; invalid for a function without a result
    ValueId returned;  ///< variable
    /// The loops and switches of the callee around what is copied, from the outermost: whether a return leaves it.
    std::vector<bool> left;
  };

  [[nodiscard]] uint32_t nestingOf(BlockId id) const {
    uint32_t deepest = 0;
    for (InstructionId instruction : module_[id].instructions) {
      for (BlockId inner : module_[instruction].blocks) deepest = std::max(deepest, nestingOf(inner));
    }
    return deepest + 1;
  }

  [[nodiscard]] Callee describe(const Function& function) const {
    Callee callee{.returns_from_inside = returnsFromInside(module_, function)};
    if (all_) return callee;
    callee.nesting = nestingOf(function.body);
    forEachInstruction(module_, function.body, [&](InstructionId, const Instruction&) { ++callee.size; });
    return callee;
  }

  [[nodiscard]] bool canInline(const Instruction& instruction, uint32_t nesting) const {
    if (instruction.op != Op::Call) return false;
    if (all_) return true;
    const Callee& callee = callees_[instruction.immediate];
    return !callee.returns_from_inside && nesting - 1 + callee.nesting <= kMaxBlockNesting &&
           module_.instructions.size() + callee.size <= kMaxInstructions;
  }

  /// The calls in a block of a function that stays.
  void rewrite(BlockId id, uint32_t nesting) {
    std::vector<InstructionId> old = std::move(module_.blocks[id.index()].instructions), kept;
    for (InstructionId each : old) {
      map_.rewrite(module_.instructions[each.index()].operands);
      if (canInline(module_[each], nesting)) {
        inlineCall(each, module_[each].operands, kept);
        continue;
      }
      const std::vector<BlockId> inner = module_[each].blocks;
      for (BlockId one : inner) rewrite(one, nesting + 1);
      kept.push_back(each);
    }
    module_.blocks[id.index()].instructions = std::move(kept);
  }

  void inlineCall(InstructionId call, const std::vector<ValueId>& arguments, std::vector<InstructionId>& into) {
    const Function& callee = module_.functions[module_[call].immediate];
    for (size_t i = 0; i < arguments.size(); ++i) map_.set(callee.parameters[i].value, arguments[i]);
    Wrapper* outer = std::exchange(wrapper_, nullptr);
    const ValueId result = callees_[module_[call].immediate].returns_from_inside ? wrapped(call, callee, into) : plain(callee, into);
    if (module_[call].result.valid()) map_.set(module_[call].result, result);
    wrapper_ = outer;
  }

  /// The body of a callee that returns at its end, if at all. Returns what it returns.
  ValueId plain(const Function& callee, std::vector<InstructionId>& into) {
    ValueId result;
    for (InstructionId id : std::vector(module_[callee.body].instructions)) {
      if (module_[id].op != Op::Return) {
        copy(id, into);
      } else if (!module_[id].operands.empty()) {
        result = map_(module_[id].operands[0]);
      }
    }
    return result;
  }

  /// var result; var returned = false; switch 0 { default { body } }; load result
  ValueId wrapped(InstructionId call, const Function& callee, std::vector<InstructionId>& into) {
    const bool has_result = module_.types[callee.return_type].kind != TypeKind::Void;
    const TypeId result_type = callee.return_type;
    const BlockId body = callee.body;
    Wrapper wrapper;
    if (has_result) wrapper.result = variable(call, result_type, callee.name + "_result", {}, into);
    wrapper.returned = variable(call, module_.types.boolean(), module_.functions[module_[call].immediate].name + "_returned",
                                constant(module_.types.boolean(), 0), into);
    wrapper_ = &wrapper;
    const BlockId inside = copyBlock(body);
    wrapper_ = nullptr;
    Instruction choice = like(call, Op::Switch, {constant(module_.types.u32(), 0)});
    choice.blocks = {inside};
    choice.cases = {{.selectors = {}, .is_default = true}};
    add(call, std::move(choice), into);
    return has_result ? load(call, wrapper.result, into) : ValueId{};
  }

  BlockId copyBlock(BlockId from) {
    std::vector<InstructionId> copies;
    for (InstructionId id : std::vector(module_[from].instructions)) copy(id, copies);
    const BlockId made(module_.blocks.size());
    module_.blocks.push_back({std::move(copies)});
    return made;
  }

  void copy(InstructionId id, std::vector<InstructionId>& into) {
    if (canInline(module_[id], 1)) {
      std::vector<ValueId> arguments = module_[id].operands;
      map_.rewrite(arguments);
      return inlineCall(id, arguments, into);
    }
    if (wrapper_ != nullptr && module_[id].op == Op::Return) return leave(id, into);
    const InstructionId made = copyAlone(module_, id, map_);
    sources_.push_back(sources_[id.index()]);
    into.push_back(made);
    const bool breakable = wrapper_ != nullptr && (module_[id].op == Op::Loop || module_[id].op == Op::Switch);
    if (breakable) wrapper_->left.push_back(false);
    std::vector<BlockId> blocks = module_[id].blocks;
    for (BlockId& block : blocks) block = copyBlock(block);
    module_.instructions[made.index()].blocks = std::move(blocks);
    if (breakable) leaveAfter(id, into);
  }

  /// A return from inside: leaves the innermost loop or switch, which is the wrapper's where none of the callee's own is around it.
  void leave(InstructionId id, std::vector<InstructionId>& into) {
    const std::vector<ValueId> operands = module_[id].operands;
    if (!operands.empty()) add(id, like(id, Op::Store, {wrapper_->result, map_(operands[0])}), into);
    if (!wrapper_->left.empty()) {
      wrapper_->left.back() = true;
      add(id, like(id, Op::Store, {wrapper_->returned, constant(module_.types.boolean(), 1)}), into);
    }
    add(id, like(id, Op::Break, {}), into);
  }

  /// After a loop or switch that a return leaves, the next one around it is left too.
  void leaveAfter(InstructionId id, std::vector<InstructionId>& into) {
    const bool left = wrapper_->left.back();
    wrapper_->left.pop_back();
    if (!left) return;
    if (!wrapper_->left.empty()) wrapper_->left.back() = true;
    const ValueId returned = load(id, wrapper_->returned, into);
    std::vector<InstructionId> inside;
    add(id, like(id, Op::Break, {}), inside);
    Instruction choice = like(id, Op::If, {returned});
    choice.blocks = {BlockId(module_.blocks.size()), BlockId(module_.blocks.size() + 1)};
    module_.blocks.push_back({std::move(inside)});
    module_.blocks.emplace_back();
    add(id, std::move(choice), into);
  }

  /// An instruction that stands where another one does in the text.
  [[nodiscard]] Instruction like(InstructionId place, Op op, std::vector<ValueId> operands) const {
    const Instruction& there = module_[place];
    return {.op = op,
            .type = module_.types.voidType(),
            .result = {},
            .operands = std::move(operands),
            .blocks = {},
            .cases = {},
            .origin = there.origin,
            .location = there.location};
  }
  InstructionId add(InstructionId place, Instruction instruction, std::vector<InstructionId>& into, std::string name = {}) {
    sources_.push_back(sources_[place.index()]);
    into.push_back(addInstruction(module_, std::move(instruction), std::move(name)));
    return into.back();
  }
  ValueId load(InstructionId place, ValueId pointer, std::vector<InstructionId>& into) {
    Instruction made = like(place, Op::Load, {pointer});
    made.type = module_.types[module_[pointer].type].element;
    return module_[add(place, std::move(made), into)].result;
  }
  ValueId variable(InstructionId place, TypeId type, std::string name, ValueId initial, std::vector<InstructionId>& into) {
    Instruction made = like(place, Op::Var, {});
    if (initial.valid()) made.operands.push_back(initial);
    made.type = module_.types.pointer(AddressSpace::Function, type);
    return module_[add(place, std::move(made), into, std::move(name))].result;
  }
  ValueId constant(TypeId type, uint32_t bits) {
    module_.values.push_back({.kind = ValueKind::Constant, .type = type, .bits = bits, .elements = {}, .name = {}});
    return ValueId(module_.values.size() - 1);
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
      for (const Parameter& parameter : module_.functions[i].parameters) module_.values[parameter.value.index()].index = number[i];
      kept.push_back(std::move(module_.functions[i]));
    }
    for (Instruction& each : module_.instructions) {
      if (each.op == Op::Call) each.immediate = number[each.immediate];
    }
    module_.functions = std::move(kept);
  }

  Module module_;
  const bool all_;
  std::vector<InstructionId> sources_;
  std::vector<Callee> callees_;
  Wrapper* wrapper_ = nullptr;
  ValueMap map_;
};

}  // namespace

Module inlineCalls(Module module) { return Inliner(std::move(module), false).runPass(); }

InlinedModule inlineAllCalls(const Module& module) { return Inliner(module, true).runEntry(); }

bool returnsFromInside(const Module& module, const Function& function) {
  size_t returns = 0;
  forEachInstruction(module, function.body, [&](InstructionId, const Instruction& each) { returns += each.op == Op::Return ? 1 : 0; });
  const std::vector<InstructionId>& body = module[function.body].instructions;
  const bool at_the_end = !body.empty() && module[body.back()].op == Op::Return;
  return returns > (at_the_end ? 1 : 0);
}

}  // namespace lockstep::kernel
