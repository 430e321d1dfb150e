// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "frontend/wgsl/analyse/analyses.h"
#include "frontend/wgsl/check/checked_text.h"
#include "frontend/wgsl/check/contracts.h"
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
  // Functions with errors are analysed, too, as far as what they mean is known: an error has no type, and no analysis asks for more.
  if (reporter.full() || !checked.program.ordered) return checked;
  checkAliases(checked.ast, checked.program, reporter);
  checkUniformity(checked.ast, checked.program, reporter);
  return checked;
}

namespace {

bool hasOverrides(const Ast& ast) {
  for (const VariableDecl& variable : ast.variables) {
    if (variable.kind == VariableKind::Override) return true;
  }
  return false;
}

/// What a contract's name stands for, where no host is needed to know it.
std::optional<int64_t> knownInText(const ContractPart& part, const Contract& contract, const Ast& ast, const Program& program) {
  // Overrides may size workgroups.
  if (part.kind == ContractPart::Kind::WorkgroupSize && !hasOverrides(ast)) {
    for (size_t i = 0; i < ast.functions.size(); ++i) {
      const bool found = ast.functions[i].name == contract.entry && program.functions[i].workgroup_size;
      if (found) return (*program.functions[i].workgroup_size)[part.axis];
    }
  }
  if (part.kind != ContractPart::Kind::Length) return std::nullopt;
  for (const EntityId id : program.globals) {
    if (program[id].name != part.path[0]) continue;
    const Ty type = program.types[program[id].type].element;
    const bool fixed = program.types.isArray(type) && program.types[type].count != 0 && program.types[type].override_count == 0;
    if (fixed) return program.types[type].count;
  }
  return std::nullopt;
}

void giveWarnings(const ReadOptions& options, Reporter& reporter) {
  if (options.warnings != nullptr) *options.warnings = reporter.takeWarnings();
}

/// What contracts say wrongly, and those that no host can keep: of what the text alone says, sizes of arrays and of workgroups.
void checkContracts(const Source& source, const CheckedText& checked, Reporter& reporter) {
  const Program& program = checked.program;
  for (const Contract& contract : readContracts(source, checked.ast, program, reporter)) {
    const auto known = [&](const ContractPart& part) { return knownInText(part, contract, checked.ast, program); };
    if (const std::optional<BrokenContract> broken = findBroken(contract, known)) {
      reporter.error(kContract, {contract.begin, contract.end}, fmt::format("no host can keep this: {}", broken->message), broken->values);
    }
  }
}

/// A filter may make errors of them.
bool wantsLints(const ReadOptions& options, const Ast& ast) { return options.warnings != nullptr || !ast.filters.empty(); }

}  // namespace

std::vector<Diagnostic> check(std::string_view text, const ReadOptions& options) {
  const Source source(text, options.file_name);
  Reporter reporter(source);
  const CheckedText checked = checkText(source, {.file_name = options.file_name, .overrides = {}}, reporter);
  if (wantsLints(options, checked.ast) && !reporter.failed()) {
    // Numbers are those of the defaults of overrides; where an override needs a value there are none.
    Reporter silent(source);
    const ReadOptions defaults{.file_name = options.file_name, .overrides = {}};
    Program program = hasOverrides(checked.ast) ? substituteOverrides(checked.ast, defaults, silent) : checked.program;
    std::optional<kernel::Module> module;
    if (!silent.failed()) module = lower(checked.ast, std::move(program), source);
    runLints(checked.ast, checked.program, module ? &*module : nullptr, options, LintScope::All, reporter);
  }
  if (!reporter.failed()) checkContracts(source, checked, reporter);
  giveWarnings(options, reporter);
  return reporter.take();
}

Result<kernel::Module> read(std::string_view text, const ReadOptions& options) {
  const Source source(text, options.file_name);
  Reporter reporter(source);
  CheckedText checked = checkText(source, options, reporter);
  const bool substitutes = !options.overrides_are_constants && (hasOverrides(checked.ast) || !options.overrides.empty());
  std::optional<kernel::Module> module;
  if (!reporter.failed()) {
    const bool lints = wantsLints(options, checked.ast);
    Program program = substitutes ? substituteOverrides(checked.ast, options, reporter)
                      : lints     ? checked.program
                                  : std::move(checked.program);
    if (!reporter.failed()) module = lower(checked.ast, std::move(program), source);
    if (module && lints) runLints(checked.ast, checked.program, &*module, options, LintScope::Reading, reporter);
  }
  giveWarnings(options, reporter);
  if (reporter.failed()) return Failure{.diagnostics = reporter.take()};
  return *std::move(module);
}

}  // namespace lockstep::wgsl
