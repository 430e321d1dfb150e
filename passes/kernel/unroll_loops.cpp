// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/unroll_loops.h"

#include <algorithm>
#include <unordered_map>

#include "passes/kernel/edit.h"
#include "passes/kernel/integer_arithmetic.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::ValueId;

/// What the walk below needs to know of a loop.
struct Shape {
  InstructionId head_exit;  // the `if` with the break; invalid: the loop ends at its tail
  ValueId counter;
  uint32_t first = 0;
  size_t size = 0;  // instructions of one iteration
};

class Unroller {
 public:
  Unroller(Module module, size_t most, std::string_view callee)
      : m_(std::move(module)), most_(most), callee_(callee), stores_(m_.values.size()), escapes_(m_.values.size()) {
    for (const kernel::Function& function : m_.functions) {
      forEachInstruction(m_, function.body, [&](InstructionId, const Instruction& x) {
        for (size_t i = 0; i < x.operands.size(); ++i) {
          bool plain = (x.op == Op::Load || x.op == Op::Store) && i == 0;
          if (!plain) escapes_[x.operands[i].index()] = true;
        }
        if (x.op == Op::Store) ++stores_[x.operands[0].index()];
      });
    }
  }

  Module run() {
    const std::vector<kernel::Function> functions = m_.functions;
    for (const kernel::Function& function : functions) block(function.body);
    return std::move(m_);
  }

 private:
  void block(BlockId id) {
    std::vector<InstructionId> old = std::move(m_.blocks[id.index()].instructions), kept;
    declared_.emplace_back();
    for (InstructionId each : old) {
      const std::vector<BlockId> inner = m_[each].blocks;
      for (BlockId one : inner) block(one);
      if (m_[each].op == Op::Var) declared_.back().push_back(m_[each].result);
      auto shape = m_[each].op == Op::Loop && isWanted(m_[each]) ? shapeOf(m_[each]) : std::nullopt;
      auto trips = shape ? countTrips(m_[each], *shape) : std::nullopt;
      if (trips) {
        for (size_t trip = 0; trip < *trips; ++trip) copyIteration(inner, *shape, kept);
      } else {
        kept.push_back(each);
      }
    }
    declared_.pop_back();
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  [[nodiscard]] bool isWanted(const Instruction& loop) const {
    bool calls = callee_.empty();
    for (BlockId part : loop.blocks) {
      forEachInstruction(
          m_, part, [&](InstructionId, const Instruction& x) { calls |= x.op == Op::Call && m_.functions[x.immediate].name == callee_; });
    }
    return calls;
  }

  [[nodiscard]] bool holdsOnlyBreak(BlockId block) const {
    const auto& instructions = m_[block].instructions;
    return instructions.size() == 1 && m_[instructions[0]].op == Op::Break;
  }

  [[nodiscard]] std::optional<Shape> shapeOf(const Instruction& loop) const {
    Shape shape;
    for (InstructionId id : m_[loop.blocks[0]].instructions) {
      const Instruction& x = m_[id];
      if (x.op == Op::If) {
        bool leaves = holdsOnlyBreak(x.blocks[0]) && m_[x.blocks[1]].instructions.empty();
        bool stays = holdsOnlyBreak(x.blocks[1]) && m_[x.blocks[0]].instructions.empty();
        if (leaves || stays) shape.head_exit = id;
      }
      if (!isPure(x.op) && x.op != Op::Load) break;
    }
    const auto& continuing = m_[loop.blocks[1]].instructions;
    bool tail = !continuing.empty() && m_[continuing.back()].op == Op::BreakIf;
    if (tail == shape.head_exit.valid() || leavesElsewhere(loop.blocks[0], shape.head_exit, true, true)) return std::nullopt;
    for (InstructionId id : continuing) {
      auto first = m_[id].op == Op::Store ? firstOf(m_[id].operands[0]) : std::nullopt;
      if (!first) continue;
      shape.counter = m_[id].operands[0];
      shape.first = *first;
    }
    if (!shape.counter.valid()) return std::nullopt;
    for (BlockId part : loop.blocks) forEachInstruction(m_, part, [&](InstructionId, const Instruction&) { ++shape.size; });
    return shape;
  }

  /// What a counter holds before the loop; nullopt when the variable is none: declared elsewhere, stored to twice, used as a pointer.
  [[nodiscard]] std::optional<uint32_t> firstOf(ValueId variable) const {
    const auto& here = declared_.back();
    if (std::find(here.begin(), here.end(), variable) == here.end()) return std::nullopt;
    if (stores_[variable.index()] != 1 || escapes_[variable.index()]) return std::nullopt;
    const kernel::Type& type = m_.types[m_.typeOf(variable).element];
    if (type.kind != kernel::TypeKind::Scalar || !type.isInteger()) return std::nullopt;
    const Instruction& declaration = *definition(m_, variable);
    return declaration.operands.empty() ? std::optional(0u) : constantBits(m_, declaration.operands[0]);
  }

  /// Whether a jump other than the one in `exit` leaves the iteration early. `breaks` and `continues`: whether those mean this loop here.
  [[nodiscard]] bool leavesElsewhere(BlockId block, InstructionId exit, bool breaks, bool continues) const {
    const auto& instructions = m_[block].instructions;
    return std::any_of(instructions.begin(), instructions.end(), [&](InstructionId id) {
      const Instruction& x = m_[id];
      if (id == exit) return false;
      if (x.op == Op::Return || (x.op == Op::Break && breaks) || (x.op == Op::Continue && continues)) return true;
      bool inner_breaks = breaks && x.op != Op::Loop && x.op != Op::Switch, inner_continues = continues && x.op != Op::Loop;
      return std::any_of(x.blocks.begin(), x.blocks.end(),
                         [&](BlockId inner) { return leavesElsewhere(inner, exit, inner_breaks, inner_continues); });
    });
  }

  using Known = std::unordered_map<uint32_t, uint32_t>;  // bits by value

  /// Walks the iterations with nothing but the counter and what follows from it. Nullopt: unknown, or more than may be unrolled.
  [[nodiscard]] std::optional<size_t> countTrips(const Instruction& loop, const Shape& shape) const {
    std::optional<uint32_t> counter = shape.first;
    for (size_t trips = 0; trips <= 1 || trips * shape.size <= most_; ++trips) {
      Known known;
      for (BlockId part : loop.blocks) {
        for (InstructionId id : m_[part].instructions) {
          const Instruction& x = m_[id];
          bool exits = id == shape.head_exit || x.op == Op::BreakIf;
          if (exits) {
            auto condition = bitsOf(x.operands[0], known);
            if (!condition) return std::nullopt;
            bool breaks_when = x.op == Op::BreakIf || holdsOnlyBreak(x.blocks[0]);
            if ((*condition != 0) == breaks_when) return x.op == Op::BreakIf ? trips + 1 : trips;
          } else if (x.op == Op::Load && x.operands[0] == shape.counter) {
            if (counter) known[x.result.value] = *counter;
          } else if (x.op == Op::Store && x.operands[0] == shape.counter) {
            counter = bitsOf(x.operands[1], known);
          } else if (isPure(x.op)) {
            if (auto bits = evaluate(x, known)) known[x.result.value] = *bits;
          }
        }
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<uint32_t> bitsOf(ValueId value, const Known& known) const {
    auto found = known.find(value.value);
    return found != known.end() ? std::optional(found->second) : constantBits(m_, value);
  }

  [[nodiscard]] std::optional<uint32_t> evaluate(const Instruction& x, const Known& known) const {
    std::vector<uint32_t> bits;
    for (ValueId operand : x.operands) {
      auto one = bitsOf(operand, known);
      if (!one || m_.typeOf(operand).isFloat()) return std::nullopt;
      bits.push_back(*one);
    }
    return bits.empty() ? std::nullopt : evaluateInteger(x.op, m_.typeOf(x.operands[0]).scalar, bits);
  }

  void copyIteration(const std::vector<BlockId>& parts, const Shape& shape, std::vector<InstructionId>& into) {
    for (BlockId part : parts) {
      const std::vector<InstructionId> instructions = m_[part].instructions;
      for (InstructionId id : instructions) {
        if (id != shape.head_exit && m_[id].op != Op::BreakIf) into.push_back(copyInstruction(m_, id, map_));
      }
    }
  }

  Module m_;
  const size_t most_;
  const std::string_view callee_;
  ValueMap map_;
  std::vector<uint32_t> stores_;                // to each variable
  std::vector<bool> escapes_;                   // pointers that are used for more than a load or a store
  std::vector<std::vector<ValueId>> declared_;  // variables of the blocks around, the innermost last
};

}  // namespace

Module unrollLoops(Module module) { return unrollLoops(std::move(module), kUnrolledInstructions); }

Module unrollLoops(Module module, size_t most, std::string_view callee) { return Unroller(std::move(module), most, callee).run(); }

}  // namespace lockstep::passes
