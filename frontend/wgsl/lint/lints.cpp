// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/lint/lints.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/kernel/queries.h"

namespace lockstep::wgsl {

namespace {

struct LintRow {
  DiagnosticRule rule;
  bool needs_module;
  void (*run)(const LintInput&, LintReporter&);
};

constexpr std::array<LintRow, 13> kLints{{
    {DiagnosticRule::Index, true, lintIndexWraps},
    {DiagnosticRule::Index, true, lintProductWraps},
    {DiagnosticRule::Index, true, lintIndexRange},
    {DiagnosticRule::Race, true, lintRaces},
    {DiagnosticRule::UnstableFormula, false, lintUnstableFormulas},
    {DiagnosticRule::UnstableFormula, false, lintSoftmax},
    {DiagnosticRule::UnsignedCompare, false, lintUnsignedCompare},
    {DiagnosticRule::IdenticalOperands, false, lintIdenticalOperands},
    {DiagnosticRule::ConstantCondition, false, lintConstantConditions},
    {DiagnosticRule::DeadStore, false, lintDeadStores},
    {DiagnosticRule::AccessPattern, true, lintAccessPattern},
    {DiagnosticRule::WorkgroupSize, false, lintWorkgroupSize},
    {DiagnosticRule::Unused, false, lintUnused},
}};

/// What the number of workgroups and the contents of uniform buffers add to.
bool learnsFromDispatch(const LintRow& row) { return row.rule == DiagnosticRule::Index; }

}  // namespace

void runLints(const Ast& ast, const Program& program, const kernel::Module* module, const ReadOptions& options, LintScope scope,
              Reporter& reporter) {
  std::optional<kernel::Module> known;
  if (module != nullptr && options.uniforms) known = withKnownUniforms(*module, options.uniforms);
  const bool has_overrides = std::ranges::any_of(ast.variables, [](const VariableDecl& v) { return v.kind == VariableKind::Override; });
  const LintInput input{
      .ast = ast, .program = program, .module = known ? &*known : module, .groups = options.groups, .has_overrides = has_overrides};
  LintReporter lints(ast, reporter);
  for (const LintRow& row : kLints) {
    const bool wanted = scope == LintScope::All || learnsFromDispatch(row) || lints.filters().makesErrors(row.rule);
    if (wanted && (module != nullptr || !row.needs_module)) row.run(input, lints);
  }
}

void LintReporter::report(DiagnosticRule rule, Span where, std::string message, const std::string& remedy, std::vector<Note> notes) {
  const std::string name(toString(rule));
  const std::string code = "lint." + name.substr(name.find('.') + 1);
  if (isAllowed(code, where) || ++counts_[static_cast<size_t>(rule)] > Reporter::kMaximum) return;
  reporter_.report(filters_.severity(rule, where.begin), code, where, std::move(message),
                   fmt::format("{}; diagnostic(off, {}); silences this", remedy, name), std::move(notes));
}

bool LintReporter::isAllowed(std::string_view code, Span where) const {
  const std::string_view text = source().text();
  const size_t before = text.substr(0, where.begin).rfind('\n'), begin = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view line = text.substr(begin, text.substr(begin).find('\n'));
  return line.find(fmt::format("lockstep: allow({})", code)) != std::string_view::npos;
}

Span operatorSpan(const Ast& ast, ExprId id) { return join(ast[ast[id].left].span, ast[ast[id].right].span); }

namespace {

/// How many operators that begin at the same place the operator has on its left.
size_t rankOf(const kernel::Module& module, const kernel::Instruction& instruction) {
  size_t rank = 0;
  const kernel::Instruction* x = &instruction;
  while (x->operands.size() == 2 && module[x->operands[0]].kind == kernel::ValueKind::Instruction) {
    x = &module.instructions[module[x->operands[0]].index];
    if (x->location != instruction.location || x->operands.size() != 2 || kernel::info(x->op).group != kernel::OpGroup::Arithmetic) break;
    ++rank;
  }
  return rank;
}

size_t rankOf(const Ast& ast, ExprId id) {
  size_t rank = 0;
  while (ast[ast[id].left].kind == ExprKind::Binary) {
    id = ast[id].left;
    ++rank;
  }
  return rank;
}

}  // namespace

ExprId findOperator(const LintInput& input, const kernel::Instruction& instruction, BinaryOp op, const Source& source) {
  if (instruction.location == 0) return {};
  const Location& where = input.module->locations[instruction.location - 1];
  const size_t rank = rankOf(*input.module, instruction);
  ExprId found;
  for (size_t i = 0; i < input.ast.expressions.size(); ++i) {
    const Expr& expr = input.ast.expressions[i];
    if (expr.kind != ExprKind::Binary || expr.binary != op || source.locate(expr.span) != where) continue;
    // Where constants on the left became one, the ranks differ; then the innermost is shown.
    if (rankOf(input.ast, ExprId(i)) == rank) return ExprId(i);
    if (!found.valid() || expr.span.end < input.ast[found].span.end) found = ExprId(i);
  }
  return found;
}

std::optional<Span> findPlace(const LintInput& input, const kernel::Module& module, const kernel::Instruction& access,
                              const Source& source) {
  const kernel::Instruction* place = kernel::definition(module, access.operands[0]);
  const bool stores = access.op == kernel::Op::Store;
  const uint32_t location = !stores && place != nullptr && place->op == kernel::Op::Access ? place->location : access.location;
  if (location == 0) return std::nullopt;
  const uint32_t begin = source.offsetOf(module.locations[location - 1]);
  if (stores) {
    const auto stmt = std::ranges::find_if(input.ast.statements, [&](const Stmt& s) { return s.target.valid() && s.span.begin == begin; });
    if (stmt != input.ast.statements.end()) return input.ast[stmt->target].span;
  }
  Span found{.begin = begin, .end = begin + 1};
  for (const Expr& expr : input.ast.expressions) {
    const bool is_place = expr.kind == ExprKind::Index || expr.kind == ExprKind::Member || expr.kind == ExprKind::Identifier;
    if (is_place && expr.span.begin == begin && expr.span.end > found.end) found = expr.span;
  }
  return found;
}

}  // namespace lockstep::wgsl
