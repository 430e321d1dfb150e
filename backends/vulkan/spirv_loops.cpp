// SPDX-License-Identifier: Apache-2.0
// Which loops surely end. Drivers assume that every loop does and may delete checks behind one that does not, and a kernel that never
// ends takes the device down, so all other loops share a countdown: nested ones together end as soon as one would. It costs little but
// keeps drivers from unrolling.
#include <algorithm>
#include <set>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::OpGroup;
using kernel::ValueId;
using kernel::ValueKind;

namespace {

class LoopAnalysis {
 public:
  LoopAnalysis(const Module& module, const Instruction& loop) : module_(module), loop_(loop) {
    for (BlockId block : loop.blocks) collect(block);
  }

  /// The loop is left when a comparison of a variable with an invariant says so, in every round, and every round moves the variable by a
  /// constant (a cycle modulo 2^32 meets every bound that leaves room for one step) or halves it.
  [[nodiscard]] bool ends() const {
    const Instruction* test = leavingTest();
    if (test == nullptr) return false;
    bool negated = test->op == Op::Not;
    if (negated) test = definition(test->operands[0]);
    if (test == nullptr || test->operands.size() != 2) return false;
    for (size_t side : {0, 1}) {
      std::optional<ValueId> variable = loadedVariable(test->operands[side]);
      if (!variable) variable = steppedVariable(test->operands[side]);
      if (variable && endsBy(*variable, *test, side, negated)) return true;
    }
    return false;
  }

 private:
  void collect(BlockId block) {
    for (InstructionId id : module_[block].instructions) {
      inside_.insert(id.value);
      for (BlockId inner : module_[id].blocks) collect(inner);
    }
  }

  [[nodiscard]] const Instruction* definition(ValueId id) const {
    return module_[id].kind == ValueKind::Instruction ? &module_.instructions[module_[id].index] : nullptr;
  }

  /// What decides the exit: the condition of `if c { break }` as the first control flow of the body, or of the final break_if.
  [[nodiscard]] const Instruction* leavingTest() const {
    for (InstructionId id : module_[loop_.blocks[0]].instructions) {
      const Instruction& in = module_[id];
      if (kernel::info(in.op).group != OpGroup::Control) continue;
      const std::vector<InstructionId>* then = in.op == Op::If ? &module_[in.blocks[0]].instructions : nullptr;
      // What has blocks of its own might `continue` instead of reaching the break.
      bool leaves = then != nullptr && !then->empty() && module_[then->back()].op == Op::Break &&
                    std::ranges::all_of(*then, [&](InstructionId each) { return module_[each].blocks.empty(); });
      if (!leaves) break;
      return definition(in.operands[0]);
    }
    if (loop_.blocks.size() < 2 || module_[loop_.blocks[1]].instructions.empty()) return nullptr;
    const Instruction& last = module_[module_[loop_.blocks[1]].instructions.back()];
    return last.op == Op::BreakIf ? definition(last.operands[0]) : nullptr;
  }

  [[nodiscard]] std::optional<ValueId> loadedVariable(ValueId value) const {
    const Instruction* load = definition(value);
    if (load == nullptr || load->op != Op::Load) return std::nullopt;
    const Instruction* variable = definition(load->operands[0]);
    if (variable == nullptr || variable->op != Op::Var) return std::nullopt;
    return load->operands[0];
  }

  /// The variable that the continuing block sets to this value.
  [[nodiscard]] std::optional<ValueId> steppedVariable(ValueId value) const {
    if (loop_.blocks.size() < 2) return std::nullopt;
    for (InstructionId id : module_[loop_.blocks[1]].instructions) {
      if (module_[id].op == Op::Store && module_[id].operands[1] == value) return module_[id].operands[0];
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<uint32_t> constant(ValueId value) const {
    const kernel::Value& made = module_[value];
    if (made.kind != ValueKind::Constant || module_.types[made.type].kind != kernel::TypeKind::Scalar) return std::nullopt;
    return made.bits;
  }

  /// Uses of the variable in the loop other than loads.
  [[nodiscard]] size_t writes(ValueId variable) const {
    size_t count = 0;
    for (uint32_t id : inside_) {
      const Instruction& in = module_.instructions[id];
      if (in.op != Op::Load) count += static_cast<size_t>(std::count(in.operands.begin(), in.operands.end(), variable));
    }
    return count;
  }

  [[nodiscard]] bool invariant(ValueId value) const {
    if (module_[value].kind == ValueKind::Constant || module_[value].kind == ValueKind::Parameter) return true;
    if (module_[value].kind == ValueKind::Variable) return false;
    if (!inside_.contains(module_[value].index)) return true;
    const Instruction& in = module_.instructions[module_[value].index];
    OpGroup group = kernel::info(in.op).group;
    if (in.op == Op::ArrayLength) return true;
    if (in.op == Op::Load) {
      if (std::optional<ValueId> variable = loadedVariable(value)) return writes(*variable) == 0;
      return readOnly(in.operands[0]);
    }
    bool pure = group == OpGroup::Arithmetic || group == OpGroup::Math || group == OpGroup::Composite;
    return pure && std::all_of(in.operands.begin(), in.operands.end(), [&](ValueId operand) { return invariant(operand); });
  }

  /// A place in a buffer that the kernel cannot write.
  [[nodiscard]] bool readOnly(ValueId pointer) const {
    if (const Instruction* access = definition(pointer)) {
      bool fixed = access->op == Op::Access &&
                   std::all_of(access->operands.begin() + 1, access->operands.end(), [&](ValueId index) { return invariant(index); });
      return fixed && readOnly(access->operands[0]);
    }
    if (module_[pointer].kind != ValueKind::Variable) return false;
    const kernel::GlobalVariable& global = module_.globals[module_[pointer].index];
    return global.access == kernel::Access::Read;
  }

  [[nodiscard]] bool endsBy(ValueId variable, const Instruction& test, size_t side, bool negated) const {
    ValueId bound = test.operands[1 - side];
    if (loop_.blocks.size() < 2 || writes(variable) != 1 || !invariant(bound)) return false;
    for (InstructionId id : module_[loop_.blocks[1]].instructions) {
      const Instruction& store = module_[id];
      if (store.op != Op::Store || store.operands[0] != variable) continue;
      const Instruction* pointer = definition(variable);
      if (pointer == nullptr || pointer->op != Op::Var) return false;
      const Instruction* step = definition(store.operands[1]);
      if (step == nullptr || step->operands.size() != 2 || loadedVariable(step->operands[0]) != variable) return false;
      std::optional<uint32_t> by = constant(step->operands[1]);
      bool ordered = test.op == Op::Lt || test.op == Op::Le || test.op == Op::Gt || test.op == Op::Ge;
      if (step->op == Op::Add || step->op == Op::Sub) return ordered && by && *by != 0;
      bool is_unsigned = module_.typeOf(store.operands[1]).scalar == kernel::Scalar::U32;
      bool halves = (step->op == Op::Shr && by && *by % 32 != 0) || (step->op == Op::Div && by && *by >= 2);
      return halves && is_unsigned && leavesAtZero(test, side, negated, bound);
    }
    return false;
  }

  /// Whether the exit is taken once the variable is 0 (u32).
  [[nodiscard]] bool leavesAtZero(const Instruction& test, size_t side, bool negated, ValueId bound) const {
    std::optional<uint32_t> limit = constant(bound);
    if (!limit) return false;
    uint32_t left = side == 0 ? 0 : *limit, right = side == 0 ? *limit : 0;
    if (test.op == Op::Eq) return (left == right) != negated;
    if (test.op == Op::Ne) return (left != right) != negated;
    if (test.op == Op::Lt) return (left < right) != negated;
    if (test.op == Op::Le) return (left <= right) != negated;
    if (test.op == Op::Gt) return (left > right) != negated;
    if (test.op == Op::Ge) return (left >= right) != negated;
    return false;
  }

  const Module& module_;
  const Instruction& loop_;
  std::set<uint32_t> inside_;  ///< instructions of the loop
};

}  // namespace

std::optional<Place> Emitter::startCountdown(const Instruction& loop) {
  if (LoopAnalysis(module_, loop).ends()) return std::nullopt;
  if (!rounds_) {
    spv::Id variable =
        builder_.createVariable(spv::NoPrecision, spv::StorageClassFunction, scalarType(kernel::Scalar::U32), "rounds", u32(UINT32_MAX));
    rounds_ = Place{.base = variable, .storage = spv::StorageClassFunction, .chain = {}, .pointee = types_.u32()};
  }
  return rounds_;
}

void Emitter::countDown(const Place& rounds, spv::Block& merge) {
  spv::Id type = scalarType(kernel::Scalar::U32), left = builder_.createLoad(rounds.base, spv::NoPrecision);
  spv::Id spent = builder_.createBinOp(spv::OpIEqual, builder_.makeBoolType(), left, u32(0));
  spv::Block &leave = builder_.makeNewBlock(), &stay = builder_.makeNewBlock();
  selectionMerge(stay);
  builder_.createConditionalBranch(spent, &leave, &stay);
  builder_.setBuildPoint(&leave);
  builder_.createBranch(&merge);
  builder_.setBuildPoint(&stay);
  builder_.createStore(builder_.createBinOp(spv::OpISub, type, left, u32(1)), rounds.base);
}

}  // namespace lockstep::vulkan
