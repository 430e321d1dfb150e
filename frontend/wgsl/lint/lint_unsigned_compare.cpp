// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "frontend/wgsl/lint/expressions.h"
#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

/// Comparisons of an unsigned number with zero, or with the largest one, on its right side that have one answer.
std::optional<bool> answer(BinaryOp op, bool is_zero) {
  if (op == (is_zero ? BinaryOp::Ge : BinaryOp::Le)) return true;
  if (op == (is_zero ? BinaryOp::Lt : BinaryOp::Gt)) return false;
  return std::nullopt;
}

BinaryOp mirrored(BinaryOp op) {
  if (op == BinaryOp::Le) return BinaryOp::Ge;
  if (op == BinaryOp::Ge) return BinaryOp::Le;
  if (op == BinaryOp::Lt) return BinaryOp::Gt;
  return op == BinaryOp::Gt ? BinaryOp::Lt : op;
}

/// Zero, or a vector of zeros.
bool isZero(const ConstValue& value) {
  if (value.elements == nullptr) return value.integer == 0 && value.number == 0;
  return std::ranges::all_of(*value.elements, isZero);
}

class UnsignedCompare {
 public:
  UnsignedCompare(const LintInput& input, LintReporter& reporter)
      : ast_(input.ast), program_(input.program), reporter_(reporter), expressions_(input.ast, input.program) {}

  void run() {
    for (size_t i = 0; i < ast_.expressions.size(); ++i) {
      const ExprId id(i);
      if (!expressions_.isRuntime(id)) continue;
      if (ast_[id].kind == ExprKind::Binary) visitOperator(id);
      if (program_[id].call == CallKind::Builtin && program_[id].builtin == Builtin::Max) visitMax(id);
    }
  }

 private:
  void visitOperator(ExprId id) {
    const Expr& expr = ast_[id];
    if (expr.binary < BinaryOp::Lt || expr.binary > BinaryOp::Ge || !expressions_.isUnsigned(expr.left)) return;
    for (const bool on_right : {true, false}) {
      const ExprId number = on_right ? expr.right : expr.left, other = on_right ? expr.left : expr.right;
      const bool zero = isZeroLiteral(number);
      if (!zero && !(expressions_.isLiteral(number) && expressions_.isNumber(number, UINT32_MAX))) continue;
      const auto always = answer(on_right ? expr.binary : mirrored(expr.binary), zero);
      // Compilers write `0u > x` in values, where an index of any type is tested.
      if (!always || (expr.binary == BinaryOp::Gt && !on_right && !isInCondition(expr.span))) continue;
      const std::string_view name = reporter_.text(ast_[other].span);
      report(operatorSpan(ast_, id),
             fmt::format("'{}' is always {}: '{}' is unsigned", reporter_.text(operatorSpan(ast_, id)), *always, name),
             fmt::format(
                 "compare before subtracting ('a >= b' and not 'a - b >= 0'), use i32, or count '{}' down from the end with '> 0u' and "
                 "use it minus one",
                 name));
      return;
    }
  }

  void visitMax(ExprId id) {
    const ExprList arguments = ast_[id].arguments;
    for (const size_t k : {0u, 1u}) {
      if (!expressions_.isUnsigned(id) || !isZeroLiteral(arguments[k])) continue;
      const std::string_view name = reporter_.text(ast_[arguments[1 - k]].span);
      report(ast_[id].span, fmt::format("'{}' is '{}', which is unsigned", reporter_.text(ast_[id].span), name),
             "compute the number as i32 where it can be negative, or subtract only what is not larger");
      return;
    }
  }

  [[nodiscard]] bool isZeroLiteral(ExprId id) const {
    const ExprInfo& info = program_[id];
    return info.value && info.stage != Stage::Runtime && expressions_.isLiteral(id) && isZero(*info.value);
  }

  [[nodiscard]] bool isInCondition(Span span) const {
    return std::ranges::any_of(ast_.statements, [&](const Stmt& stmt) {
      const bool tests = stmt.kind == StmtKind::If || stmt.kind == StmtKind::While || stmt.kind == StmtKind::For;
      return tests && stmt.condition.valid() && span.begin >= ast_[stmt.condition].span.begin && span.end <= ast_[stmt.condition].span.end;
    });
  }

  void report(Span where, std::string message, const std::string& remedy) {
    reporter_.report(DiagnosticRule::UnsignedCompare, where, std::move(message), remedy);
  }

  const Ast& ast_;
  const Program& program_;
  LintReporter& reporter_;
  Expressions expressions_;
};

}  // namespace

void lintUnsignedCompare(const LintInput& input, LintReporter& reporter) { UnsignedCompare(input, reporter).run(); }

}  // namespace lockstep::wgsl
