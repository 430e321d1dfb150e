// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/lint/index_corners.h"
#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

using kernel::Instruction;
using kernel::TypeId;
using kernel::TypeKind;

/// How many elements an index of an access or extract chooses from; 0 where that is not known.
uint32_t countAt(const kernel::Module& module, const Instruction& x, size_t operand) {
  const kernel::Type& base = module.typeOf(x.operands[0]);
  TypeId type = base.kind == TypeKind::Pointer ? base.element : module[x.operands[0]].type;
  for (size_t k = 1; k < operand; ++k) {
    const kernel::Type& whole = module.types[type];
    if (whole.kind == TypeKind::Matrix) return whole.rows;
    if (whole.kind != TypeKind::Array && whole.kind != TypeKind::Struct) return 0;
    type = whole.kind == TypeKind::Array ? whole.element : whole.members[module[x.operands[k]].bits].type;
  }
  return module.types.elementCount(type);
}

/// The longest expression with an index that begins at the place of the instruction.
std::optional<Span> findIndex(const LintInput& input, const Instruction& x, const Source& source) {
  if (x.location == 0) return std::nullopt;
  const uint32_t begin = source.offsetOf(input.module->locations[x.location - 1]);
  std::optional<Span> found;
  for (const Expr& expr : input.ast.expressions) {
    if (expr.kind != ExprKind::Index || expr.span.begin != begin) continue;
    if (!found || expr.span.end > found->end) found = expr.span;
  }
  return found;
}

}  // namespace

void lintIndexRange(const LintInput& input, LintReporter& reporter) {
  // Sizes and numbers of a module with overrides are those of the defaults.
  if (input.has_overrides) return;
  const kernel::Module& module = *input.module;
  IndexCorners corners(module, input.groups);
  size_t found = 0;
  corners.walk([&](const Instruction& access, size_t operand) {
    if (found > Reporter::kMaximum) return;
    const kernel::ValueId index = access.operands[operand];
    if (module[index].kind == kernel::ValueKind::Constant) return;
    const bool is_signed = module.typeOf(index).is(kernel::Scalar::I32);
    std::optional<uint32_t> count;  // looked up once it matters
    for (const Corner corner : {Corner::First, Corner::Last}) {
      const auto number = corners.at(index, corner);
      if (!number || (*number < 0 && !is_signed) || (is_signed && (*number < INT32_MIN || *number > INT32_MAX)) || *number > UINT32_MAX)
        continue;
      if (!count) count = countAt(module, access, operand);
      const bool beyond = *count != 0 && *number >= int64_t{*count};
      if (!beyond && *number >= 0) continue;
      const auto where = findIndex(input, access, reporter.source());
      if (!where) return;
      ++found;
      const std::string_view when = corner == Corner::First ? "first" : "last";
      reporter.report(
          DiagnosticRule::Index, *where,
          beyond ? fmt::format("index {} of '{}' is out of range for the {} invocation or round: there are {} elements", *number,
                               reporter.text(*where), when, *count)
                 : fmt::format("index {} of '{}' is negative for the {} invocation or round", *number, reporter.text(*where), when),
          beyond ? "test the index, end the loop earlier, or make the array larger" : "test the index, or use max(index, 0)");
      return;
    }
  });
}

}  // namespace lockstep::wgsl
