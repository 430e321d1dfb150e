// SPDX-License-Identifier: Apache-2.0
// Operators and functions whose operands are the same, so that the result is known or one of them is not what was meant.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "frontend/wgsl/lint/expressions.h"
#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

struct OperatorRow {
  BinaryOp op;
  std::string_view result;        ///< "is always <result>"; empty: the operand itself
  std::string_view float_result;  ///< the same of floats; "-" stands for an idiom that is left alone
};

constexpr std::array<OperatorRow, 14> kOperators{{
    {BinaryOp::Sub, "0", "0, or NaN where the operand is not finite"},
    {BinaryOp::Div, "1, or 0 where the operand is 0", "1, or NaN where the operand is 0 or not finite"},
    {BinaryOp::Rem, "0", "0, or NaN where the operand is 0 or not finite"},
    {BinaryOp::And, "", ""},
    {BinaryOp::Or, "", ""},
    {BinaryOp::Xor, "0", "0"},
    {BinaryOp::Eq, "true", "true, or false for a NaN, of which WGSL lets an implementation assume that there is none"},
    {BinaryOp::Ne, "false", "-"},  // a test for NaN
    {BinaryOp::Lt, "false", "false"},
    {BinaryOp::Le, "true", "true, or false for a NaN"},
    {BinaryOp::Gt, "false", "false"},
    {BinaryOp::Ge, "true", "true, or false for a NaN"},
    {BinaryOp::LogicalAnd, "", ""},
    {BinaryOp::LogicalOr, "", ""},
}};

/// Functions of which two arguments, from this one on, should not be the same.
constexpr std::array<std::pair<Builtin, size_t>, 7> kSelfBuiltins{{{Builtin::Min, 0},
                                                                   {Builtin::Max, 0},
                                                                   {Builtin::Mix, 0},
                                                                   {Builtin::Select, 0},
                                                                   {Builtin::Distance, 0},
                                                                   {Builtin::Cross, 0},
                                                                   {Builtin::Clamp, 1}}};

/// Nothing is said of longer chains of `else if` and longer blocks, so that time stays linear in the text.
constexpr size_t kLongestChain = 64;
constexpr uint32_t kLongestBlock = 2000;

class IdenticalOperands {
 public:
  IdenticalOperands(const LintInput& input, LintReporter& reporter)
      : ast_(input.ast), program_(input.program), reporter_(reporter), expressions_(input.ast, input.program) {}

  void run() {
    for (size_t i = 0; i < ast_.expressions.size(); ++i) {
      const ExprId id(i);
      if (!expressions_.isRuntime(id)) continue;
      if (ast_[id].kind == ExprKind::Binary) visitOperator(id);
      if (program_[id].call == CallKind::Builtin) visitCall(id);
    }
    for (const Stmt& stmt : ast_.statements) {
      if (stmt.kind == StmtKind::If) visitIf(stmt);
      if (stmt.kind == StmtKind::Assign && expressions_.same(stmt.target, stmt.value)) {
        report(stmt.span, fmt::format("'{}' is stored in itself", reporter_.text(ast_[stmt.target].span)));
      }
    }
  }

 private:
  void visitOperator(ExprId id) {
    const Expr& expr = ast_[id];
    const auto* row = std::ranges::find(kOperators, expr.binary, &OperatorRow::op);
    if (row == kOperators.end() || !expressions_.same(expr.left, expr.right)) return;
    const std::string_view result = expressions_.isFloat(expr.left) ? row->float_result : row->result;
    if (result == "-") return;
    const Span where = operatorSpan(ast_, id);
    const std::string_view operand = reporter_.text(ast_[expr.left].span);
    report(where, result.empty() ? fmt::format("'{}' is '{}': both operands of '{}' are the same", reporter_.text(where), operand,
                                               toString(expr.binary))
                                 : fmt::format("both operands of '{}' are '{}': the result is {}", toString(expr.binary), operand, result));
  }

  void visitCall(ExprId id) {
    const Expr& call = ast_[id];
    const Builtin builtin = program_[id].builtin;
    const auto* row = std::ranges::find(kSelfBuiltins, builtin, &std::pair<Builtin, size_t>::first);
    if (row == kSelfBuiltins.end() || !expressions_.same(call.arguments[row->second], call.arguments[row->second + 1])) return;
    const bool is_zero = builtin == Builtin::Distance || builtin == Builtin::Cross;
    const std::string_view argument = reporter_.text(ast_[call.arguments[row->second]].span);
    report(call.span, fmt::format("two arguments of '{}' are '{}': the result is {}", call.name, argument, is_zero ? "0" : "the same"));
  }

  void visitIf(const Stmt& stmt) {
    if (!stmt.otherwise.valid()) return;
    const Stmt& otherwise = ast_[stmt.otherwise];
    const bool compares = otherwise.kind == StmtKind::Block && !ast_[stmt.body].statements.empty() &&
                          otherwise.span.end - otherwise.span.begin < kLongestBlock;
    if (compares && words(stmt.body) == words(stmt.otherwise)) {
      report(ast_[stmt.condition].span, "both branches of this 'if' are the same",
             {reporter_.note(otherwise.span, "the second branch is here")});
    }
    if (!expressions_.isRuntime(stmt.condition)) return;
    // Between the two conditions nothing is evaluated.
    StmtId next = stmt.otherwise;
    for (size_t k = 0; k < kLongestChain && next.valid() && ast_[next].kind == StmtKind::If; ++k, next = ast_[next].otherwise) {
      if (!expressions_.same(stmt.condition, ast_[next].condition)) continue;
      report(ast_[ast_[next].condition].span, "this condition was tested before and is false here",
             {reporter_.note(ast_[stmt.condition].span, "it is tested here")});
      return;
    }
  }

  /// The text of a block without spaces and comments.
  std::string words(StmtId block) const {
    const std::string text(reporter_.text(ast_[block].span));
    const Source source(text, "");
    Reporter silent(source);
    std::string joined;
    for (const Token& token : tokenize(source, silent)) joined.append(token.text).append(" ");
    return joined;
  }

  void report(Span where, std::string message, std::vector<Note> notes = {}) {
    reporter_.report(DiagnosticRule::IdenticalOperands, where, std::move(message), "write what was meant, or only what is left of it",
                     std::move(notes));
  }

  const Ast& ast_;
  const Program& program_;
  LintReporter& reporter_;
  Expressions expressions_;
};

}  // namespace

void lintIdenticalOperands(const LintInput& input, LintReporter& reporter) { IdenticalOperands(input, reporter).run(); }

}  // namespace lockstep::wgsl
