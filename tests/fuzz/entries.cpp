// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/wgsl/format.h"
#include "frontend/wgsl/token.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/graph/graph.h"
#include "ir/kernel/isolate_entry.h"
#include "ir/kernel/module.h"
#include "ir/program/program.h"
#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/spirv.h"
#endif

namespace lockstep::fuzz {

namespace {

std::string_view textOf(std::span<const std::byte> input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

void require(bool holds, std::string_view promise) {
  if (!holds) throw std::logic_error(std::string(promise));
}

void requireDiagnostic(const Diagnostic& diagnostic) {
  require(!diagnostic.code.empty() && !diagnostic.message.empty(), "a diagnostic has a code and a message");
  (void)toString(diagnostic);
}

/// The answer of a reader or validator: a refusal says why.
template <class T>
void requireAnswer(const Result<T>& result) {
  if (result.ok()) return;
  require(!result.diagnostics().empty(), "a refusal has a diagnostic");
  for (const Diagnostic& diagnostic : result.diagnostics()) requireDiagnostic(diagnostic);
}

/// Prints of values rather than values, because NaN differs from itself.
template <class Value, class Parse>
void requireStableText(const Value& value, const Parse& parse) {
  const std::string text = print(value);
  const auto again = parse(text);
  require(again.ok(), "a printed text parses");
  require(print(*again) == text, "print after parse changes nothing");
}

/// The writer makes up names of results and parameters and changes those that hide a word it needs.
kernel::Module withoutNames(kernel::Module module) {
  for (kernel::Value& value : module.values) {
    if (value.kind == kernel::ValueKind::Instruction || value.kind == kernel::ValueKind::Parameter) value.name.clear();
  }
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

void readGraph(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return graph::parse(text); };
  const Result<graph::Graph> graph = parse(textOf(input));
  requireAnswer(graph);
  if (!graph.ok()) return;
  requireStableText(*graph, parse);
  requireAnswer(graph::validate(*graph));
}

void readKernel(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return kernel::parse(text); };
  const Result<kernel::Module> module = parse(textOf(input));
  requireAnswer(module);
  if (!module.ok()) return;
  requireStableText(*module, parse);
  requireAnswer(kernel::validate(*module));
}

void readProgram(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return program::parse(text); };
  const Result<program::Program> program = parse(textOf(input));
  requireAnswer(program);
  if (!program.ok()) return;
  requireStableText(*program, parse);
  requireAnswer(program::validateStructure(*program));
  requireAnswer(program::validate(*program));
}

void readWgsl(std::span<const std::byte> input) {
  const std::string_view text = textOf(input);
  const Result<kernel::Module> module = wgsl::read(text);
  requireAnswer(module);
  if (!module.ok()) {
    require(!wgsl::renderDiagnostics(module.diagnostics(), text).empty(), "diagnostics are shown");
    return;
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
}

void readCheck(std::span<const std::byte> input) {
  const std::string_view text = textOf(input);
  std::vector<wgsl::Warning> warnings;
  const std::vector<Diagnostic> errors = wgsl::check(text, {.overrides = {}, .warnings = &warnings});
  for (const Diagnostic& error : errors) requireDiagnostic(error);
  for (const wgsl::Warning& warning : warnings) requireDiagnostic(warning.diagnostic);
  require(errors.empty() == wgsl::renderDiagnostics(errors, text).empty(), "errors are shown");
  require(warnings.empty() == wgsl::renderWarnings(warnings, text).empty(), "warnings are shown");
}

void readSpirv([[maybe_unused]] std::span<const std::byte> input) {
#ifdef LOCKSTEP_VULKAN
  const Result<kernel::Module> module = wgsl::read(textOf(input));
  if (!module.ok()) return;
  for (const kernel::Function& function : module->functions) {
    if (!function.workgroup_size) continue;
    const Result<kernel::Module> alone = kernel::isolateEntry(*module, function.name);
    require(alone.ok(), "an entry point can stand alone");
    const Result<kernel::ValidModule> valid = kernel::validate(*alone);
    require(valid.ok(), "an entry point that stands alone is valid");
    const Result<std::vector<uint32_t>> words = vulkan::emitSpirv(*valid, {});
    requireAnswer(words);
    if (!words.ok()) continue;
    const std::string messages = vulkan::validateSpirv(*words);
    require(messages.empty(), messages);
  }
#endif
}

void readFormat(std::span<const std::byte> input) {
  const std::string_view text = textOf(input);
  const Result<std::string> once = wgsl::format(text);
  requireAnswer(once);
  if (!once.ok()) return;
  require(tokensOf(*once) == tokensOf(text), "a formatted text has the same tokens");
  const Result<std::string> twice = wgsl::format(*once);
  require(twice.ok() && *twice == *once, "a formatted text is formatted");
}

void readSafetensors(std::span<const std::byte> input) {
  const Result<io::TensorFile> file = io::parseSafetensors(input, "input");
  requireAnswer(file);
  if (!file.ok()) return;
  for (const auto& [name, array] : file->tensors) {
    require(array.toDoubles().size() == array.elementCount(), "an array has the elements of its shape");
  }
}

}  // namespace lockstep::fuzz
