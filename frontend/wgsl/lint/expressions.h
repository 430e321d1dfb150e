// SPDX-License-Identifier: Apache-2.0
// What lints ask about expressions: whether two are the same, what a name stands for, what a condition is about.
#pragma once

#include <optional>
#include <vector>

#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {

class Expressions {
 public:
  Expressions(const Ast& ast, const Program& program);

  /// Whether both are written alike and evaluating them again changes nothing and gives the same, as far as one invocation is concerned.
  [[nodiscard]] bool same(ExprId a, ExprId b) const;
  /// Whether it was checked, is evaluated at run time, and has a type.
  [[nodiscard]] bool isRuntime(ExprId id) const { return program_[id].stage == Stage::Runtime && program_[id].type != kError; }
  /// Neither names nor calls of user functions are in it: only literals, operators, constructors and builtin functions.
  [[nodiscard]] bool isLiteral(ExprId id) const;
  /// The number that a scalar constant is.
  [[nodiscard]] std::optional<double> number(ExprId id) const;
  [[nodiscard]] bool isNumber(ExprId id, double value) const { return number(id) == value; }
  /// What a `let`, or a local variable that is never stored to, was made of; the expression itself where it is no such name.
  [[nodiscard]] ExprId resolve(ExprId id) const;
  /// The call of this builtin that the expression is, by a name or not; null if it is something else.
  [[nodiscard]] const Expr* call(ExprId id, Builtin builtin) const;
  /// The argument of exp() or exp2(), likewise; invalid if the expression is neither.
  [[nodiscard]] ExprId exponent(ExprId id) const;
  [[nodiscard]] const Expr* operation(ExprId id, BinaryOp op) const;
  [[nodiscard]] bool isFloat(ExprId id) const;
  [[nodiscard]] bool isUnsigned(ExprId id) const;
  /// Whether the expression, or what its names stand for, has one that is the same as `part`.
  [[nodiscard]] bool contains(ExprId id, ExprId part) const;
  /// Calls `visit` with the expression and all that it and its names are made of, until it returns true. Whether it did.
  template <class Visit>
  bool any(ExprId id, const Visit& visit) const {
    uint32_t budget = kBudget;
    return any(id, visit, budget);
  }
  /// Looks at no more parts than this.
  static constexpr uint32_t kBudget = 400;

 private:
  template <class Visit>
  bool any(ExprId id, const Visit& visit, uint32_t& budget) const {
    if (budget == 0) return false;
    --budget;
    if (visit(id)) return true;
    const Expr& expr = ast_[id];
    if (const ExprId meaning = resolve(id); meaning != id) return any(meaning, visit, budget);
    if (expr.left.valid() && any(expr.left, visit, budget)) return true;
    if (expr.right.valid() && any(expr.right, visit, budget)) return true;
    for (const ExprId argument : expr.arguments) {
      if (any(argument, visit, budget)) return true;
    }
    return false;
  }
  bool same(ExprId a, ExprId b, uint32_t& budget) const;
  bool isLiteral(ExprId id, uint32_t& budget) const;

  const Ast& ast_;
  const Program& program_;
  std::vector<ExprId> meanings_;  // by entity
};

}  // namespace lockstep::wgsl
