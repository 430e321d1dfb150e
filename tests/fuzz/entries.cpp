// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/entries.h"

#include <fmt/format.h>

#include <stdexcept>

#include "frontend/io/safetensors.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/graph/graph.h"
#include "ir/kernel/module.h"
#include "ir/program/program.h"

namespace lockstep::fuzz {

namespace {

std::string_view textOf(std::span<const std::byte> input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

void require(bool holds, std::string_view promise) {
  if (!holds) throw std::logic_error(std::string(promise));
}

/// The answer of a reader or validator: a refusal says why.
template <class T>
void requireAnswer(const Result<T>& result) {
  if (result.ok()) return;
  require(!result.diagnostics().empty(), "a refusal has a diagnostic");
  for (const Diagnostic& diagnostic : result.diagnostics()) {
    require(!diagnostic.code.empty() && !diagnostic.message.empty(), "a diagnostic has a code and a message");
    (void)toString(diagnostic);
  }
}

/// Prints of values rather than values, because NaN differs from itself.
template <class Value, class Parse>
void requireStableText(const Value& value, const Parse& parse) {
  const std::string text = print(value);
  const auto again = parse(text);
  require(again.ok(), "a printed text parses");
  require(print(*again) == text, "print after parse changes nothing");
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
  require(wgsl::read(wgsl::write(*module)).ok(), "what is written can be read");
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
