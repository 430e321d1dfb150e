// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/lint/lints.h"

#include <optional>

namespace lockstep::wgsl {

void runLints(const Ast& ast, const kernel::Module& module, const ReadOptions& options, Reporter& reporter) {
  const DiagnosticFilters filters(ast.filters);
  const std::optional<kernel::Module> known = options.uniforms ? std::optional(withKnownUniforms(module, options.uniforms)) : std::nullopt;
  const LintInput input{.ast = ast, .module = known ? *known : module, .groups = options.groups, .filters = filters};
  lintIndexWraps(input, reporter);
  lintProductWraps(input, reporter);
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
  const Location& where = input.module.locations[instruction.location - 1];
  const size_t rank = rankOf(input.module, instruction);
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

}  // namespace lockstep::wgsl
