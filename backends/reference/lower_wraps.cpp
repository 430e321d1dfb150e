// SPDX-License-Identifier: Apache-2.0
// How an index is computed, kept beside its access, so that the sanitizer can compute it again without wrapping.
#include <algorithm>

#include "backends/reference/lower.h"
#include "backends/reference/wraps.h"

namespace lockstep::reference {
namespace {

/// The remainder of a wrapped number is another one.
bool isKept(Opcode op) { return mayWrap(op) || op == Opcode::RemI || op == Opcode::RemU; }

}  // namespace

void Lowering::noteComputed(Opcode op, Register result, Operand a, Operand b) {
  if (watched.integers && isKept(op))
    computed.insert_or_assign(result, Computed{.op = op, .is_signed = signed_now, .a = a, .b = b, .site = site});
}

uint32_t Lowering::addNode(Operand operand, bool is_signed, uint32_t depth, IndexExpression& expression, Access& leaves) {
  const auto known = operand.isRegister() ? computed.find(operand.value) : computed.end();
  IndexExpression::Node node{.op = Opcode::Move, .is_signed = is_signed, .site = site};
  const bool is_leaf = known == computed.end() || depth == 0;
  if (is_leaf) {
    node.a = static_cast<uint32_t>(leaves.values.size());
    leaves.values.push_back(operand);
    leaves.words.push_back(0);
  } else {
    const Computed& one = known->second;
    // Builtins are computed before the first instruction; they wrap where the index is used.
    node = {.op = one.op, .is_signed = one.is_signed, .site = one.site == 0 ? site : one.site};
    node.a = addNode(one.a, one.is_signed, depth - 1, expression, leaves);
    node.b = one.b.kind == Operand::Kind::None ? node.a : addNode(one.b, one.is_signed, depth - 1, expression, leaves);
  }
  node.is_leaf = is_leaf;
  expression.nodes.push_back(node);
  return static_cast<uint32_t>(expression.nodes.size() - 1);
}

void Lowering::watchIndex(const Access& access) {
  if (!watched.integers || !access.index.isRegister()) return;
  IndexExpression expression;
  Access leaves{.variable = UINT32_MAX};
  (void)addNode(access.index, false, IndexExpression::kDepth, expression, leaves);
  if (std::ranges::none_of(expression.nodes, mayWrap, &IndexExpression::Node::op)) return;
  // The index itself comes last.
  leaves.values.push_back(access.index);
  leaves.words.push_back(0);
  leaves.expression = static_cast<uint32_t>(code.expressions.size());
  expression.variable = access.variable;
  code.expressions.push_back(std::move(expression));
  emit({.kind = StepKind::Print, .op = Opcode::WatchIndex, .access = addAccess(std::move(leaves))});
}

}  // namespace lockstep::reference
