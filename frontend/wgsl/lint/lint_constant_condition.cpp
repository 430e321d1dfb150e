// SPDX-License-Identifier: Apache-2.0
// Conditions that are always true or always false: written so, or by what is known of the numbers that they compare. What a named constant
// or an override decides is a setting and no mistake.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/lint/expressions.h"
#include "frontend/wgsl/lint/lints.h"
#include "frontend/wgsl/lint/range_walk.h"
#include "ir/kernel/queries.h"

namespace lockstep::wgsl {
namespace {

using kernel::Instruction;
using kernel::Op;
using kernel::Range;
using kernel::ValueId;

class ConstantConditions {
 public:
  ConstantConditions(const LintInput& input, LintReporter& reporter)
      : input_(input), ast_(input.ast), reporter_(reporter), expressions_(input.ast, input.program) {}

  void run() {
    for (const Stmt& stmt : ast_.statements) visit(stmt);
    for (size_t i = 0; i < ast_.expressions.size(); ++i) {
      const Expr& expr = ast_.expressions[i];
      const bool logical = expr.kind == ExprKind::Binary && (expr.binary == BinaryOp::LogicalAnd || expr.binary == BinaryOp::LogicalOr);
      if (logical && expressions_.isRuntime(ExprId(i))) visitLogical(ExprId(i));
      const ExprInfo& info = input_.program.expressions[i];
      if (info.call == CallKind::Builtin && info.builtin == Builtin::Select && ast_.expressions[i].arguments.size() == 3) {
        visitWritten(ast_.expressions[i].arguments[2], "select");
      }
    }
    // With overrides the numbers are those of the defaults.
    if (input_.module != nullptr && !input_.has_overrides) visitRanges(*input_.module);
  }

 private:
  void visit(const Stmt& stmt) {
    if (stmt.kind == StmtKind::If) visitWritten(stmt.condition, "if");
    if (stmt.kind == StmtKind::BreakIf) visitWritten(stmt.condition, "break if");
    if (stmt.kind == StmtKind::Switch) visitWritten(stmt.condition, "switch");
    const bool loop = stmt.kind == StmtKind::While || stmt.kind == StmtKind::For;
    // `while true` is how endless loops are written.
    if (loop && stmt.condition.valid() && isFalse(stmt.condition))
      visitWritten(stmt.condition, stmt.kind == StmtKind::For ? "for" : "while");
  }

  [[nodiscard]] bool isFalse(ExprId id) const {
    const auto& value = input_.program[id].value;
    return value && value->integer == 0;
  }

  void visitWritten(ExprId id, std::string_view what) {
    const ExprInfo& info = input_.program[id];
    if (info.stage != Stage::Const || !info.value || !expressions_.isLiteral(id) || !input_.program.types.isScalar(info.value->type))
      return;
    const bool is_bool = info.value->type == kBool;
    const std::string value = is_bool ? (info.value->integer != 0 ? "true" : "false") : std::to_string(info.value->integer);
    report(ast_[id].span, fmt::format("the condition of this '{}' is always {}", what, value), {});
  }

  /// A comparison with a number: `expr op number`.
  struct Compared {
    ExprId expr;
    BinaryOp op;
    double number;
  };
  [[nodiscard]] std::optional<Compared> comparedWithNumber(ExprId id) const {
    constexpr std::array<std::pair<BinaryOp, BinaryOp>, 6> kMirrored{{{BinaryOp::Lt, BinaryOp::Gt},
                                                                      {BinaryOp::Le, BinaryOp::Ge},
                                                                      {BinaryOp::Gt, BinaryOp::Lt},
                                                                      {BinaryOp::Ge, BinaryOp::Le},
                                                                      {BinaryOp::Eq, BinaryOp::Eq},
                                                                      {BinaryOp::Ne, BinaryOp::Ne}}};
    const Expr& expr = ast_[id];
    const auto* mirrored = std::ranges::find(kMirrored, expr.binary, &std::pair<BinaryOp, BinaryOp>::first);
    if (expr.kind != ExprKind::Binary || mirrored == kMirrored.end()) return std::nullopt;
    if (const auto number = expressions_.number(expr.right)) return Compared{expr.left, expr.binary, *number};
    if (const auto number = expressions_.number(expr.left)) return Compared{expr.right, mirrored->second, *number};
    return std::nullopt;
  }

  /// Whether no number fits both.
  static bool exclude(const Compared& a, const Compared& b) {
    const auto fits = [](const Compared& c, double x) {
      if (c.op == BinaryOp::Eq) return x == c.number;
      if (c.op == BinaryOp::Ne) return x != c.number;
      if (c.op == BinaryOp::Lt) return x < c.number;
      if (c.op == BinaryOp::Le) return x <= c.number;
      return c.op == BinaryOp::Gt ? x > c.number : x >= c.number;
    };
    // What both allow, if anything, has a number at, between or beside the two.
    const double low = std::min(a.number, b.number), high = std::max(a.number, b.number);
    return std::ranges::none_of(std::array{low - 1, low, 0.5 * (low + high), high, high + 1},
                                [&](double x) { return fits(a, x) && fits(b, x); });
  }

  static Compared opposite(Compared c) {
    constexpr std::array kPairs{std::pair(BinaryOp::Lt, BinaryOp::Ge), std::pair(BinaryOp::Le, BinaryOp::Gt),
                                std::pair(BinaryOp::Eq, BinaryOp::Ne)};
    for (const auto& [one, other] : kPairs) {
      if (c.op == one || c.op == other) {
        c.op = c.op == one ? other : one;
        return c;
      }
    }
    return c;
  }

  /// a < 1 && a > 2, and a != 1 || a != 2, of the last two of a chain.
  void visitLogical(ExprId id) {
    const Expr& expr = ast_[id];
    const bool is_and = expr.binary == BinaryOp::LogicalAnd;
    const auto right = comparedWithNumber(expr.right);
    if (!right) return;
    ExprId at = expr.left;
    for (int k = 0; k < 8; ++k) {
      const bool chain = ast_[at].kind == ExprKind::Binary && ast_[at].binary == expr.binary;
      const auto left = comparedWithNumber(chain ? ast_[at].right : at);
      // A NaN fits no comparison: what is always true of numbers may be false of it.
      if (left && expressions_.same(left->expr, right->expr) && (is_and || !expressions_.isFloat(right->expr)) &&
          exclude(is_and ? *left : opposite(*left), is_and ? *right : opposite(*right))) {
        const Span where = operatorSpan(ast_, id);
        report(where, fmt::format("'{}' is always {}", reporter_.text(where), !is_and), {});
        return;
      }
      if (!chain) return;
      at = ast_[at].left;
    }
  }

  void visitRanges(const kernel::Module& module) {
    RangeWalk walk(module);
    walk.run([&](const Instruction& x, const kernel::ValueRanges& ranges) {
      if (x.op == Op::Switch) visitCases(x, ranges.rangeOf(x.operands[0]));
      const bool compares = x.op == Op::Lt || x.op == Op::Le || x.op == Op::Gt || x.op == Op::Ge || x.op == Op::Eq || x.op == Op::Ne;
      if (!compares || !isInteger(module, x.operands[0])) return;
      const Range a = ranges.rangeOf(x.operands[0]), b = ranges.rangeOf(x.operands[1]);
      if (a.low > a.high || b.low > b.high) return;  // nobody gets here
      const auto always = decided(x.op, a, b);
      // What the type alone decides is lint.unsigned_compare's, what is written twice lint.identical_operands'.
      const Range whole_a = wholeRange(module, x.operands[0]), whole_b = wholeRange(module, x.operands[1]);
      const Range known_a = isConstant(module, x.operands[0]) ? a : whole_a, known_b = isConstant(module, x.operands[1]) ? b : whole_b;
      if (!always || decided(x.op, known_a, known_b)) return;
      const bool guard = isGuard(x.op, *always, a, b) && !endsLoop(x);
      if (guard && !guardsWork(x, *always)) return;
      reportComparison(x, *always, a, b, guard);
    });
  }

  void visitCases(const Instruction& x, Range range) {
    const kernel::Module& module = *input_.module;
    if (x.location == 0 || isConstant(module, x.operands[0]) || range.low > range.high) return;
    const uint32_t offset = reporter_.source().offsetOf(module.locations[x.location - 1]);
    const auto stmt =
        std::ranges::find_if(ast_.statements, [&](const Stmt& s) { return s.kind == StmtKind::Switch && s.span.begin == offset; });
    if (stmt == ast_.statements.end()) return;
    for (const CaseClause& clause : stmt->cases) {
      for (const ExprId selector : clause.selectors) {
        const auto number = expressions_.number(selector);
        if (!number || (*number >= static_cast<double>(range.low) && *number <= static_cast<double>(range.high))) continue;
        const Expr& chosen = ast_[stmt->condition];
        const std::string_view name = reporter_.text(chosen.kind == ExprKind::Identifier ? chosen.name_span : chosen.span);
        report(ast_[selector].span,
               fmt::format("case {} is never taken: '{}' is {}", *number, name,
                           range.low == range.high ? fmt::format("{}", range.low) : fmt::format("in {} to {}", range.low, range.high)),
               {});
      }
    }
  }

  static bool isInteger(const kernel::Module& module, ValueId value) {
    return module.typeOf(value).is(kernel::Scalar::U32) || module.typeOf(value).is(kernel::Scalar::I32);
  }
  static bool isConstant(const kernel::Module& module, ValueId value) { return module[value].kind == kernel::ValueKind::Constant; }
  static Range wholeRange(const kernel::Module& module, ValueId value) {
    if (module.typeOf(value).is(kernel::Scalar::I32)) return {.low = INT32_MIN, .high = INT32_MAX};
    return {.low = 0, .high = UINT32_MAX};
  }

  static std::optional<bool> decided(Op op, Range a, Range b) {
    const auto less = [](Range x, Range y) -> std::optional<bool> {
      if (x.high < y.low) return true;
      return x.low >= y.high ? std::optional(false) : std::nullopt;
    };
    const auto negated = [](std::optional<bool> answer) { return answer ? std::optional(!*answer) : std::nullopt; };
    if (op == Op::Lt) return less(a, b);
    if (op == Op::Gt) return less(b, a);
    if (op == Op::Ge) return negated(less(a, b));
    if (op == Op::Le) return negated(less(b, a));
    std::optional<bool> equal;
    if (a.high < b.low || b.high < a.low) equal = false;
    if (a.low == a.high && a == b) equal = true;
    return op == Op::Eq ? equal : negated(equal);
  }

  /// A test of an upper bound that never fails is a precaution: nothing is lost by it.
  static bool isGuard(Op op, bool always, Range a, Range b) {
    const bool a_is_number = a.low == a.high, b_is_number = b.low == b.high;
    if (!a_is_number && !b_is_number) return true;
    if (b_is_number && a.high <= b.high) return always ? op == Op::Lt || op == Op::Le : op == Op::Ge || op == Op::Gt;
    if (a_is_number && b.high <= a.high) return always ? op == Op::Gt || op == Op::Ge : op == Op::Le || op == Op::Lt;
    return false;
  }

  [[nodiscard]] bool isLocalId(ValueId value) const {
    const kernel::Module& module = *input_.module;
    const Instruction* x = kernel::definition(module, value);
    if (x != nullptr && x->op == Op::Extract) value = x->operands[0];
    for (const kernel::Function& function : module.functions) {
      for (const kernel::Parameter& parameter : function.parameters) {
        if (parameter.value != value) continue;
        return parameter.builtin == kernel::Builtin::LocalInvocationId || parameter.builtin == kernel::Builtin::LocalInvocationIndex;
      }
    }
    return false;
  }

  /// Whether a loop would end by the comparison, which then never happens.
  [[nodiscard]] bool endsLoop(const Instruction& x) const {
    const Location* where = x.location == 0 ? nullptr : &input_.module->locations[x.location - 1];
    return where != nullptr && std::ranges::any_of(ast_.statements, [&](const Stmt& stmt) {
             const bool loop = stmt.kind == StmtKind::While || stmt.kind == StmtKind::For || stmt.kind == StmtKind::BreakIf;
             return loop && stmt.condition.valid() && reporter_.source().locate(ast_[stmt.condition].span) == *where;
           });
  }

  /// Whether an `if` has a body for the case that never happens: more than leaving. Or whether it asks for a place in the workgroup that
  /// every invocation has.
  [[nodiscard]] bool guardsWork(const Instruction& x, bool always) const {
    if (always && !isLocalId(x.operands[0]) && !isLocalId(x.operands[1])) return false;
    if (x.location == 0) return false;
    const uint32_t offset = reporter_.source().offsetOf(input_.module->locations[x.location - 1]);
    return std::ranges::any_of(ast_.statements, [&](const Stmt& stmt) {
      if (stmt.kind != StmtKind::If || offset < ast_[stmt.condition].span.begin || offset >= ast_[stmt.condition].span.end) return false;
      if (always) return true;
      const StmtList body = ast_[stmt.body].statements;
      const StmtKind first = body.empty() ? StmtKind::Return : ast_[body.front()].kind;
      return first != StmtKind::Return && first != StmtKind::Break && first != StmtKind::Continue;
    });
  }

  void reportComparison(const Instruction& x, bool always, Range a, Range b, bool guard) {
    constexpr std::array<std::pair<Op, BinaryOp>, 6> kOperators{{{Op::Lt, BinaryOp::Lt},
                                                                 {Op::Le, BinaryOp::Le},
                                                                 {Op::Gt, BinaryOp::Gt},
                                                                 {Op::Ge, BinaryOp::Ge},
                                                                 {Op::Eq, BinaryOp::Eq},
                                                                 {Op::Ne, BinaryOp::Ne}}};
    const BinaryOp op = std::ranges::find(kOperators, x.op, &std::pair<Op, BinaryOp>::first)->second;
    const ExprId id = findOperator(input_, x, op, reporter_.source());
    if (!id.valid()) return;
    const Expr& expr = ast_[id];
    if (expressions_.same(expr.left, expr.right)) return;
    // A bound with a name is made to be changed.
    const auto isNamed = [&](ExprId side) { return !expressions_.isRuntime(side) && !expressions_.isLiteral(side); };
    if (guard && (isNamed(expr.left) || isNamed(expr.right))) return;
    const auto side = [&](ExprId operand, Range range) {
      return range.low == range.high ? fmt::format("'{}' is {}", reporter_.text(ast_[operand].span), range.low)
                                     : fmt::format("'{}' is in {} to {}", reporter_.text(ast_[operand].span), range.low, range.high);
    };
    std::string known;
    for (const auto& [operand, range] : {std::pair(expr.left, a), std::pair(expr.right, b)}) {
      if (expressions_.isLiteral(operand)) continue;
      known += known.empty() ? side(operand, range) : ", " + side(operand, range);
    }
    const Span where = operatorSpan(ast_, id);
    report(where, fmt::format("'{}' is always {} here", reporter_.text(where), always), known);
  }

  void report(Span where, std::string message, const std::string& because) {
    if (!because.empty()) message += ": " + because;
    reporter_.report(DiagnosticRule::ConstantCondition, where, std::move(message), "remove the test, or compare what was meant");
  }

  const LintInput& input_;
  const Ast& ast_;
  LintReporter& reporter_;
  Expressions expressions_;
};

}  // namespace

void lintConstantConditions(const LintInput& input, LintReporter& reporter) { ConstantConditions(input, reporter).run(); }

}  // namespace lockstep::wgsl
