// SPDX-License-Identifier: Apache-2.0
// Warnings about modules that are good WGSL but probably not what was meant. Lint NAME has code lint.NAME and the rule lockstep.NAME of
// diagnostic filters; "lockstep: allow(lint.NAME)" in a comment silences it on that line.
#pragma once

#include <array>
#include <optional>

#include "frontend/wgsl/check/diagnostic_filters.h"
#include "frontend/wgsl/check/program.h"
#include "ir/kernel/module.h"

namespace lockstep::wgsl {

/// Where a lint says what it finds: as severe as the module's filters say, and not where a comment allows it.
class LintReporter {
 public:
  LintReporter(const Ast& ast, Reporter& reporter) : filters_(ast.filters), reporter_(reporter) {}
  /// The remedy is followed by how to silence the rule.
  void report(DiagnosticRule rule, Span where, std::string message, const std::string& remedy, std::vector<Note> notes = {});
  [[nodiscard]] Note note(Span where, std::string message) const { return reporter_.note(where, std::move(message)); }
  [[nodiscard]] const Source& source() const { return reporter_.source(); }
  [[nodiscard]] std::string_view text(Span span) const { return source().text(span); }
  [[nodiscard]] const DiagnosticFilters& filters() const { return filters_; }

 private:
  [[nodiscard]] bool isAllowed(std::string_view code, Span where) const;
  DiagnosticFilters filters_;
  Reporter& reporter_;
  std::array<size_t, kDiagnosticRules> counts_{};
};

struct LintInput {
  const Ast& ast;
  const Program& program;          ///< overrides have no values
  const kernel::Module* module;    ///< made of `ast`, with locations; null where overrides need values
  std::array<uint32_t, 3> groups;  ///< of the dispatch; zeros where it is not known
  bool has_overrides;              ///< then numbers in `module` are those of the defaults
};

/// The module with the integers that its uniform variables hold in place of the loads of them.
kernel::Module withKnownUniforms(kernel::Module module, const UniformContents& contents);

enum class LintScope : uint8_t {
  All,      ///< of `check`
  Reading,  ///< lints that learn from the dispatch, and those of which a filter makes errors
};
/// For a module without errors. `module` may be null.
void runLints(const Ast& ast, const Program& program, const kernel::Module* module, const ReadOptions& options, LintScope scope,
              Reporter& reporter);

// One file each. Those that need a module are not called without one.
void lintUnused(const LintInput& input, LintReporter& reporter);
void lintDeadStores(const LintInput& input, LintReporter& reporter);
void lintConstantConditions(const LintInput& input, LintReporter& reporter);
void lintIdenticalOperands(const LintInput& input, LintReporter& reporter);
void lintUnsignedCompare(const LintInput& input, LintReporter& reporter);
void lintUnstableFormulas(const LintInput& input, LintReporter& reporter);
void lintSoftmax(const LintInput& input, LintReporter& reporter);
void lintWorkgroupSize(const LintInput& input, LintReporter& reporter);
/// An unsigned difference in an index that is negative for the first invocation or round.
void lintIndexWraps(const LintInput& input, LintReporter& reporter);
/// A product in an index that does not fit 32 bits for the last invocation or round.
void lintProductWraps(const LintInput& input, LintReporter& reporter);
/// An index of an array of known size that is outside of it for the first or the last invocation or round.
void lintIndexRange(const LintInput& input, LintReporter& reporter);
void lintRaces(const LintInput& input, LintReporter& reporter);
void lintAccessPattern(const LintInput& input, LintReporter& reporter);

/// Shared by lints: the expression of an operator that the instruction was made of; invalid if it is not there.
ExprId findOperator(const LintInput& input, const kernel::Instruction& instruction, BinaryOp op, const Source& source);
/// What an access in memory was made of: the place that is read or stored to. Empty where it is not known.
std::optional<Span> findPlace(const LintInput& input, const kernel::Module& module, const kernel::Instruction& access,
                              const Source& source);
/// An operator with both operands, without parentheses around it.
Span operatorSpan(const Ast& ast, ExprId id);

}  // namespace lockstep::wgsl
