// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/lint/index_corners.h"
#include "frontend/wgsl/lint/lints.h"
#include "ir/kernel/queries.h"

namespace lockstep::wgsl {
namespace {

using kernel::Instruction;
using kernel::Op;
using kernel::ValueId;

/// 4294967295u and the like stand for negative numbers: their products are meant to wrap.
bool isNegativeFactor(const kernel::Module& module, ValueId value) {
  return module.typeOf(value).is(kernel::Scalar::U32) && kernel::constantBits(module, value).value_or(0) > uint32_t{INT32_MAX};
}

/// The innermost product in a sum of products that does not fit its type; invalid if all fit.
ValueId largeProduct(const IndexCorners& corners, const kernel::Module& module, ValueId value, int depth) {
  const Instruction* x = corners.definition(value);
  if (x == nullptr || depth == 0 || (x->op != Op::Add && x->op != Op::Sub && x->op != Op::Mul)) return {};
  for (const ValueId operand : x->operands) {
    if (const ValueId inner = largeProduct(corners, module, operand, depth - 1); inner.valid()) return inner;
  }
  if (std::ranges::any_of(x->operands, [&](ValueId operand) { return isNegativeFactor(module, operand); })) return {};
  const int64_t most = module.typeOf(value).is(kernel::Scalar::I32) ? int64_t{INT32_MAX} : int64_t{UINT32_MAX};
  const auto number = corners.at(value, Corner::Last);
  return x->op == Op::Mul && number && *number > most ? value : ValueId();
}

}  // namespace

void lintProductWraps(const LintInput& input, LintReporter& reporter) {
  const Source& source = reporter.source();
  IndexCorners corners(*input.module, input.groups);
  size_t found = 0;
  corners.walk([&](const Instruction& access, size_t operand) {
    const ValueId index = access.operands[operand];
    const ValueId product = largeProduct(corners, *input.module, index, IndexCorners::kDepth);
    if (!product.valid() || ++found > Reporter::kMaximum) return;
    const ExprId id = findOperator(input, *corners.definition(product), BinaryOp::Mul, source);
    if (!id.valid()) return;
    const Span where = operatorSpan(input.ast, id);
    const std::string type = input.module->types.toString((*input.module)[product].type);
    reporter.report(DiagnosticRule::Index, where,
                    fmt::format("the index wraps: '{}' reaches {}, more than {} can hold", source.text(where),
                                *corners.at(product, Corner::Last), type),
                    "split the buffer or the dispatch, so that offsets stay below 2^32");
  });
}

}  // namespace lockstep::wgsl
