// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/lint/expressions.h"

#include <algorithm>

#include "frontend/wgsl/analyse/memory_roots.h"

namespace lockstep::wgsl {

Expressions::Expressions(const Ast& ast, const Program& program) : ast_(ast), program_(program), meanings_(program.entities.size()) {
  const MemoryRoots roots(ast, program);
  std::vector<bool> stored(program.entities.size());
  const auto store = [&](ExprId target) {
    if (const EntityId root = roots.of(target); root.valid()) stored[root.index()] = true;
  };
  for (const Stmt& stmt : ast.statements) {
    if (stmt.target.valid()) store(stmt.target);
  }
  for (const Expr& expr : ast.expressions) {
    if (expr.kind == ExprKind::Unary && expr.unary == UnaryOp::AddressOf) store(expr.left);
  }
  for (size_t i = 0; i < ast.statements.size(); ++i) {
    const EntityId entity = program.declared[i];
    if (!entity.valid()) continue;
    const VariableDecl& decl = ast.localOf(ast.statements[i]);
    const bool fixed = decl.kind == VariableKind::Let || (decl.kind == VariableKind::Var && !stored[entity.index()]);
    if (fixed) meanings_[entity.index()] = decl.initializer;
  }
}

bool Expressions::same(ExprId a, ExprId b) const {
  uint32_t budget = kBudget;
  return same(a, b, budget);
}

bool Expressions::same(ExprId a, ExprId b, uint32_t& budget) const {
  const Expr &x = ast_[a], &y = ast_[b];
  if (budget == 0 || x.kind != y.kind) return false;
  --budget;
  switch (x.kind) {
    case ExprKind::Literal: {
      const Literal &one = ast_.literals[x.literal], &other = ast_.literals[y.literal];
      return one.kind == other.kind && one.integer == other.integer && one.number == other.number;
    }
    case ExprKind::Identifier:
      return !x.has_templates && !y.has_templates && x.name == y.name && program_[a].entity == program_[b].entity;
    case ExprKind::Call: {
      const ExprInfo& info = program_[a];
      const bool pure =
          info.call == CallKind::Construct || (info.call == CallKind::Builtin && wgsl::info(info.builtin).uniformity == Uniformity::Pure);
      if (!pure || x.name != y.name || x.has_templates != y.has_templates || info.type != program_[b].type) return false;
      return std::ranges::equal(x.arguments, y.arguments, [&](ExprId one, ExprId other) { return same(one, other, budget); });
    }
    case ExprKind::Unary:
      return x.unary == y.unary && same(x.left, y.left, budget);
    case ExprKind::Binary:
      return x.binary == y.binary && same(x.right, y.right, budget) && same(x.left, y.left, budget);
    case ExprKind::Index:
      return same(x.left, y.left, budget) && same(x.right, y.right, budget);
    case ExprKind::Member:
      return x.name == y.name && same(x.left, y.left, budget);
  }
  return false;
}

bool Expressions::isLiteral(ExprId id) const {
  uint32_t budget = kBudget;
  return isLiteral(id, budget);
}

bool Expressions::isLiteral(ExprId id, uint32_t& budget) const {
  const Expr& expr = ast_[id];
  if (budget == 0 || expr.kind == ExprKind::Identifier) return false;
  --budget;
  if (expr.kind == ExprKind::Call && program_[id].call == CallKind::Function) return false;
  if (expr.left.valid() && !isLiteral(expr.left, budget)) return false;
  if (expr.right.valid() && !isLiteral(expr.right, budget)) return false;
  return std::ranges::all_of(expr.arguments, [&](ExprId argument) { return isLiteral(argument, budget); });
}

std::optional<double> Expressions::number(ExprId id) const {
  const ExprInfo& info = program_[id];
  if (!info.value || info.stage == Stage::Runtime) return std::nullopt;
  const Kind kind = program_.types[info.value->type].kind;
  if (kind == Kind::AbstractFloat || kind == Kind::F32 || kind == Kind::F16) return info.value->number;
  if (kind == Kind::AbstractInt || kind == Kind::I32 || kind == Kind::U32) return static_cast<double>(info.value->integer);
  return std::nullopt;
}

ExprId Expressions::resolve(ExprId id) const {
  for (int k = 0; k < 20 && ast_[id].kind == ExprKind::Identifier; ++k) {
    const EntityId entity = program_[id].entity;
    if (!entity.valid() || !meanings_[entity.index()].valid()) break;
    id = meanings_[entity.index()];
  }
  return id;
}

const Expr* Expressions::call(ExprId id, Builtin builtin) const {
  id = resolve(id);
  return program_[id].call == CallKind::Builtin && program_[id].builtin == builtin ? &ast_[id] : nullptr;
}

ExprId Expressions::exponent(ExprId id) const {
  for (const Builtin builtin : {Builtin::Exp, Builtin::Exp2}) {
    if (const Expr* found = call(id, builtin)) return found->arguments[0];
  }
  return {};
}

const Expr* Expressions::operation(ExprId id, BinaryOp op) const {
  const Expr& expr = ast_[resolve(id)];
  return expr.kind == ExprKind::Binary && expr.binary == op ? &expr : nullptr;
}

bool Expressions::isFloat(ExprId id) const {
  const Ty scalar = program_.types.scalarOf(program_.types.value(program_[id].type));
  return scalar == kF32 || scalar == kF16;
}

bool Expressions::isUnsigned(ExprId id) const { return program_.types.scalarOf(program_.types.value(program_[id].type)) == kU32; }

bool Expressions::contains(ExprId id, ExprId part) const {
  const ExprId meaning = resolve(part);
  return any(id, [&](ExprId each) { return same(each, part) || same(resolve(each), meaning); });
}

}  // namespace lockstep::wgsl
