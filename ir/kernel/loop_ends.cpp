// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/loop_ends.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "ir/kernel/queries.h"

namespace lockstep::kernel {
namespace {

class LoopAnalysis {
 public:
  LoopAnalysis(const Module& module, const Instruction& loop) : module_(module), loop_(loop) {
    for (BlockId block : loop.blocks) collect(block);
  }

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

  [[nodiscard]] const Instruction* definition(ValueId id) const { return kernel::definition(module_, id); }

  /// What decides the exit: the condition of `if c { break }` as the first control flow of the body, or of the final break_if.
  [[nodiscard]] const Instruction* leavingTest() const {
    for (InstructionId id : module_[loop_.blocks[0]].instructions) {
      const Instruction& in = module_[id];
      if (info(in.op).group != OpGroup::Control) continue;
      if (in.op != Op::If || !leavesLoop(module_, in.blocks[0])) break;
      return definition(in.operands[0]);
    }
    if (loop_.blocks.size() < 2 || module_[loop_.blocks[1]].instructions.empty()) return nullptr;
    const Instruction& last = module_[module_[loop_.blocks[1]].instructions.back()];
    return last.op == Op::BreakIf ? definition(last.operands[0]) : nullptr;
  }

  /// The local variable that a value was loaded from in this round: one that was loaded before the loop stays what it was.
  [[nodiscard]] std::optional<ValueId> loadedVariable(ValueId value) const {
    const Instruction* load = definition(value);
    if (load == nullptr || load->op != Op::Load || !inside_.contains(module_[value].index)) return std::nullopt;
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

  [[nodiscard]] std::optional<uint32_t> constant(ValueId value) const { return constantBits(module_, value); }

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
    OpGroup group = info(in.op).group;
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
    const GlobalVariable& global = module_.globals[module_[pointer].index];
    return global.access == Access::Read;
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
      if (step->op == Op::Add || step->op == Op::Sub) {
        return by && *by != 0 && leavesRoom(test, side, negated, bound, step->op == Op::Add ? *by : 0 - *by);
      }
      bool is_unsigned = module_.typeOf(store.operands[1]).scalar == Scalar::U32;
      bool halves = (step->op == Op::Shr && by && *by % 32 != 0) || (step->op == Op::Div && by && *by >= 2);
      return halves && is_unsigned && leavesAtZero(test, side, negated, bound);
    }
    return false;
  }

  /// The numbers that leave are those on one side of the bound. A counter on the other side moves towards them and cannot pass over as many
  /// as a step is long, so it leaves before it wraps. One that leaves only after it has wrapped counts as one that may stay: drivers take
  /// it that counters do not wrap, and NVIDIA's made endless loops of some that do.
  [[nodiscard]] bool leavesRoom(const Instruction& test, size_t side, bool negated, ValueId bound, uint32_t step) const {
    // f32 stops moving where a step is less than its precision.
    if (!module_.typeOf(bound).is(Scalar::U32) && !module_.typeOf(bound).is(Scalar::I32)) return false;
    const int64_t signed_step = static_cast<int32_t>(step);
    Op op = test.op;
    if (op != Op::Lt && op != Op::Le && op != Op::Gt && op != Op::Ge) return false;
    if (side == 1) op = op == Op::Lt ? Op::Gt : op == Op::Gt ? Op::Lt : op == Op::Le ? Op::Ge : Op::Le;
    if (negated) op = op == Op::Lt ? Op::Ge : op == Op::Ge ? Op::Lt : op == Op::Le ? Op::Gt : Op::Le;
    const bool goes_up = signed_step > 0, leaves_above = op == Op::Ge || op == Op::Gt;
    if (goes_up != leaves_above) return false;
    const bool is_signed = module_.typeOf(bound).scalar == Scalar::I32;
    const int64_t lowest = is_signed ? INT32_MIN : 0, highest = is_signed ? INT32_MAX : UINT32_MAX;
    const auto [least, most] = rangeOf(bound);
    // Exit: variable >= bound, > bound, <= bound, < bound.
    const int64_t room = op == Op::Ge   ? highest - most + 1
                         : op == Op::Gt ? highest - most
                         : op == Op::Le ? least - lowest + 1
                                        : least - lowest;
    return room >= std::abs(signed_step);
  }

  /// What a bound can be: a number, a number of elements (4 GiB hold no more), or anything.
  [[nodiscard]] std::pair<int64_t, int64_t> rangeOf(ValueId bound) const {
    const bool is_signed = module_.typeOf(bound).scalar == Scalar::I32;
    if (const std::optional<uint32_t> number = constant(bound)) {
      const int64_t value = is_signed ? int64_t{static_cast<int32_t>(*number)} : int64_t{*number};
      return {value, value};
    }
    const Instruction* x = definition(bound);
    if (x != nullptr && (x->op == Op::Convert || x->op == Op::Bitcast)) x = definition(x->operands[0]);
    if (x != nullptr && x->op == Op::ArrayLength) {
      const TypeId array = module_.typeOf(x->operands[0]).element;
      const int64_t most = (int64_t{1} << 32) / std::max(1u, module_.types.strideOf(array));
      if (most <= INT32_MAX) return {0, most};
    }
    if (is_signed) return {INT32_MIN, INT32_MAX};
    return {0, UINT32_MAX};
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

bool surelyEnds(const Module& module, const Instruction& loop) { return LoopAnalysis(module, loop).ends(); }

}  // namespace lockstep::kernel
