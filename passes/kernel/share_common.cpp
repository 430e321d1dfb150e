// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/share_common.h"

#include <algorithm>
#include <unordered_map>

#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::ValueId;

constexpr Op kCommutative[] = {Op::Add, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Eq, Op::Ne, Op::Min, Op::Max};

/// What makes two instructions give one value.
struct Key {
  Op op;
  kernel::FloatMode float_mode;
  kernel::TypeId type;
  uint32_t immediate;
  std::vector<ValueId> operands;
  uint32_t stretch;  ///< of a load from memory that is written: it gives the same only as long as nothing is written
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    size_t hash = (static_cast<size_t>(key.op) * 31 + key.type.value) * 31 + key.stretch;
    for (ValueId operand : key.operands) hash = hash * 1000003 + operand.value;
    return hash;
  }
};

class Sharer {
 public:
  explicit Sharer(Module module) : m_(std::move(module)) {}

  Module run() {
    for (const kernel::Function& function : m_.functions) block(function.body);
    return std::move(m_);
  }

 private:
  void block(BlockId id) {
    size_t outer = made_here_.size();
    std::vector<InstructionId> old = std::move(m_.blocks[id.index()].instructions), kept;
    for (InstructionId each : old) {
      Instruction& instruction = m_.instructions[each.index()];
      map_.rewrite(instruction.operands);
      if (isShareable(instruction) && replace(each)) continue;
      if (mayWrite(instruction)) ++stretch_;
      for (BlockId inner : instruction.blocks) {
        block(inner);
        ++stretch_;
      }
      kept.push_back(each);
    }
    m_.blocks[id.index()].instructions = std::move(kept);
    for (; made_here_.size() > outer; made_here_.pop_back()) known_.erase(made_here_.back());
  }

  [[nodiscard]] bool isReadOnly(const Instruction& load) const { return m_.typeOf(load.operands[0]).access == kernel::Access::Read; }
  [[nodiscard]] bool inMemory(kernel::ValueId pointer) const {
    const kernel::AddressSpace space = m_.typeOf(pointer).space;
    return space == kernel::AddressSpace::Storage || space == kernel::AddressSpace::Workgroup;
  }
  /// Whether it may change memory that this kernel loads from, or make visible what other invocations wrote.
  [[nodiscard]] bool mayWrite(const Instruction& x) const {
    if (x.op == Op::Store) return inMemory(x.operands[0]);
    return !isShareable(x) && x.op != Op::Load && x.op != Op::Var;
  }
  [[nodiscard]] bool isShareable(const Instruction& x) const {
    if (x.op == Op::Load) return isReadOnly(x) || inMemory(x.operands[0]);
    // What a lane gets from another one is the same again: fewer lanes may take part later, but not more.
    return isPure(x.op) || x.op == Op::Access || x.op == Op::ArrayLength || x.op == Op::SubgroupShuffleXor;
  }

  /// True when an earlier instruction takes the place of this one; else this one is remembered.
  bool replace(InstructionId id) {
    const Instruction& x = m_[id];
    const bool may_change = x.op == Op::Load && !isReadOnly(x);
    Key key{x.op, x.float_mode, x.type, x.immediate, x.operands, may_change ? stretch_ : 0};
    bool commutes = std::find(std::begin(kCommutative), std::end(kCommutative), x.op) != std::end(kCommutative);
    // Floats too would give the same number, but not the same one of two NaNs.
    if (commutes && !m_.typeOf(x.operands[0]).isFloat()) std::sort(key.operands.begin(), key.operands.end());
    auto [entry, is_new] = known_.try_emplace(key, id);
    if (is_new) {
      made_here_.push_back(std::move(key));
      return false;
    }
    const Instruction& earlier = m_[entry->second];
    // A guarded place cannot stand in for a bare one without guarding that too.
    if (x.in_bounds && !earlier.in_bounds) return false;
    map_.set(x.result, earlier.result);
    return true;
  }

  Module m_;
  ValueMap map_;
  uint32_t stretch_ = 1;
  std::unordered_map<Key, InstructionId, KeyHash> known_;
  std::vector<Key> made_here_;  // what the blocks around have added, to be forgotten at their ends
};

}  // namespace

Module shareCommon(Module module) { return Sharer(std::move(module)).run(); }

}  // namespace lockstep::passes
