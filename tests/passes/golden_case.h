// SPDX-License-Identifier: Apache-2.0
// Golden texts of passes: a file <pass>.<case>.txt holds "# why", "passes: a,b", "profile: p" if it is not
// portable, "memory_limit: bytes" or "precision: bf16" if there is one, "--- input" and "--- output".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/type.h"

namespace lockstep::passes {

struct GoldenCase {
  std::filesystem::path path;
  std::string header, input, output;
  std::vector<std::string> passes;
  std::string profile = "portable";
  uint64_t memory_limit = 0;
  std::optional<graph::DType> precision;  ///< of autocast
};

/// The .txt files of a folder of the repository, sorted.
std::vector<std::filesystem::path> goldenFiles(std::string_view folder);
GoldenCase readGolden(const std::filesystem::path& path);
/// "fold_constants_identities" for a test's name.
std::string goldenName(const std::filesystem::path& path);
/// The output as a golden records it: a kernel or function that the pass left as it was in the input, both as printed, is one line.
std::string shortened(const std::string& output, const std::string& input);
/// Whoever reads a golden should see all of it at once.
inline constexpr size_t kMostGoldenLines = 96;
/// Compares a text with the recorded output; LOCKSTEP_UPDATE_GOLDENS=1 writes it instead, unless the test has failed already.
void expectGolden(const GoldenCase& golden, const std::string& text);

}  // namespace lockstep::passes
