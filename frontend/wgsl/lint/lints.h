// SPDX-License-Identifier: Apache-2.0
// Warnings about modules that are good WGSL but probably not what was meant. Code wgsl.lint; each has a rule of diagnostic filters.
#pragma once

#include <array>

#include "frontend/wgsl/check/diagnostic_filters.h"
#include "frontend/wgsl/syntax/ast.h"
#include "ir/kernel/module.h"

namespace lockstep::wgsl {

struct LintInput {
  const Ast& ast;
  const kernel::Module& module;    ///< made of `ast`, with locations
  std::array<uint32_t, 3> groups;  ///< of the dispatch; zeros where it is not known
  const DiagnosticFilters& filters;
};

/// The module with the integers that its uniform variables hold in place of the loads of them.
kernel::Module withKnownUniforms(kernel::Module module, const UniformContents& contents);

/// All of them, for a module that was read without errors.
void runLints(const Ast& ast, const kernel::Module& module, const ReadOptions& options, Reporter& reporter);

/// lockstep.index_wraps: an unsigned difference in an index that is negative for the first invocation or round.
void lintIndexWraps(const LintInput& input, Reporter& reporter);

/// lockstep.product_wraps: a product in an index that does not fit 32 bits for the last invocation or round.
void lintProductWraps(const LintInput& input, Reporter& reporter);

/// Shared by lints: the expression of an operator that the instruction was made of; invalid if it is not there.
ExprId findOperator(const LintInput& input, const kernel::Instruction& instruction, BinaryOp op, const Source& source);
/// An operator with both operands, without parentheses around it.
Span operatorSpan(const Ast& ast, ExprId id);

}  // namespace lockstep::wgsl
