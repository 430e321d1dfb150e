// SPDX-License-Identifier: Apache-2.0
// The rules of the house as functions on one file's text, so that tests can show each of them broken.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::house {

struct SourceFile {
  std::string path;  ///< from the root: "passes/graph/grad.cpp"
  std::string text;
};

/// Every .h and .cpp below the folders of the house, sorted by path.
std::vector<SourceFile> readSources(const std::filesystem::path& root);

struct Include {
  std::string name;
  bool quoted = false;  ///< "..." and not <...>
  int line = 0;
};
std::vector<Include> includesOf(const SourceFile& file);

/// "passes/graph/grad.cpp:12: ..." for each broken rule.
using Violations = std::vector<std::string>;

/// Quoted includes are paths from the root that exist, and point down the house only.
Violations checkDirection(const SourceFile& file, const std::filesystem::path& root);
/// vulkan.h, TBB, glslang, nlohmann and the like stay in the folders that own them and out of headers that others include.
Violations checkLibraries(const SourceFile& file);
/// Outside of ir/ops nothing chooses by graph op: no switch over `op`, no chain of comparisons with op names.
Violations checkOpChoice(const SourceFile& file);
/// The codes of diagnostics that a file makes: string literals "area.name" that are not the names of files, in the order of the text, then
/// what functions such as usage("value", ...) put together.
std::vector<std::string> errorCodesOf(const SourceFile& file);
/// Each of them stands in docs/errors.md with its anchor, or is a constraint in docs/ops.md.
Violations checkErrorCodes(const SourceFile& file, const std::string& errors_page, const std::string& ops_page);
/// In docs/errors.md every code in the first column of a table stands behind an anchor of its own name, and no anchor is there twice.
Violations checkErrorPage(const std::string& errors_page);
/// The names of environment variables that a file reads, in the order of the text: "X" of getenv("X") and environment("X"), and each name
/// of `for (const char* variable : {"X", "Y"})`. In shell scripts X of ${X:-...}.
std::vector<std::string> variablesOf(const SourceFile& file);
/// getenv() of something else than a literal, which variablesOf() would not see; a few files with a helper are known.
Violations checkVariables(const SourceFile& file);
/// The names in the first column of the tables of docs/environment.md.
std::vector<std::string> documentedVariables(const std::string& page);
/// The licence line, #pragma once, and the lengths of style.
Violations checkForm(const SourceFile& file);

}  // namespace lockstep::house
