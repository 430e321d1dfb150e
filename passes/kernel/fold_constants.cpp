// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/fold_constants.h"

#include <algorithm>
#include <bit>

#include "ir/kernel/builder.h"
#include "ir/kernel/queries.h"
#include "passes/kernel/edit.h"
#include "passes/kernel/integer_arithmetic.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::Scalar;
using kernel::Type;
using kernel::TypeKind;
using kernel::Value;
using kernel::ValueId;
using kernel::ValueKind;

enum class Constant : uint8_t { Zero, One, Ones };  ///< Ones: every bit of the type
enum class Gives : uint8_t { Left, Right, Zero };

/// `op` of x and a constant, which stands on the right: commutative operations are turned so first.
struct Identity {
  Op op;
  Constant right;
  Gives gives;
  bool only_unsigned = false;
};
constexpr Identity kIdentities[] = {
    {Op::Add, Constant::Zero, Gives::Left},       {Op::Sub, Constant::Zero, Gives::Left},
    {Op::Mul, Constant::One, Gives::Left},        {Op::Mul, Constant::Zero, Gives::Right},
    {Op::Div, Constant::One, Gives::Left},        {Op::Rem, Constant::One, Gives::Zero},
    {Op::Shl, Constant::Zero, Gives::Left},       {Op::Shr, Constant::Zero, Gives::Left},
    {Op::And, Constant::Zero, Gives::Right},      {Op::And, Constant::Ones, Gives::Left},
    {Op::Or, Constant::Zero, Gives::Left},        {Op::Or, Constant::Ones, Gives::Right},
    {Op::Xor, Constant::Zero, Gives::Left},       {Op::Min, Constant::Zero, Gives::Right, true},
    {Op::Max, Constant::Zero, Gives::Left, true}, {Op::Min, Constant::Ones, Gives::Left, true},
};

constexpr Op kCommutative[] = {Op::Add, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Min, Op::Max};

/// The comparison that holds when the other does not. Integers only: with a NaN neither holds.
struct Opposite {
  Op op, opposite;
};
constexpr Opposite kOpposites[] = {{Op::Eq, Op::Ne}, {Op::Lt, Op::Ge}, {Op::Le, Op::Gt}};

bool isCommutative(Op op) { return std::find(std::begin(kCommutative), std::end(kCommutative), op) != std::end(kCommutative); }

std::optional<Op> oppositeOf(Op op) {
  for (const Opposite& row : kOpposites) {
    if (row.op == op) return row.opposite;
    if (row.opposite == op) return row.op;
  }
  return std::nullopt;
}

class Folder {
 public:
  explicit Folder(Module module) : b_(std::move(module)), m_(b_.module()) {}

  Module run() {
    const std::vector<kernel::Function> functions = m_.functions;
    for (const kernel::Function& function : functions) block(function.body);
    return b_.take();
  }

 private:
  void block(BlockId id) {
    std::vector<InstructionId> kept;
    walk(id, kept);
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  void walk(BlockId id, std::vector<InstructionId>& kept) {
    const std::vector<InstructionId> old = m_[id].instructions;
    for (InstructionId each : old) {
      map_.rewrite(m_.instructions[each.index()].operands);
      Op op = m_[each].op;
      if (isPure(op)) {
        if (ValueId known = fold(each); known.valid()) {
          map_.set(m_[each].result, known);
          continue;
        }
      } else if (op == Op::If) {
        const std::vector<BlockId> arms = m_[each].blocks;
        std::optional<uint32_t> condition = constantBits(m_, m_[each].operands[0]);
        BlockId taken = arms[condition && *condition == 0 ? 1 : 0];
        // Behind a jump nothing may stand, and what stands there now may be needed in a continuing block.
        if (condition && !endsInJump(m_, taken)) {
          walk(taken, kept);
          continue;
        }
      }
      const std::vector<BlockId> inner = m_[each].blocks;
      for (BlockId one : inner) block(one);
      kept.push_back(each);
    }
  }

  /// The value that the instruction's result is; invalid when it stays. It may be given a simpler form on the way, which is looked at
  /// again.
  ValueId fold(InstructionId id) {
    while (true) {
      if (ValueId known = value(m_[id]); known.valid()) return known;
      if (!rewrite(m_.instructions[id.index()])) return {};
    }
  }

  [[nodiscard]] const Type& typeOf(ValueId id) const { return m_.typeOf(id); }
  [[nodiscard]] bool isInteger(ValueId id) const { return typeOf(id).kind == TypeKind::Scalar && typeOf(id).isInteger(); }

  ValueId value(const Instruction& x) {
    if (x.op == Op::Extract) return extracted(x);
    if (x.op == Op::Construct) return constructed(x);
    if (x.op == Op::Convert || x.op == Op::Bitcast) return converted(x);
    if (x.op == Op::Select && x.operands[0] == x.operands[1]) return x.operands[0];
    if (x.op == Op::Select) {
      auto condition = constantBits(m_, x.operands[2]);
      return condition ? x.operands[*condition != 0 ? 1 : 0] : selectOfBools(x);
    }
    if (x.op == Op::Not) {
      const Instruction* inner = definition(m_, x.operands[0]);
      if (inner != nullptr && inner->op == Op::Not) return inner->operands[0];
    }
    const Type& type = typeOf(x.operands[0]);
    if (type.kind != TypeKind::Scalar || type.isFloat()) return {};
    if (ValueId known = evaluated(x); known.valid()) return known;
    return identity(x);
  }

  /// select(false, true, c) is c.
  [[nodiscard]] ValueId selectOfBools(const Instruction& x) const {
    if (!typeOf(x.operands[0]).is(Scalar::Bool)) return {};
    bool plain = constantBits(m_, x.operands[0]) == 0u && constantBits(m_, x.operands[1]) == 1u;
    return plain ? x.operands[2] : ValueId{};
  }

  ValueId evaluated(const Instruction& x) {
    std::vector<uint32_t> bits;
    for (ValueId operand : x.operands) {
      auto known = constantBits(m_, operand);
      if (!known) return {};
      bits.push_back(*known);
    }
    auto result = evaluateInteger(x.op, typeOf(x.operands[0]).scalar, bits);
    return result ? b_.scalar(m_.types[x.type].scalar, *result) : ValueId{};
  }

  ValueId identity(const Instruction& x) {
    if (x.operands.size() != 2) return {};
    auto right = constantBits(m_, x.operands[1]);
    if (!right) return {};
    Scalar scalar = typeOf(x.operands[0]).scalar;
    uint32_t ones = scalar == Scalar::Bool ? 1 : UINT32_MAX;
    for (const Identity& row : kIdentities) {
      if (row.op != x.op || (row.only_unsigned && scalar != Scalar::U32)) continue;
      if (*right != (row.right == Constant::Zero ? 0 : row.right == Constant::One ? 1 : ones)) continue;
      return row.gives == Gives::Left ? x.operands[0] : row.gives == Gives::Right ? x.operands[1] : b_.scalar(scalar, 0);
    }
    return {};
  }

  ValueId extracted(const Instruction& x) {
    auto index = constantBits(m_, x.operands[1]);
    if (!index) return {};
    const Value& whole = m_[x.operands[0]];
    if (whole.kind == ValueKind::Constant) return whole.elements.empty() ? b_.zero(x.type) : whole.elements[*index];
    const Instruction* made = definition(m_, x.operands[0]);
    if (made == nullptr || made->op != Op::Construct) return {};
    return made->operands.size() == 1 && typeOf(x.operands[0]).kind == TypeKind::Vector ? made->operands[0] : made->operands[*index];
  }

  ValueId constructed(const Instruction& x) {
    std::vector<ValueId> elements = x.operands;
    // A subgroup matrix has no constants but zero.
    if (elements.empty() || m_.types[x.type].kind == TypeKind::SubgroupMatrix) return {};
    for (ValueId element : elements) {
      if (m_[element].kind != ValueKind::Constant) return {};
    }
    // One operand splats a vector.
    if (elements.size() == 1) elements.resize(m_.types.elementCount(x.type), elements[0]);
    return b_.composite(x.type, std::move(elements));
  }

  ValueId converted(const Instruction& x) {
    if (m_[x.operands[0]].type == x.type) return x.operands[0];
    auto bits = constantBits(m_, x.operands[0]);
    const Type &from = typeOf(x.operands[0]), to = m_.types[x.type];
    if (!bits || to.kind != TypeKind::Scalar || from.isFloat() || to.isFloat()) return {};
    return b_.scalar(to.scalar, to.is(Scalar::Bool) ? (*bits != 0 ? 1 : 0) : *bits);
  }

  /// Gives the instruction a simpler form of the same bits; false when there is none.
  bool rewrite(Instruction& x) {
    if (x.op == Op::Extract) {
      const Instruction* swizzle = definition(m_, x.operands[0]);
      auto index = constantBits(m_, x.operands[1]);
      if (swizzle == nullptr || swizzle->op != Op::Swizzle || !index) return false;
      x.operands = {swizzle->operands[0], b_.u32((swizzle->immediate >> (2 * *index)) & 3)};
      return true;
    }
    if (x.op == Op::Not) return rewriteNot(x);
    if (x.operands.size() != 2) return false;
    const Type& type = typeOf(x.operands[0]);
    if (type.kind != TypeKind::Scalar || type.isFloat()) return false;
    auto right = constantBits(m_, x.operands[1]);
    if (!right && isCommutative(x.op) && constantBits(m_, x.operands[0])) {
      std::swap(x.operands[0], x.operands[1]);
      return true;
    }
    bool divides = (x.op == Op::Div || x.op == Op::Rem) && type.is(Scalar::U32);
    if (!divides || !right || !std::has_single_bit(*right)) return false;
    bool is_div = x.op == Op::Div;
    x.op = is_div ? Op::Shr : Op::And;
    x.operands[1] = b_.u32(is_div ? static_cast<uint32_t>(std::countr_zero(*right)) : *right - 1);
    return true;
  }

  bool rewriteNot(Instruction& x) {
    const Instruction* inner = definition(m_, x.operands[0]);
    if (inner == nullptr) return false;
    auto opposite = oppositeOf(inner->op);
    if (!opposite || !isInteger(inner->operands[0])) return false;
    x.op = *opposite;
    x.operands = inner->operands;
    return true;
  }

  kernel::Builder b_;
  Module& m_;
  ValueMap map_;
};

}  // namespace

Module foldConstants(Module module) { return Folder(std::move(module)).run(); }

}  // namespace lockstep::passes
