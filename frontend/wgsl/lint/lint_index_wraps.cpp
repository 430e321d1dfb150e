// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "frontend/wgsl/lint/index_corners.h"
#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

using kernel::Instruction;
using kernel::Op;

/// The difference in a sum of products that is the first to be negative; null if there is none.
const Instruction* negativeDifference(const IndexCorners& corners, kernel::ValueId value, int depth) {
  const Instruction* x = corners.definition(value);
  if (x == nullptr || depth == 0 || (x->op != Op::Add && x->op != Op::Sub && x->op != Op::Mul)) return nullptr;
  for (const kernel::ValueId operand : x->operands) {
    if (const Instruction* inner = negativeDifference(corners, operand, depth - 1)) return inner;
  }
  const auto number = corners.at(value, Corner::First);
  return x->op == Op::Sub && number && *number < 0 ? x : nullptr;
}

/// A negative factor of (t - 1u) * width + column: whatever the width is, what wraps is not made good by what is added, which is 0.
std::optional<kernel::ValueId> negativeFactor(const IndexCorners& corners, kernel::ValueId value, int depth) {
  const Instruction* x = corners.definition(value);
  if (x == nullptr || depth == 0) return std::nullopt;
  for (const size_t side : {0u, 1u}) {
    if (x->op == Op::Add && corners.at(x->operands[1 - side], Corner::First) == 0) {
      return negativeFactor(corners, x->operands[side], depth - 1);
    }
    const auto factor = x->op == Op::Mul ? corners.at(x->operands[side], Corner::First) : std::nullopt;
    if (factor && *factor < 0 && !corners.at(x->operands[1 - side], Corner::First)) return x->operands[side];
  }
  return std::nullopt;
}

}  // namespace

void lintIndexWraps(const LintInput& input, LintReporter& reporter) {
  const Source& source = reporter.source();
  IndexCorners corners(*input.module, input.groups);
  size_t found = 0;
  corners.walk([&](const kernel::Instruction& access, size_t operand) {
    const kernel::ValueId index = access.operands[operand];
    if (!input.module->typeOf(index).is(kernel::Scalar::U32)) return;
    const auto whole = corners.at(index, Corner::First);
    const auto factor = whole ? std::nullopt : negativeFactor(corners, index, IndexCorners::kDepth);
    if (whole ? *whole >= 0 : !factor) return;
    if (++found > Reporter::kMaximum) return;
    const Instruction* difference = negativeDifference(corners, factor.value_or(index), IndexCorners::kDepth);
    const ExprId id = difference == nullptr ? ExprId() : findOperator(input, *difference, BinaryOp::Sub, source);
    if (!id.valid()) return;
    const auto left = corners.at(difference->operands[0], Corner::First);
    const auto right = corners.at(difference->operands[1], Corner::First);
    if (!left || !right) return;
    const Expr& expr = input.ast[id];
    const std::string_view from = source.text(input.ast[expr.left].span), by = source.text(input.ast[expr.right].span);
    const Span where = operatorSpan(input.ast, id);
    reporter.report(
        DiagnosticRule::Index, where,
        fmt::format("the index wraps: '{}' is {} when '{}' is {}", source.text(where), static_cast<uint32_t>(*left - *right), from, *left),
        fmt::format("put it into an 'if' that tests '{0} >= {1}' (select() evaluates both of its values), or write "
                    "max({0}, {1}) - {1}",
                    from, by));
  });
}

}  // namespace lockstep::wgsl
