// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/load_early.h"

#include <algorithm>
#include <optional>

#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::ValueId;
using kernel::ValueKind;

/// What they bring waits in registers.
constexpr size_t kMostTogether = 16;
/// Instructions that a load takes along.
constexpr size_t kMostMoved = 64;

/// Instructions between two that nothing is moved across.
struct Stretch {
  size_t place = SIZE_MAX;  ///< where loads move to: after the first load or in front of the first store
  size_t loads = 0;
  bool stored = false;
  [[nodiscard]] bool begun() const { return place != SIZE_MAX; }
};

class Mover {
 public:
  explicit Mover(Module module) : m_(std::move(module)), is_later_(m_.instructions.size(), false) {}

  Module run() {
    for (const kernel::Function& function : m_.functions) block(function.body);
    return std::move(m_);
  }

 private:
  void block(BlockId id) {
    const std::vector<InstructionId> old = m_[id].instructions;
    std::vector<InstructionId> kept;
    Stretch stretch;
    for (const InstructionId each : old) {
      const Instruction& x = m_[each];
      const bool is_load = x.op == Op::Load && inStorage(x.operands[0]);
      if (isFence(x)) {
        forget(kept, stretch);
        stretch = {};
        for (const BlockId inner : x.blocks) block(inner);
      } else if (is_load && !stretch.begun()) {
        stretch = {.place = kept.size() + 1, .loads = 1, .stored = false};
      } else if (is_load && stretch.loads < kMostTogether && (!stretch.stored || isReadOnly(x)) && move(kept, stretch, each)) {
        continue;
      } else if (x.op == Op::Store && inStorage(x.operands[0])) {
        if (!stretch.begun()) stretch.place = kept.size();
        stretch.stored = true;
      }
      if (stretch.begun() && kept.size() >= stretch.place) is_later_[each.index()] = true;
      kept.push_back(each);
    }
    forget(kept, stretch);
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  void forget(const std::vector<InstructionId>& kept, const Stretch& stretch) {
    for (size_t i = stretch.place; i < kept.size(); ++i) is_later_[kept[i].index()] = false;
  }

  [[nodiscard]] bool inStorage(ValueId pointer) const { return m_.typeOf(pointer).space == kernel::AddressSpace::Storage; }
  [[nodiscard]] bool isReadOnly(const Instruction& load) const { return m_.typeOf(load.operands[0]).access == kernel::Access::Read; }
  [[nodiscard]] bool isPlace(const Instruction& x) const { return isPure(x.op) || x.op == Op::Access; }
  /// What nothing is moved across.
  [[nodiscard]] bool isFence(const Instruction& x) const {
    return !isPlace(x) && x.op != Op::Load && x.op != Op::Store && x.op != Op::Var && x.op != Op::ArrayLength;
  }

  /// What the instruction needs of what comes after the place of the stretch, in any order; nothing where some of it cannot move, or is too
  /// much.
  [[nodiscard]] std::optional<std::vector<InstructionId>> neededLater(const Instruction& x) const {
    std::vector<InstructionId> found;
    std::vector<ValueId> open = x.operands;
    while (!open.empty()) {
      const kernel::Value& value = m_[open.back()];
      open.pop_back();
      if (value.kind != ValueKind::Instruction || !is_later_[value.index]) continue;
      const InstructionId id(value.index);
      if (std::ranges::find(found, id) != found.end()) continue;
      if (!isPlace(m_[id]) || found.size() == kMostMoved) return std::nullopt;
      found.push_back(id);
      open.insert(open.end(), m_[id].operands.begin(), m_[id].operands.end());
    }
    return found;
  }

  /// Puts the load, and what it needs, at the place of the stretch; false where that does not work.
  bool move(std::vector<InstructionId>& kept, Stretch& stretch, InstructionId load) {
    const auto needed = neededLater(m_[load]);
    if (!needed) return false;
    const auto isNeeded = [&](InstructionId each) { return std::ranges::find(*needed, each) != needed->end(); };
    // They come to the front in the order that they have, which is one in which they can run.
    const auto place = kept.begin() + static_cast<ptrdiff_t>(stretch.place);
    std::stable_partition(place, kept.end(), isNeeded);
    for (const InstructionId each : *needed) is_later_[each.index()] = false;
    stretch.place += needed->size();
    kept.insert(kept.begin() + static_cast<ptrdiff_t>(stretch.place), load);
    ++stretch.place;
    ++stretch.loads;
    return true;
  }

  Module m_;
  std::vector<bool> is_later_;  // by instruction: whether it comes after the place of the stretch
};

}  // namespace

Module loadEarly(Module module) { return Mover(std::move(module)).run(); }

}  // namespace lockstep::passes
