// SPDX-License-Identifier: Apache-2.0
// A softmax without subtracting the maximum: exponentials of any numbers, their sum, and a division by it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/wgsl/lint/expressions.h"
#include "frontend/wgsl/lint/lints.h"
#include "frontend/wgsl/lint/stores.h"

namespace lockstep::wgsl {
namespace {

class Softmax {
 public:
  Softmax(const LintInput& input, LintReporter& reporter)
      : ast_(input.ast), program_(input.program), reporter_(reporter), e_(input.ast, input.program), stores_(input.ast, input.program) {}

  void run() {
    for (const Stmt& stmt : ast_.statements) {
      if (!stmt.target.valid() || !stmt.value.valid()) continue;
      const EntityId sum = stores_.rootOf(stmt.target);
      if (!sum.valid()) continue;
      const ExprId added = addend(stmt);
      if (!added.valid() || !e_.isFloat(added)) continue;
      const ExprId exponential = exponentialIn(added);
      if (!exponential.valid() || !isRaw(e_.exponent(exponential), 4)) continue;
      const auto use = dividedBy(sum);
      if (!use) continue;
      const std::string_view x = reporter_.text(ast_[e_.exponent(exponential)].span);
      report(ast_[e_.resolve(exponential)].span,
             fmt::format("exponentials are summed and divided by their sum without subtracting the maximum: they are infinite, and the "
                         "quotient is NaN, from "
                         "'{}' = 88.8 on",
                         x),
             fmt::format("find the maximum m first and write exp({} - m)", x), {reporter_.note(*use, "their sum is used here")});
    }
    for (size_t i = 0; i < ast_.expressions.size(); ++i) {
      const ExprId id(i);
      if (ast_[id].kind == ExprKind::Binary && ast_[id].binary == BinaryOp::Div && e_.isRuntime(id)) visitQuotient(id);
    }
  }

 private:
  /// exp(a) / (exp(a) + exp(b))
  void visitQuotient(ExprId id) {
    const ExprId x = e_.exponent(ast_[id].left);
    if (!x.valid() || !isRaw(x, 4)) return;
    size_t exponentials = 0;
    for (ExprId at = e_.resolve(ast_[id].right); at.valid();) {
      const Expr* sum = e_.operation(at, BinaryOp::Add);
      ExprId term = sum == nullptr ? at : sum->right;
      if (ast_[term].kind == ExprKind::Member) term = ast_[term].left;
      exponentials += e_.exponent(term).valid();
      at = sum == nullptr ? ExprId() : sum->left;
    }
    if (exponentials < 2) return;
    report(operatorSpan(ast_, id),
           fmt::format("a softmax without subtracting the maximum is NaN from '{}' = 88.8 on", reporter_.text(ast_[x].span)),
           "subtract the largest of the arguments from each of them first");
  }

  /// v of s += v and s = s + v.
  [[nodiscard]] ExprId addend(const Stmt& stmt) const {
    if (stmt.kind == StmtKind::CompoundAssign) return stmt.op == BinaryOp::Add ? stmt.value : ExprId();
    const Expr& value = ast_[stmt.value];
    if (stmt.kind != StmtKind::Assign || value.kind != ExprKind::Binary || value.binary != BinaryOp::Add) return {};
    if (e_.same(value.left, stmt.target)) return value.right;
    return e_.same(value.right, stmt.target) ? value.left : ExprId();
  }

  /// The call of exp() that made a value, perhaps by way of an array.
  [[nodiscard]] ExprId exponentialIn(ExprId id) const {
    if (e_.exponent(id).valid()) return id;
    const ExprId meaning = e_.resolve(id);
    const EntityId root = stores_.rootOf(meaning);
    if (!root.valid() || stores_.holdsMatrices(root)) return {};
    for (const StoredValue& each : stores_.of(root)) {
      if (!each.op && e_.exponent(each.value).valid()) return each.value;
    }
    return {};
  }

  /// Whether nothing was subtracted from x and nothing bounds it, as far as can be seen.
  [[nodiscard]] bool isRaw(ExprId x, int depth) const {
    if (depth == 0) return false;
    return !e_.any(x, [&](ExprId id) {
      const Expr& expr = ast_[id];
      if (!e_.isRuntime(id)) return e_.number(id).value_or(0) < 0;
      if (const EntityId root = stores_.rootOf(id); root.valid() && stores_.holdsMatrices(root)) return true;
      if (!e_.isFloat(id)) return false;  // indices
      if (expr.kind == ExprKind::Unary) return expr.unary == UnaryOp::Negate;
      if (expr.kind == ExprKind::Binary) return expr.binary == BinaryOp::Sub;
      if (expr.kind == ExprKind::Call) {
        return program_[id].call == CallKind::Function || (program_[id].call == CallKind::Builtin && program_[id].builtin != Builtin::Dot);
      }
      if (expr.kind != ExprKind::Identifier) return false;
      const EntityId entity = program_[id].entity;
      if (!entity.valid() || program_[entity].kind == EntityKind::Parameter) return true;
      if (program_[entity].kind != EntityKind::Var) return false;
      return std::ranges::any_of(stores_.of(entity), [&](const StoredValue& each) {
        return (each.op && (*each.op == BinaryOp::Sub || *each.op == BinaryOp::Div)) ||
               (each.value.valid() && !e_.exponent(each.value).valid() && !isRaw(each.value, depth - 1));
      });
    });
  }

  /// Where a sum, or a copy of it, is divided by, or its logarithm taken.
  [[nodiscard]] std::optional<Span> dividedBy(EntityId sum) const {
    std::set<EntityId> sums{sum};
    const auto isSum = [&](ExprId id) {
      const EntityId root = stores_.rootOf(e_.resolve(id));
      return root.valid() && sums.contains(root);
    };
    for (int round = 0; round < 3; ++round) {
      for (const Stmt& stmt : ast_.statements) {
        if (stmt.kind == StmtKind::Assign && isSum(stmt.value)) {
          if (const EntityId root = stores_.rootOf(stmt.target); root.valid()) sums.insert(root);
        }
      }
    }
    for (size_t i = 0; i < ast_.expressions.size(); ++i) {
      const Expr& expr = ast_.expressions[i];
      if (expr.kind == ExprKind::Binary && expr.binary == BinaryOp::Div && isSum(expr.right)) return operatorSpan(ast_, ExprId(i));
      const bool log = program_.expressions[i].call == CallKind::Builtin && program_.expressions[i].builtin == Builtin::Log;
      if (log && isSum(expr.arguments[0])) return expr.span;
    }
    for (const Stmt& stmt : ast_.statements) {
      if (stmt.kind == StmtKind::CompoundAssign && stmt.op == BinaryOp::Div && isSum(stmt.value)) return stmt.span;
    }
    return std::nullopt;
  }

  void report(Span where, std::string message, const std::string& remedy, std::vector<Note> notes = {}) {
    reporter_.report(DiagnosticRule::UnstableFormula, where, std::move(message), remedy, std::move(notes));
  }

  const Ast& ast_;
  const Program& program_;
  LintReporter& reporter_;
  Expressions e_;
  Stores stores_;
};

}  // namespace

void lintSoftmax(const LintInput& input, LintReporter& reporter) {
  const bool has_exp = std::ranges::any_of(input.program.expressions, [](const ExprInfo& x) {
    return x.call == CallKind::Builtin && (x.builtin == Builtin::Exp || x.builtin == Builtin::Exp2);
  });
  if (has_exp) Softmax(input, reporter).run();
}

}  // namespace lockstep::wgsl
