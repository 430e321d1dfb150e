// SPDX-License-Identifier: Apache-2.0
#include "passes/dump.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace lockstep::passes {

using graph::Graph;
using program::Program;

namespace {

Status writeText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    return fail("dump.write", fmt::format("cannot write '{}'", path.string()), {}, "check that the folder exists and is writable");
  return Success{};
}

}  // namespace

Status dumpForm(const std::string& directory, size_t number, std::string_view name, const Form& form) {
  if (directory.empty()) return Success{};
  const std::filesystem::path folder(directory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto* graph = std::get_if<Graph>(&form);
  const std::string stem = fmt::format("{:02}-{}", number, name);
  // The same lines with the places in the user's source: apart, so that two stages can be compared without them.
  if (graph != nullptr) LS_CHECK(writeText(folder / (stem + ".located"), graph::print(*graph, true)));
  return writeText(folder / (stem + (graph != nullptr ? ".graph" : ".program")), print(form));
}

Status dumpRecords(const std::string& directory, const std::vector<PassRecord>& records) {
  if (directory.empty()) return Success{};
  std::string text;
  for (const PassRecord& record : records) {
    text += fmt::format("{}\t{:.6f}\t{}\t{}\n", record.name, record.seconds, record.changed ? "changed" : "unchanged", record.statistics);
  }
  return writeText(std::filesystem::path(directory) / "passes.txt", text);
}

Status dumpKernels(const std::string& directory, const Program& program) {
  if (directory.empty()) return Success{};
  for (const program::Kernel& kernel : program.kernels) {
    const std::filesystem::path file = std::filesystem::path(directory) / fmt::format("{}.kir", kernel.name);
    LS_CHECK(writeText(file, print(std::get<kernel::Module>(kernel.code))));
  }
  return Success{};
}

}  // namespace lockstep::passes
