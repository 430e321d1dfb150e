// SPDX-License-Identifier: Apache-2.0
// The readers of files that no kernel text is in.
#include "frontend/io/safetensors.h"
#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/promises.h"

namespace lockstep::fuzz {

void readGraph(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return graph::parse(text); };
  const Result<graph::Graph> graph = parse(textOf(input));
  requireAnswer(graph);
  if (!graph.ok()) return;
  requireStableText(*graph, parse);
  requireAnswer(graph::validate(*graph));
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

void readSafetensors(std::span<const std::byte> input) {
  const Result<io::TensorFile> file = io::parseSafetensors(input, "input");
  requireAnswer(file);
  if (!file.ok()) return;
  for (const auto& [name, array] : file->tensors) {
    require(array.toDoubles().size() == array.elementCount(), "an array has the elements of its shape");
  }
}

}  // namespace lockstep::fuzz
