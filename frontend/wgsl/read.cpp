// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "frontend/wgsl/analyse/analyses.h"
#include "frontend/wgsl/check/checked_text.h"
#include "frontend/wgsl/lint/lints.h"
#include "frontend/wgsl/lower/lower.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl {
CheckedText checkText(const Source& source, const ReadOptions& options, Reporter& reporter) {
  constexpr size_t kMaximumText = size_t(64) << 20u;
  if (source.text().size() > kMaximumText) {
    reporter.error(kLimit, {}, "the text is longer than 64 MiB");
    return {};
  }
  CheckedText checked{.ast = parseModule(source, reporter), .program = {}};
  if (reporter.failed() && !checked.ast.whole) return checked;
  // Templates are no modules before their overrides have values.
  checked.program =
      options.overrides_are_constants ? substituteOverrides(checked.ast, options, reporter) : checkModule(checked.ast, options, reporter);
  if (reporter.failed()) return checked;
  checkAliases(checked.ast, checked.program, reporter);
  checkUniformity(checked.ast, checked.program, reporter);
  return checked;
}

namespace {

void giveWarnings(const ReadOptions& options, Reporter& reporter) {
  if (options.warnings != nullptr) *options.warnings = reporter.takeWarnings();
}

/// A filter may make errors of them.
bool wantsLints(const ReadOptions& options, const Ast& ast) { return options.warnings != nullptr || !ast.filters.empty(); }

bool hasOverrides(const Ast& ast) {
  for (const VariableDecl& variable : ast.variables) {
    if (variable.kind == VariableKind::Override) return true;
  }
  return false;
}

}  // namespace

std::vector<Diagnostic> check(std::string_view text, const ReadOptions& options) {
  const Source source(text, options.file_name);
  Reporter reporter(source);
  const CheckedText checked = checkText(source, {.file_name = options.file_name, .overrides = {}}, reporter);
  if (wantsLints(options, checked.ast) && !reporter.failed()) {
    // Lints look at the module with the defaults of its overrides; a module whose overrides need values is read before it has any.
    Reporter silent(source);
    const ReadOptions defaults{.file_name = options.file_name, .overrides = {}};
    Program program = hasOverrides(checked.ast) ? substituteOverrides(checked.ast, defaults, silent) : checked.program;
    if (!silent.failed()) runLints(checked.ast, lower(checked.ast, std::move(program), source), options, reporter);
  }
  giveWarnings(options, reporter);
  return reporter.take();
}

Result<kernel::Module> read(std::string_view text, const ReadOptions& options) {
  const Source source(text, options.file_name);
  Reporter reporter(source);
  CheckedText checked = checkText(source, options, reporter);
  const bool substitutes = !options.overrides_are_constants && (hasOverrides(checked.ast) || !options.overrides.empty());
  if (substitutes && !reporter.failed()) checked.program = substituteOverrides(checked.ast, options, reporter);
  std::optional<kernel::Module> module;
  if (!reporter.failed()) {
    module = lower(checked.ast, std::move(checked.program), source);
    if (wantsLints(options, checked.ast)) runLints(checked.ast, *module, options, reporter);
  }
  giveWarnings(options, reporter);
  if (reporter.failed()) return Failure{.diagnostics = reporter.take()};
  return *std::move(module);
}

}  // namespace lockstep::wgsl
