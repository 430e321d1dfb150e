// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/join_bits.h"

#include <algorithm>
#include <optional>

#include "ir/kernel/builder.h"
#include "passes/kernel/edit.h"

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
using kernel::ValueId;
using kernel::ValueKind;

constexpr int kDeepest = 12;  // operations between a word and where its parts meet

/// Some bits of a word, moved to the left; where `when` is false, zeros.
struct Bits {
  ValueId word;
  uint32_t mask = UINT32_MAX;  ///< of the word
  int shift = 0;               ///< to the right where it is negative; bits that this moves out are not in the mask
  ValueId when;                ///< invalid: always

  [[nodiscard]] bool belongsTo(const Bits& other) const { return word == other.word && shift == other.shift && when == other.when; }
  [[nodiscard]] Bits masked(uint32_t bits) const {
    const uint32_t own = shift >= 0 ? bits >> shift : bits << -shift;
    return {word, mask & own, shift, when};
  }
  [[nodiscard]] std::optional<Bits> moved(int by) const {
    const int to = shift + by;
    if (to <= -32 || to >= 32) return std::nullopt;
    const uint32_t stays = to >= 0 ? UINT32_MAX >> to : UINT32_MAX << -to;
    return Bits{word, mask & stays, to, when};
  }
  [[nodiscard]] std::optional<Bits> onlyWhen(ValueId condition) const {
    if (when.valid() && when != condition) return std::nullopt;
    return Bits{word, mask, shift, condition};
  }
};

/// One of the two numbers in a word, as f32.
struct Half {
  ValueId word;
  uint32_t index = 0;
  ValueId when;
};

class Joiner {
 public:
  explicit Joiner(Module module) : b_(std::move(module)), m_(b_.module()) {}

  Module run() {
    const std::vector<kernel::Function> functions = m_.functions;
    for (const kernel::Function& function : functions) block(function.body);
    return b_.take();
  }

 private:
  void block(BlockId id) {
    const std::vector<InstructionId> old = m_[id].instructions;
    std::vector<InstructionId> kept;
    for (const InstructionId each : old) {
      map_.rewrite(m_.instructions[each.index()].operands);
      if (const std::optional<Bits> joined = joinedAt(m_[each]); joined && replace(m_.instructions[each.index()], *joined)) continue;
      const std::vector<BlockId> inner = m_[each].blocks;
      for (const BlockId one : inner) block(one);
      kept.push_back(each);
    }
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  std::optional<Bits> joinedAt(const Instruction& x) {
    if (x.op == Op::Pack2x16Float) return wholeOf(x);
    if (x.op != Op::Or || !m_.types[x.type].is(Scalar::U32)) return std::nullopt;
    const std::optional<Bits> joined = bitsOf(x, 0);
    return joined && joined->shift == 0 && m_.typeOf(joined->word).is(Scalar::U32) ? joined : std::nullopt;
  }

  /// True when the instruction's result is a value that is there; else the instruction may get a simpler form.
  bool replace(Instruction& x, const Bits& joined) {
    if (joined.mask != UINT32_MAX && joined.when.valid()) return false;
    if (joined.mask != UINT32_MAX) {
      x.op = Op::And;
      x.operands = {joined.word, b_.u32(joined.mask)};
      return false;
    }
    if (joined.when.valid()) {
      x.op = Op::Select;
      x.operands = {b_.u32(0), joined.word, joined.when};
      return false;
    }
    map_.set(x.result, joined.word);
    return true;
  }

  std::optional<Bits> bitsOf(ValueId value, int depth) {
    const Type& type = m_.typeOf(value);
    if (type.kind != TypeKind::Scalar || type.is(Scalar::Bool) || byteSize(type.scalar) != 4) return std::nullopt;
    if (const Instruction* made = definition(m_, value); made != nullptr && depth < kDeepest) {
      if (const std::optional<Bits> bits = bitsOf(*made, depth + 1)) return bits;
    }
    return Bits{.word = value, .when = {}};
  }

  std::optional<Bits> bitsOf(const Instruction& x, int depth) {
    if (x.op == Op::Bitcast) return bitsOf(x.operands[0], depth);
    if (x.op == Op::And || x.op == Op::Shl || x.op == Op::Shr) return bitsOfPart(x, depth);
    if (x.op == Op::Or) {
      const std::optional<Bits> a = bitsOf(x.operands[0], depth), b = bitsOf(x.operands[1], depth);
      if (!a || !b || !a->belongsTo(*b)) return std::nullopt;
      return Bits{a->word, a->mask | b->mask, a->shift, a->when};
    }
    if (x.op == Op::Select) {
      if (constantBits(m_, x.operands[0]) != 0u) return std::nullopt;
      const std::optional<Bits> shown = bitsOf(x.operands[1], depth);
      return shown ? shown->onlyWhen(x.operands[2]) : std::nullopt;
    }
    if (x.op != Op::Extract) return std::nullopt;
    const std::optional<uint32_t> index = constantBits(m_, x.operands[1]);
    return index ? bitsOfElement(x.operands[0], *index, depth) : std::nullopt;
  }

  std::optional<Bits> bitsOfPart(const Instruction& x, int depth) {
    const std::optional<uint32_t> right = constantBits(m_, x.operands[1]);
    if (!right || !m_.types[x.type].is(Scalar::U32)) return std::nullopt;
    const std::optional<Bits> whole = bitsOf(x.operands[0], depth);
    if (!whole) return std::nullopt;
    if (x.op == Op::And) return whole->masked(*right);
    const int by = static_cast<int>(*right % 32);
    return whole->moved(x.op == Op::Shl ? by : -by);
  }

  std::optional<Bits> bitsOfElement(ValueId vector, uint32_t index, int depth) {
    const Instruction* made = definition(m_, vector);
    if (made == nullptr || depth >= kDeepest) return std::nullopt;
    if (made->op == Op::Construct && made->operands.size() == m_.typeOf(vector).width()) return bitsOf(made->operands[index], depth + 1);
    if (made->op != Op::Select || !isZero(made->operands[0]) || m_.typeOf(made->operands[2]).kind != TypeKind::Scalar) return std::nullopt;
    const std::optional<Bits> shown = bitsOfElement(made->operands[1], index, depth + 1);
    return shown ? shown->onlyWhen(made->operands[2]) : std::nullopt;
  }

  [[nodiscard]] bool isZero(ValueId vector) const {
    const kernel::Value& value = m_[vector];
    if (value.kind != ValueKind::Constant) return false;
    return value.elements.empty() ? m_.typeOf(vector).kind != TypeKind::Scalar
                                  : std::ranges::all_of(value.elements, [&](ValueId element) { return constantBits(m_, element) == 0u; });
  }

  /// Both numbers of a word, in their order.
  std::optional<Bits> wholeOf(const Instruction& pack) {
    const Instruction* pair = definition(m_, pack.operands[0]);
    if (pair == nullptr) return std::nullopt;
    if (pair->op == Op::Unpack2x16Float) return Bits{.word = pair->operands[0], .when = {}};
    if (pair->op != Op::Construct || pair->operands.size() != 2) return std::nullopt;
    const std::optional<Half> low = halfOf(pair->operands[0], 0), high = halfOf(pair->operands[1], 0);
    if (!low || !high || low->word != high->word || low->when != high->when || low->index != 0 || high->index != 1) return std::nullopt;
    return Bits{.word = low->word, .when = low->when};
  }

  std::optional<Half> halfOf(ValueId value, int depth) {
    const Instruction* x = definition(m_, value);
    if (x == nullptr || depth >= kDeepest) return std::nullopt;
    if (x->op == Op::Select) return onlyWhen(constantBits(m_, x->operands[0]) == 0u, halfOf(x->operands[1], depth + 1), x->operands[2]);
    const std::optional<uint32_t> index = x->op == Op::Extract ? constantBits(m_, x->operands[1]) : std::nullopt;
    return index ? halfOfElement(x->operands[0], *index, depth + 1) : std::nullopt;
  }

  std::optional<Half> halfOfElement(ValueId vector, uint32_t index, int depth) {
    const Instruction* made = definition(m_, vector);
    if (made == nullptr || depth >= kDeepest) return std::nullopt;
    if (made->op == Op::Unpack2x16Float) return Half{made->operands[0], index, {}};
    if (made->op == Op::Construct && made->operands.size() == m_.typeOf(vector).width()) return halfOf(made->operands[index], depth + 1);
    if (made->op != Op::Select || m_.typeOf(made->operands[2]).kind != TypeKind::Scalar) return std::nullopt;
    return onlyWhen(isZero(made->operands[0]), halfOfElement(made->operands[1], index, depth + 1), made->operands[2]);
  }

  static std::optional<Half> onlyWhen(bool else_zero, std::optional<Half> half, ValueId condition) {
    if (!else_zero || !half || (half->when.valid() && half->when != condition)) return std::nullopt;
    half->when = condition;
    return half;
  }

  kernel::Builder b_;
  Module& m_;
  ValueMap map_;
};

}  // namespace

Module joinBits(Module module) { return Joiner(std::move(module)).run(); }

}  // namespace lockstep::passes
