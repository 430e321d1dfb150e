// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/guard_accesses.h"

#include <algorithm>
#include <array>
#include <map>

#include "ir/kernel/builder.h"
#include "ir/kernel/queries.h"
#include "ir/kernel/value_ranges.h"

namespace lockstep::kernel {
namespace {

constexpr std::array<std::string_view, 3> kNames{"trap", "clamp", "zero"};

class Guard {
 public:
  Guard(Module module, OutOfBounds policy) : builder_(std::move(module)), m_(builder_.module()), policy_(policy), ranges_(m_) {}

  Module run() {
    for (size_t i = 0; i < m_.functions.size(); ++i) {
      ranges_.enter(m_.functions[i]);
      block(m_.functions[i].body);
    }
    return builder_.take();
  }

 private:
  /// Builds the block anew: its instructions, with guards in front of some.
  void block(BlockId id) {
    const size_t outer = ranges_.mark();
    const std::vector<InstructionId> old = std::exchange(m_.blocks[id.index()].instructions, {});
    for (const InstructionId each : old) {
      builder_.setBlock(id);
      const size_t made = m_.instructions.size();
      instruction(each);
      // Guards belong to the place of what they guard.
      for (size_t i = made; i < m_.instructions.size(); ++i) {
        m_.instructions[i].origin = m_[each].origin;
        m_.instructions[i].location = m_[each].location;
      }
      control(each);
    }
    ranges_.undo(outer);
  }

  void append(InstructionId id) { m_.blocks[builder_.block().index()].instructions.push_back(id); }

  void instruction(InstructionId id) {
    const Op op = m_[id].op;
    if (op == Op::Access) {
      access(id);
    } else if (hasMajor(op)) {
      matrix(id);
    } else if (op == Op::Extract && policy_ != OutOfBounds::Trap) {
      extract(id);
    } else if (inside_.contains(pointerOf(m_[id]))) {
      skipUnless(inside_.at(m_[id].operands[0]), id);
    } else {
      append(id);
    }
    ranges_.visit(m_[id]);
  }

  void control(InstructionId id) {
    const Instruction x = m_[id];
    if (x.op == Op::If) {
      for (const bool holds : {true, false}) {
        const size_t before = ranges_.mark();
        ranges_.assume(x.operands[0], holds);
        block(x.blocks[holds ? 0 : 1]);
        ranges_.undo(before);
        ranges_.forgetStores(x.blocks[holds ? 0 : 1]);
      }
      // What made one arm jump away does not hold after it.
      if (endsInJump(m_, x.blocks[0])) ranges_.assume(x.operands[0], false);
      if (endsInJump(m_, x.blocks[1])) ranges_.assume(x.operands[0], true);
      return;
    }
    if (x.op == Op::Loop) ranges_.enterLoop(x);
    for (const BlockId inner : x.blocks) {
      block(inner);
      ranges_.forgetStores(inner);
    }
    for (const BlockId inner : x.blocks) ranges_.forgetStores(inner);
  }

  [[nodiscard]] bool isInside(ValueId index, TypeId composite) const {
    const uint32_t count = countOf(composite);
    const Range range = ranges_.rangeOf(index);
    return range.low >= 0 && range.high < int64_t{count};
  }

  [[nodiscard]] uint32_t countOf(TypeId composite) const {
    const Type& type = m_.types[composite];
    return type.kind == TypeKind::SubgroupMatrix ? elementsHeld(m_, type) : m_.types.elementCount(composite);
  }

  void access(InstructionId id) {
    const Instruction x = m_[id];
    const ValueId base = x.operands[0];
    std::vector<ValueId> indices(x.operands.begin() + 1, x.operands.end());
    TypeId part = m_.typeOf(base).element;
    bool proven = true;
    ValueId condition = inside_.contains(base) ? inside_.at(base) : ValueId();
    for (size_t k = 0; k < indices.size(); ++k) {
      const Type whole = m_.types[part];
      if (whole.kind == TypeKind::Struct) {
        part = whole.members[m_[indices[k]].bits].type;
        continue;
      }
      const bool is_runtime = whole.kind == TypeKind::Array && whole.count == 0;
      const bool inside = x.in_bounds || (is_runtime ? runtimeInside(base, indices[k]) : isInside(indices[k], part));
      if (!inside) {
        proven = false;
        if (policy_ != OutOfBounds::Trap) {
          const ValueId count = is_runtime ? length(base, indices, k) : builder_.u32(countOf(part));
          indices[k] = guarded(indices[k], count, is_runtime ? 0 : countOf(part), condition);
        }
      }
      part = builder_.types().elementOf(part);
    }
    std::copy(indices.begin(), indices.end(), m_.instructions[id.index()].operands.begin() + 1);
    m_.instructions[id.index()].in_bounds = proven || policy_ != OutOfBounds::Trap;
    if (condition.valid()) inside_[x.result] = condition;
    append(id);
  }

  /// A binding holds at least one element, so index 0 is always there.
  [[nodiscard]] bool runtimeInside(ValueId array, ValueId index) const {
    const Range range = ranges_.rangeOf(index);
    return range == Range{0, 0} || (range.low >= 0 && ranges_.isBelowLength(index, array));
  }

  /// The number of elements of the runtime-sized array that index `k` selects from.
  ValueId length(ValueId base, const std::vector<ValueId>& indices, size_t k) {
    ValueId array = base;
    if (k > 0) {
      const std::vector<ValueId> members(indices.begin(), indices.begin() + static_cast<ptrdiff_t>(k));
      array = builder_.access(base, members, true);
    }
    return builder_.make(Op::ArrayLength, {array});
  }

  /// The index as u32, no larger than the last; `fixed` is the count where it is known, else 0. Adds to `condition` that it was in range.
  ValueId guarded(ValueId index, ValueId count, uint32_t fixed, ValueId& condition) {
    const TypeId u32 = builder_.types().u32();
    const ValueId bits = m_.typeOf(index).is(Scalar::U32) ? index : builder_.makeAs(Op::Bitcast, u32, {index});
    if (policy_ == OutOfBounds::ZeroAndSkip) {
      const ValueId here = builder_.make(Op::Lt, {bits, count});
      condition = condition.valid() ? builder_.make(Op::And, {condition, here}) : here;
    }
    const ValueId last = fixed != 0 ? builder_.u32(fixed - 1) : builder_.make(Op::Sub, {count, builder_.u32(1)});
    return builder_.make(Op::Min, {bits, last});
  }

  void extract(InstructionId id) {
    const Instruction x = m_[id];
    const TypeId whole = m_[x.operands[0]].type;
    if (m_.types[whole].kind == TypeKind::Struct || isInside(x.operands[1], whole)) return append(id);
    const uint32_t count = countOf(whole);
    ValueId condition;
    const ValueId index = guarded(x.operands[1], builder_.u32(count), count, condition);
    m_.instructions[id.index()].operands[1] = index;
    if (!condition.valid() || !m_.types[x.type].isScalarOrVector()) return append(id);
    // The select takes over the result, so that uses need no change.
    const ValueId element = builder_.makeAs(Op::Extract, x.type, {x.operands[0], index});
    Instruction& chosen = m_.instructions[id.index()];
    chosen.op = Op::Select;
    chosen.operands = {builder_.zero(x.type), element, condition};
    append(id);
  }

  /// A load or store of a matrix reaches from `offset` to the end of its last line. Within the policies that go on, offset and stride are
  /// made small enough; an array that is too short for one line is left alone.
  void matrix(InstructionId id) {
    const Instruction x = m_[id];
    const bool is_load = x.op == Op::SubgroupMatrixLoad;
    const size_t stride_at = is_load ? 2 : 3;
    const ValueId array_pointer = x.operands[0];
    const Type shape = m_.types[is_load ? x.type : m_[x.operands[2]].type];
    const Type array = m_.types[m_.typeOf(array_pointer).element], element = m_.types[array.element];
    const uint32_t held = componentsIn(element, shape);
    const uint32_t line = (x.immediate != 0 ? shape.rows : shape.columns) / held;
    const uint32_t steps = (x.immediate != 0 ? shape.columns : shape.rows) - 1;
    const int64_t end = ranges_.rangeOf(x.operands[1]).high + int64_t{steps} * ranges_.rangeOf(x.operands[stride_at]).high + line;
    const bool inside = array.count != 0 && end <= int64_t{array.count};
    ValueId condition = inside_.contains(array_pointer) ? inside_.at(array_pointer) : ValueId();
    const auto require = [&](ValueId holds) { condition = condition.valid() ? builder_.make(Op::And, {condition, holds}) : holds; };
    if (!inside && policy_ != OutOfBounds::Trap) {
      ValueId count = builder_.u32(array.count);
      if (array.count == 0) {
        count = builder_.make(Op::ArrayLength, {array_pointer});
        require(builder_.make(Op::Ge, {count, builder_.u32(line)}));
        count = builder_.make(Op::Max, {count, builder_.u32(line)});
      }
      const ValueId room = builder_.make(Op::Sub, {count, builder_.u32(line)});
      const auto atMost = [&](size_t operand, ValueId limit) {
        if (policy_ == OutOfBounds::ZeroAndSkip) require(builder_.make(Op::Le, {x.operands[operand], limit}));
        return m_.instructions[id.index()].operands[operand] = builder_.make(Op::Min, {x.operands[operand], limit});
      };
      ValueId used = builder_.u32(0);
      if (steps > 0) {
        const ValueId stride = atMost(stride_at, builder_.make(Op::Div, {room, builder_.u32(steps)}));
        used = builder_.make(Op::Mul, {stride, builder_.u32(steps)});
      }
      atMost(1, builder_.make(Op::Sub, {room, used}));
    }
    if (condition.valid()) return skipUnless(condition, id);
    append(id);
  }

  /// The pointer that an instruction goes through.
  static ValueId pointerOf(const Instruction& x) {
    const bool memory = x.op == Op::Load || x.op == Op::Store || info(x.op).group == OpGroup::Atomic;
    return memory ? x.operands[0] : ValueId();
  }

  /// `if inside { x }`; a result goes through a variable that is zero at first.
  void skipUnless(ValueId inside, InstructionId id) {
    const Instruction x = m_[id];
    if (!x.result.valid() || m_.types[x.type].kind == TypeKind::Void) {
      builder_.ifThen(inside, [&] { append(id); });
      return;
    }
    const ValueId variable = builder_.var(x.type, "");
    builder_.ifThen(inside, [&] {
      const ValueId made = builder_.makeAs(x.op, x.type, x.operands, x.immediate);
      builder_.store(variable, made);
    });
    Instruction& load = m_.instructions[id.index()];
    load.op = Op::Load;
    load.operands = {variable};
    append(id);
  }

  Builder builder_;
  Module& m_;
  OutOfBounds policy_;
  ValueRanges ranges_;
  std::map<ValueId, ValueId> inside_;  ///< ZeroAndSkip: a pointer -> whether the indices behind it were in range
};

}  // namespace

std::string_view toString(OutOfBounds policy) { return kNames[static_cast<size_t>(policy)]; }

std::optional<OutOfBounds> findOutOfBounds(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  return found == kNames.end() ? std::nullopt : std::optional(static_cast<OutOfBounds>(found - kNames.begin()));
}

Module guardAccesses(Module module, OutOfBounds policy) { return Guard(std::move(module), policy).run(); }

}  // namespace lockstep::kernel
