// SPDX-License-Identifier: Apache-2.0
// Formulas that are right in real numbers and lose all digits, or overflow, in floats. What a condition around keeps away from the bad
// numbers is not reported.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "frontend/wgsl/lint/expressions.h"
#include "frontend/wgsl/lint/lints.h"
#include "frontend/wgsl/lint/stores.h"

namespace lockstep::wgsl {
namespace {

constexpr std::array<std::string_view, 3> kSquareNames{"sq", "SQ", "Sq"};

class UnstableFormulas {
 public:
  UnstableFormulas(const LintInput& input, LintReporter& reporter)
      : ast_(input.ast), program_(input.program), reporter_(reporter), e_(input.ast, input.program), stores_(input.ast, input.program) {}

  void run() {
    if (!usesExpOrProducts()) return;
    findQuotients();
    for (size_t i = 0; i < ast_.functions.size(); ++i) {
      if (!program_.functions[i].valid || program_.functions[i].left_out) continue;
      conditions_.clear();
      visit(ast_.functions[i].body);
    }
  }

 private:
  [[nodiscard]] bool usesExpOrProducts() const {
    return std::ranges::any_of(program_.expressions,
                               [](const ExprInfo& x) {
                                 return x.call == CallKind::Builtin && (x.builtin == Builtin::Exp || x.builtin == Builtin::Exp2);
                               }) ||
           std::ranges::any_of(ast_.expressions, [](const Expr& x) { return x.kind == ExprKind::Binary && x.binary == BinaryOp::Sub; });
  }

  /// The divisions that have a difference as their dividend.
  void findQuotients() {
    for (size_t i = 0; i < ast_.expressions.size(); ++i) {
      const Expr& expr = ast_.expressions[i];
      if (expr.kind == ExprKind::Binary && expr.binary == BinaryOp::Div) quotients_.try_emplace(e_.resolve(expr.left).index(), ExprId(i));
    }
  }

  // The walk.

  void visit(StmtId id) {
    if (!id.valid()) return;
    const Stmt& stmt = ast_[id];
    const size_t mark = conditions_.size();
    visit(stmt.initializer);
    visitExpr(stmt.condition);
    visitExpr(stmt.target);
    visitExpr(stmt.value);
    if (stmt.kind == StmtKind::Declare) visitExpr(ast_.localOf(stmt).initializer);
    for (const StmtId inner : stmt.statements) {
      visit(inner);
      // Behind `if (x > 20) { return; }` x is known, too.
      if (ast_[inner].kind == StmtKind::If && leaves(ast_[inner].body)) conditions_.push_back(ast_[inner].condition);
    }
    if (stmt.condition.valid()) conditions_.push_back(stmt.condition);
    visit(stmt.body);
    visit(stmt.otherwise);
    visit(stmt.continuing);
    visit(stmt.update);
    for (const CaseClause& clause : stmt.cases) visit(clause.body);
    conditions_.resize(mark);
  }

  [[nodiscard]] bool leaves(StmtId block) const {
    const StmtList statements = ast_[block].statements;
    const StmtKind last = statements.empty() ? StmtKind::Block : ast_[statements.back()].kind;
    return last == StmtKind::Return || last == StmtKind::Break || last == StmtKind::Continue;
  }

  void visitExpr(ExprId id) {
    while (id.valid()) {
      const Expr& expr = ast_[id];
      if (e_.isRuntime(id)) inspect(id);
      const size_t mark = conditions_.size();
      const bool selects = program_[id].call == CallKind::Builtin && program_[id].builtin == Builtin::Select && expr.arguments.size() == 3;
      if (selects) conditions_.push_back(expr.arguments[2]);
      for (const ExprId argument : expr.arguments) visitExpr(argument);
      if (expr.kind == ExprKind::Binary && (expr.binary == BinaryOp::LogicalAnd || expr.binary == BinaryOp::LogicalOr)) {
        conditions_.push_back(expr.left);
      }
      visitExpr(expr.right);
      conditions_.resize(mark);
      id = expr.left;
    }
  }

  void inspect(ExprId id) {
    const ExprInfo& info = program_[id];
    if (info.call == CallKind::Builtin && (info.builtin == Builtin::Log || info.builtin == Builtin::Log2)) visitLog(id);
    if (ast_[id].kind == ExprKind::Binary && ast_[id].binary == BinaryOp::Div) visitQuotient(id);
    if (ast_[id].kind == ExprKind::Binary && ast_[id].binary == BinaryOp::Sub && e_.isFloat(id)) {
      visitMinusOne(id);
      visitVariance(id);
    }
  }

  // exp

  /// x of 1 + exp(x), in either order.
  [[nodiscard]] ExprId exponentBesideOne(ExprId id) const {
    const Expr* sum = e_.operation(id, BinaryOp::Add);
    if (sum == nullptr) return {};
    if (e_.isNumber(sum->left, 1)) return e_.exponent(sum->right);
    return e_.isNumber(sum->right, 1) ? e_.exponent(sum->left) : ExprId();
  }

  void visitLog(ExprId id) {
    const ExprId argument = ast_[id].arguments[0];
    if (const ExprId x = exponentBesideOne(argument); x.valid()) {
      if (isBounded(x) || isGuarded(x, false)) return;
      const std::string_view name = reporter_.text(ast_[x].span);
      report(ast_[id].span, fmt::format("'{}' is infinite from {} = 88.8 on, and 0 below -17", reporter_.text(ast_[id].span), name),
             fmt::format("write max({0}, 0.0) + log(1.0 + exp(-abs({0})))", name));
      return;
    }
    const Expr* quotient = e_.operation(argument, BinaryOp::Div);
    if (quotient == nullptr) return;
    if (const ExprId x = e_.exponent(quotient->left); x.valid()) {
      report(ast_[id].span, fmt::format("the logarithm of a quotient of exponentials is minus infinity where the quotient is below 1e-38"),
             fmt::format("write '{} - log(...)' with the logarithm of the divisor", reporter_.text(ast_[x].span)));
    } else if (const ExprId y = exponentBesideOne(quotient->right);
               y.valid() && e_.isNumber(quotient->left, 1) && !isBounded(y) && !isGuarded(y, false)) {
      const std::string_view name = reporter_.text(ast_[y].span);
      report(ast_[id].span, fmt::format("the logarithm of a sigmoid is minus infinity from {} = 88.8 on", name),
             fmt::format("write -(max({0}, 0.0) + log(1.0 + exp(-abs({0}))))", name));
    }
  }

  /// exp(x) / (1 + exp(x))
  void visitQuotient(ExprId id) {
    const Expr& expr = ast_[id];
    const ExprId x = e_.exponent(expr.left), again = x.valid() ? exponentBesideOne(expr.right) : ExprId();
    if (!again.valid() || !e_.same(again, x) || isBounded(x) || isGuarded(x, false)) return;
    const std::string_view name = reporter_.text(ast_[x].span);
    report(operatorSpan(ast_, id), fmt::format("this sigmoid is NaN from '{}' = 88.8 on", name),
           fmt::format("write 1.0 / (1.0 + exp(-({})))", name));
  }

  void visitMinusOne(ExprId id) {
    const Expr& expr = ast_[id];
    const ExprId x = e_.isNumber(expr.right, 1) ? e_.exponent(expr.left) : ExprId();
    if (!x.valid() || isGuarded(x, true)) return;
    const std::string_view name = reporter_.text(ast_[x].span);
    const auto quotient = quotients_.find(id.index());
    const ExprId divisor = quotient == quotients_.end() ? ExprId() : ast_[quotient->second].right;
    const std::string series =
        fmt::format("for abs({0}) < 0.1 take {0} * (1.0 + {0} * (0.5 + {0} * (0.1666667 + {0} * 0.04166667)))", name);
    const std::string text(reporter_.text(operatorSpan(ast_, id)));
    if (divisor.valid() && e_.same(e_.resolve(divisor), e_.resolve(x))) {
      report(operatorSpan(ast_, id), fmt::format("'{}' loses all digits for small '{}', and its quotient is NaN for 0", text, name),
             series + ", divided by it");
      return;
    }
    if (const ExprId again = divisor.valid() ? exponentBesideOne(divisor) : ExprId(); again.valid() && e_.same(again, x)) {
      report(operatorSpan(ast_, id), fmt::format("this formula of tanh is NaN for large '{}', and loses all digits for small ones", name),
             fmt::format("write tanh(0.5 * ({}))", name));
      return;
    }
    report(operatorSpan(ast_, id), fmt::format("'{}' loses all digits for small '{}'", text, name), series);
  }

  /// Whether x is sure to be no large number.
  [[nodiscard]] bool isBounded(ExprId id) const {
    id = e_.resolve(id);
    const Expr& expr = ast_[id];
    if (!e_.isRuntime(id)) return true;
    if (expr.kind == ExprKind::Unary && expr.unary == UnaryOp::Negate) return isPositive(expr.left);
    if (program_[id].call == CallKind::Builtin) {
      constexpr std::array kBounded{Builtin::Min, Builtin::Clamp, Builtin::Saturate, Builtin::Tanh,
                                    Builtin::Sin, Builtin::Cos,   Builtin::Select};
      return std::ranges::find(kBounded, program_[id].builtin) != kBounded.end();
    }
    if (expr.kind != ExprKind::Binary) return false;
    if (expr.binary == BinaryOp::Mul || expr.binary == BinaryOp::Div) {
      const auto number = e_.number(expr.left);
      return (number && *number < 0 && isPositive(expr.right)) ||
             (expr.binary == BinaryOp::Mul && e_.number(expr.right).value_or(0) < 0 && isPositive(expr.left)) ||
             (isBounded(expr.left) && !isPositive(expr.left));
    }
    // A maximum or the larger of two was subtracted.
    return expr.binary == BinaryOp::Sub &&
           (e_.call(expr.right, Builtin::Max) != nullptr || isMaximum(expr.right) || e_.call(expr.left, Builtin::Min) != nullptr);
  }

  /// A variable in which max() is stored, or that is called so.
  [[nodiscard]] bool isMaximum(ExprId id) const {
    id = e_.resolve(id);
    const EntityId root = stores_.rootOf(id);
    if (!root.valid()) return e_.call(id, Builtin::Max) != nullptr;
    const std::string& name = program_[root].name;
    return name.find("max") != std::string::npos || name.find("Max") != std::string::npos || name.find("MAX") != std::string::npos ||
           std::ranges::any_of(stores_.of(root), [&](const StoredValue& each) { return e_.call(each.value, Builtin::Max) != nullptr; });
  }

  [[nodiscard]] bool isPositive(ExprId id) const {
    id = e_.resolve(id);
    const Expr& expr = ast_[id];
    if (const auto number = e_.number(id)) return *number >= 0;
    constexpr std::array kPositive{Builtin::Abs, Builtin::Sqrt, Builtin::Length,   Builtin::Distance,
                                   Builtin::Exp, Builtin::Exp2, Builtin::Saturate, Builtin::Max};
    if (program_[id].call == CallKind::Builtin) {
      if (program_[id].builtin == Builtin::Dot) return e_.same(expr.arguments[0], expr.arguments[1]);
      return std::ranges::find(kPositive, program_[id].builtin) != kPositive.end();
    }
    if (expr.kind != ExprKind::Binary) return false;
    if (expr.binary == BinaryOp::Mul && e_.same(expr.left, expr.right)) return true;
    return (expr.binary == BinaryOp::Mul || expr.binary == BinaryOp::Div || expr.binary == BinaryOp::Add) && isPositive(expr.left) &&
           isPositive(expr.right);
  }

  /// Whether a condition around compares x, or a part of it, with a number; `other_than_zero`: one that keeps it away from 0.
  [[nodiscard]] bool isGuarded(ExprId x, bool other_than_zero) const {
    constexpr size_t kNearest = 64;
    const auto near = std::span(conditions_).last(std::min(conditions_.size(), kNearest));
    return std::ranges::any_of(near, [&](ExprId condition) {
      return e_.any(condition, [&](ExprId id) {
        const Expr& expr = ast_[id];
        if (expr.kind != ExprKind::Binary || expr.binary < BinaryOp::Eq || expr.binary > BinaryOp::Ge || !e_.isFloat(expr.left))
          return false;
        const bool constant = !e_.isRuntime(expr.left) || !e_.isRuntime(expr.right);
        const ExprId side = e_.isRuntime(expr.left) ? expr.left : expr.right, number = e_.isRuntime(expr.left) ? expr.right : expr.left;
        if (other_than_zero && (!constant || e_.isNumber(number, 0))) return false;
        return shares(side, x);
      });
    });
  }

  /// Whether a variable, or an element, is in both.
  [[nodiscard]] bool shares(ExprId a, ExprId b) const {
    return e_.any(a, [&](ExprId part) {
      const ExprKind kind = ast_[part].kind;
      const bool value = e_.isRuntime(part) && (kind == ExprKind::Identifier || kind == ExprKind::Index || kind == ExprKind::Member);
      return value && e_.isFloat(part) && e_.contains(b, part);
    });
  }

  // E[x^2] - E[x]^2

  /// The operand of m * m or pow(m, 2).
  [[nodiscard]] ExprId squared(ExprId id) const {
    if (const Expr* product = e_.operation(id, BinaryOp::Mul); product != nullptr && e_.same(product->left, product->right))
      return product->left;
    const Expr* power = e_.call(id, Builtin::Pow);
    return power != nullptr && e_.isNumber(power->arguments[1], 2) ? power->arguments[0] : ExprId();
  }

  /// Dividend and divisor of a mean: s / n, or s * inverse.
  struct Mean {
    ExprId sum, count;
  };
  [[nodiscard]] std::optional<Mean> meanOf(ExprId id) const {
    const Expr* quotient = e_.operation(id, BinaryOp::Div);
    if (quotient == nullptr) quotient = e_.operation(id, BinaryOp::Mul);
    return quotient == nullptr ? std::nullopt : std::optional(Mean{.sum = quotient->left, .count = quotient->right});
  }

  void visitVariance(ExprId id) {
    const Expr& expr = ast_[id];
    const ExprId mean = squared(expr.right);
    const auto squares = meanOf(expr.left), values = mean.valid() ? meanOf(mean) : std::nullopt;
    bool found = squares && values && e_.same(e_.resolve(squares->count), e_.resolve(values->count)) && sumsSquares(squares->sum);
    // sum(x^2) - sum(x)^2 / n
    if (const auto product = meanOf(expr.right); !found && product && squared(product->sum).valid()) found = sumsSquares(expr.left);
    // Means that were computed in place, or elsewhere.
    if (!found && mean.valid()) found = isCalledMean(mean) && (sumsSquares(expr.left) || (squares && sumsSquares(squares->sum)));
    if (!found) return;
    report(operatorSpan(ast_, id),
           fmt::format("'{}' is a variance that cancels: where the mean is large, no digit of it is right, and it may be negative",
                       reporter_.text(operatorSpan(ast_, id))),
           "sum the squares of (x - mean) in a second pass, or use Welford's update");
  }

  [[nodiscard]] bool isCalledMean(ExprId id) const {
    const EntityId root = stores_.rootOf(id);
    const std::string name = ast_[id].kind == ExprKind::Identifier ? std::string(ast_[id].name) : root.valid() ? program_[root].name : "";
    return name.find("mean") != std::string::npos || name.find("avg") != std::string::npos || name == "mu" ||
           name.find("average") != std::string::npos;
  }

  [[nodiscard]] bool sumsSquares(ExprId id) const {
    if (ast_[id].kind == ExprKind::Identifier && isNamedSquare(ast_[id].name)) return true;
    id = e_.resolve(id);
    const EntityId root = stores_.rootOf(id);
    if (!root.valid()) return false;
    return isNamedSquare(program_[root].name) || std::ranges::any_of(stores_.of(root), [&](const StoredValue& each) {
             if (each.op && *each.op != BinaryOp::Add) return false;
             if (isSquare(each.value)) return each.op.has_value();
             const Expr* sum = e_.operation(each.value, BinaryOp::Add);
             if (sum != nullptr && !each.op && (isSquare(sum->left) || isSquare(sum->right))) return true;
             const Expr* fused = e_.call(each.value, Builtin::Fma);
             return fused != nullptr && e_.same(fused->arguments[0], fused->arguments[1]);
           });
  }

  static bool isNamedSquare(std::string_view name) {
    return std::ranges::any_of(kSquareNames, [&](std::string_view part) { return name.find(part) != std::string_view::npos; }) &&
           name.find("sqrt") == std::string_view::npos;
  }

  [[nodiscard]] bool isSquare(ExprId id) const {
    if (squared(id).valid()) return true;
    const Expr* dot = e_.call(id, Builtin::Dot);
    return dot != nullptr && e_.same(dot->arguments[0], dot->arguments[1]);
  }

  void report(Span where, std::string message, const std::string& remedy, std::vector<Note> notes = {}) {
    reporter_.report(DiagnosticRule::UnstableFormula, where, std::move(message), remedy, std::move(notes));
  }

  const Ast& ast_;
  const Program& program_;
  LintReporter& reporter_;
  Expressions e_;
  Stores stores_;
  std::map<size_t, ExprId> quotients_;  // by the expression of the dividend
  std::vector<ExprId> conditions_;      // around the place of the walk
};

}  // namespace

void lintUnstableFormulas(const LintInput& input, LintReporter& reporter) { UnstableFormulas(input, reporter).run(); }

}  // namespace lockstep::wgsl
