// SPDX-License-Identifier: Apache-2.0
// The readers of kernels: WGSL and the text of the kernel IR.
#include "tests/fuzz/entries.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "frontend/wgsl/syntax/format.h"
#include "frontend/wgsl/syntax/token.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/isolate_entry.h"
#include "ir/kernel/module.h"
#include "ir/kernel/spread_matrices.h"
#include "tests/fuzz/promises.h"
#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/spirv.h"
#endif

namespace lockstep::fuzz {

namespace {

/// The writer makes up names of results and parameters and changes those that hide a word it needs.
kernel::Module withoutNames(kernel::Module module) {
  for (kernel::Value& value : module.values) value.name.clear();
  for (kernel::GlobalVariable& global : module.globals) global.name.clear();
  for (kernel::Function& function : module.functions) function.name.clear();
  return kernel::canonical(module);
}

std::vector<std::string> tokensOf(std::string_view text) {
  const wgsl::Source source(text, "text");
  wgsl::Reporter reporter(source);
  std::vector<std::string> words;
  for (const wgsl::Token& token : wgsl::tokenize(source, reporter)) words.emplace_back(token.text);
  return words;
}

}  // namespace

bool readKernel(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return kernel::parse(text); };
  const Result<kernel::Module> module = parse(textOf(input));
  requireAnswer(module);
  if (!module.ok()) return false;
  requireStableText(*module, parse);
  requireAnswer(kernel::validate(*module));
  return true;
}

bool readWgsl(std::span<const std::byte> input) {
  const std::string_view text = textOf(input);
  const Result<kernel::Module> module = wgsl::read(text);
  requireAnswer(module);
  if (!module.ok()) {
    require(!wgsl::renderDiagnostics(module.diagnostics(), text).empty(), "diagnostics are shown");
    return false;
  }
  require(kernel::validate(*module).ok(), "what is read is valid");
  const std::string written = wgsl::write(*module);
  const Result<kernel::Module> again = wgsl::read(written);
  require(again.ok(), "what is written can be read");
  const kernel::Module before = withoutNames(*module), after = withoutNames(*again);
  if (before != after) {
    throw std::logic_error(
        fmt::format("what is written is the same module:\n{}\nwritten as\n{}\nis\n{}", print(before), written, print(after)));
  }
  require(wgsl::write(*again) == written, "a module is written in the same words again");
  return true;
}

bool readCheck(std::span<const std::byte> input) {
  const std::string_view text = textOf(input);
  std::vector<wgsl::Warning> warnings;
  const std::vector<Diagnostic> errors = wgsl::check(text, {.overrides = {}, .warnings = &warnings});
  for (const Diagnostic& error : errors) requireDiagnostic(error);
  for (const wgsl::Warning& warning : warnings) requireDiagnostic(warning.diagnostic);
  require(errors.empty() == wgsl::renderDiagnostics(errors, text).empty(), "errors are shown");
  require(warnings.empty() == wgsl::renderWarnings(warnings, text).empty(), "warnings are shown");
  return true;
}

bool readSpirv([[maybe_unused]] std::span<const std::byte> input) {
#ifdef LOCKSTEP_VULKAN
  const Result<kernel::Module> module = wgsl::read(textOf(input));
  if (!module.ok()) return false;
  // spirv-val takes quadratic time, and every entry point takes a copy of the module.
  constexpr size_t kMostWords = 100000, kMostEntries = 16;
  size_t entries = 0;
  for (const kernel::Function& function : module->functions) {
    if (!function.workgroup_size || ++entries > kMostEntries) continue;
    const Result<kernel::Module> alone = kernel::isolateEntry(*module, function.name);
    require(alone.ok(), "an entry point can stand alone");
    const Result<kernel::ValidModule> valid = kernel::validate(*alone);
    require(valid.ok(), "an entry point that stands alone is valid");
    const Result<std::vector<uint32_t>> words = vulkan::emitSpirv(*valid, {});
    requireAnswer(words);
    // The validator knows no matrices.
    if (!words.ok() || words->size() > kMostWords || kernel::hasSubgroupMatrices(**valid)) continue;
    const std::string messages = vulkan::validateSpirv(*words);
    require(messages.empty(), messages);
  }
#endif
  return true;
}

bool readFormat(std::span<const std::byte> input) {
  const std::string_view text = textOf(input);
  const Result<std::string> once = wgsl::format(text);
  requireAnswer(once);
  if (!once.ok()) return false;
  require(tokensOf(*once) == tokensOf(text), "a formatted text has the same tokens");
  const Result<std::string> twice = wgsl::format(*once);
  require(twice.ok() && *twice == *once, "a formatted text is formatted");
  return true;
}

}  // namespace lockstep::fuzz
