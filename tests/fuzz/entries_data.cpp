// SPDX-License-Identifier: Apache-2.0
// The readers of files that no kernel text is in.
#include "frontend/io/idx.h"
#include "frontend/io/mbjs.h"
#include "frontend/io/npy.h"
#include "frontend/io/npz.h"
#include "frontend/io/safetensors.h"
#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/promises.h"

namespace lockstep::fuzz {

bool readGraph(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return graph::parse(text); };
  const Result<graph::Graph> graph = parse(textOf(input));
  requireAnswer(graph);
  if (!graph.ok()) return false;
  requireStableText(*graph, parse);
  requireAnswer(graph::validate(*graph));
  return true;
}

bool readProgram(std::span<const std::byte> input) {
  const auto parse = [](std::string_view text) { return program::parse(text); };
  const Result<program::Program> program = parse(textOf(input));
  requireAnswer(program);
  if (!program.ok()) return false;
  requireStableText(*program, parse);
  requireAnswer(program::validateStructure(*program));
  requireAnswer(program::validate(*program));
  return true;
}

namespace {

void requireElements(const io::Array& array) {
  require(array.toDoubles().size() == array.elementCount(), "an array has the elements of its shape");
}

}  // namespace

bool readSafetensors(std::span<const std::byte> input) {
  const Result<io::TensorFile> file = io::parseSafetensors(input, "input");
  requireAnswer(file);
  if (!file.ok()) return false;
  for (const auto& [name, array] : file->tensors) requireElements(array);
  return true;
}

bool readNpy(std::span<const std::byte> input) {
  const Result<io::Array> array = io::parseNpy(input, "input");
  requireAnswer(array);
  if (!array.ok()) return false;
  requireElements(*array);
  require(io::parseNpy(io::formatNpy(*array), "again").orThrow() == *array, "a written array reads as the same");
  return true;
}

bool readNpz(std::span<const std::byte> input) {
  const Result<io::Arrays> arrays = io::parseNpz(input, "input");
  requireAnswer(arrays);
  if (!arrays.ok()) return false;
  for (const auto& [name, array] : *arrays) requireElements(array);
  const auto compression = input.size() % 2 == 0 ? io::NpzCompression::Stored : io::NpzCompression::Deflated;
  const Result<std::vector<std::byte>> written = io::formatNpz(*arrays, compression);
  requireAnswer(written);
  if (written.ok()) require(io::parseNpz(*written, "again").orThrow() == *arrays, "written arrays read as the same");
  return true;
}

bool readMbjs(std::span<const std::byte> input) {
  const Result<io::MbjsFile> file = io::parseMbjs(input, "input");
  requireAnswer(file);
  if (!file.ok()) return false;
  for (const auto& [name, array] : file->tensors) requireElements(array);
  const std::vector<std::byte> written = io::formatMbjs(*file).orThrow();
  require(io::formatMbjs(io::parseMbjs(written, "again").orThrow()).orThrow() == written, "a written file is written the same again");
  return true;
}

bool readIdx(std::span<const std::byte> input) {
  emptyFolder();
  const Result<io::ByteArray> array = io::readIdx(writeFile("input", input));
  requireAnswer(array);
  if (!array.ok()) return false;
  uint64_t count = 1;
  for (const int64_t extent : array->shape) count *= static_cast<uint64_t>(extent);
  require(array->data.size() == count, "as many bytes as the shape says");
  return true;
}

}  // namespace lockstep::fuzz
