// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/fold_multiples.h"

#include <bit>
#include <optional>

#include "ir/kernel/builder.h"
#include "ir/kernel/value_ranges.h"
#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::Scalar;
using kernel::ValueId;

/// `factor * of + rest`, where the rest is below the power of two that divides the factor.
struct Multiple {
  ValueId of;
  uint32_t factor = 1, rest = 0;
  [[nodiscard]] int zeros() const { return std::countr_zero(factor); }
};

class MultipleFolder {
 public:
  explicit MultipleFolder(Module module) : b_(std::move(module)), m_(b_.module()), ranges_(m_) {}

  Module run() {
    const std::vector<kernel::Function> functions = m_.functions;
    for (const kernel::Function& function : functions) {
      ranges_.enter(function);
      block(function.body);
    }
    return b_.take();
  }

 private:
  void block(BlockId id) {
    const std::vector<InstructionId> old = m_[id].instructions;
    std::vector<InstructionId> kept;
    for (const InstructionId each : old) {
      fold(each, kept);
      const std::vector<BlockId> inner = m_[each].blocks;
      for (const BlockId one : inner) block(one);
      kept.push_back(each);
    }
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  void fold(InstructionId id, std::vector<InstructionId>& kept) {
    const Instruction& x = m_[id];
    if ((x.op != Op::Shr && x.op != Op::And) || !m_.types[x.type].is(Scalar::U32)) return;
    const std::optional<uint32_t> right = kernel::constantBits(m_, x.operands[1]);
    const std::optional<Multiple> left = multiple(x.operands[0]);
    if (!right || !left) return;
    if (x.op == Op::And && *right < 1u << left->zeros()) {
      m_.instructions[id.index()].operands[0] = b_.u32(left->rest);
    } else if (x.op == Op::Shr && *right != 0 && *right < 32 && isBelowLimit(*left)) {
      shift(id, *left, *right, kept);
    }
  }

  [[nodiscard]] bool isBelowLimit(const Multiple& left) const {
    return ranges_.rangeOf(left.of).high <= (int64_t{UINT32_MAX} - left.rest) / left.factor;
  }

  void shift(InstructionId id, const Multiple& left, uint32_t by, std::vector<InstructionId>& kept) {
    const auto zeros = static_cast<uint32_t>(left.zeros());
    if (by > zeros) {
      if (std::has_single_bit(left.factor)) become(id, Op::Shr, {left.of, b_.u32(by - zeros)});
      return;
    }
    const ValueId factor = b_.u32(left.factor >> by);
    if (left.rest >> by == 0) {
      become(id, Op::Mul, {left.of, factor});
      return;
    }
    Instruction product = m_[id];
    product.op = Op::Mul;
    product.operands = {left.of, factor};
    const InstructionId made = kernel::addInstruction(m_, std::move(product));
    kept.push_back(made);
    become(id, Op::Add, {m_[made].result, b_.u32(left.rest >> by)});
  }

  void become(InstructionId id, Op op, std::vector<ValueId> operands) {
    Instruction& x = m_.instructions[id.index()];
    x.op = op;
    x.operands = std::move(operands);
  }

  [[nodiscard]] std::optional<Multiple> multiple(ValueId value) const {
    const Instruction* x = kernel::definition(m_, value);
    if (x == nullptr || !m_.types[x->type].is(Scalar::U32)) return std::nullopt;
    if (x->op == Op::Add) {
      const std::optional<uint32_t> rest = kernel::constantBits(m_, x->operands[1]);
      std::optional<Multiple> product = scaled(x->operands[0]);
      if (!rest || !product || *rest >= 1u << product->zeros()) return std::nullopt;
      product->rest = *rest;
      return product;
    }
    return scaled(value);
  }

  [[nodiscard]] std::optional<Multiple> scaled(ValueId value) const {
    const Instruction* x = kernel::definition(m_, value);
    if (x == nullptr || x->op != Op::Mul) return std::nullopt;
    const std::optional<uint32_t> factor = kernel::constantBits(m_, x->operands[1]);
    if (!factor || *factor == 0) return std::nullopt;
    return Multiple{x->operands[0], *factor};
  }

  kernel::Builder b_;
  Module& m_;
  kernel::ValueRanges ranges_;
};

}  // namespace

Module foldMultiples(Module module) { return MultipleFolder(std::move(module)).run(); }

}  // namespace lockstep::passes
