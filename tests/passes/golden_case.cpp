// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/golden_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace lockstep::passes {

namespace fs = std::filesystem;

std::vector<fs::path> goldenFiles(std::string_view folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(LOCKSTEP_SOURCE_DIR) / folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

GoldenCase readGolden(const fs::path& path) {
  std::ifstream file(path);
  GoldenCase out{
      .path = path, .header = {}, .input = {}, .output = {}, .passes = {}, .profile = "portable", .memory_limit = 0, .precision = {}};
  std::string* section = &out.header;
  for (std::string line; std::getline(file, line);) {
    if (line == "--- input") {
      section = &out.input;
    } else if (line == "--- output") {
      section = &out.output;
    } else {
      if (section == &out.header && line.starts_with("passes: ")) {
        std::stringstream names(line.substr(8));
        for (std::string name; std::getline(names, name, ',');) out.passes.push_back(name);
      }
      if (section == &out.header && line.starts_with("profile: ")) out.profile = line.substr(9);
      if (section == &out.header && line.starts_with("memory_limit: ")) out.memory_limit = std::stoull(line.substr(14));
      if (section == &out.header && line.starts_with("precision: ")) out.precision = graph::findDType(line.substr(11));
      *section += line + "\n";
    }
  }
  EXPECT_FALSE(out.passes.empty()) << path << " names no pass";
  EXPECT_FALSE(out.input.empty()) << path << " has no input";
  return out;
}

std::string goldenName(const fs::path& path) {
  std::string name = path.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

namespace {

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The lines between "kernel @f {" or "fn @f() {" at `head` and the "}" of that line; none for any other line.
std::vector<std::string> bodyAt(const std::vector<std::string>& lines, size_t head) {
  if ((!lines[head].starts_with("kernel @") && !lines[head].starts_with("fn @")) || !lines[head].ends_with("{")) return {};
  const auto first = lines.begin() + static_cast<std::ptrdiff_t>(head) + 1;
  return {first, std::find(first, lines.end(), "}")};
}

}  // namespace

std::string shortened(const std::string& output, const std::string& input) {
  const std::vector<std::string> before = linesOf(input), after = linesOf(output);
  std::vector<std::vector<std::string>> known;
  for (size_t i = 0; i < before.size(); ++i) known.push_back(bodyAt(before, i));
  std::string text;
  for (size_t i = 0; i < after.size(); ++i) {
    text += after[i] + "\n";
    const std::vector<std::string> body = bodyAt(after, i);
    if (body.size() < 2 || std::find(known.begin(), known.end(), body) == known.end()) continue;
    text += "  as in the input\n";
    i += body.size();
  }
  return text;
}

void expectGolden(const GoldenCase& golden, const std::string& text) {
  if (std::getenv("LOCKSTEP_UPDATE_GOLDENS") != nullptr && !testing::Test::HasFailure()) {
    std::ofstream(golden.path) << golden.header << "--- input\n" << golden.input << "--- output\n" << text;
    return;
  }
  EXPECT_EQ(text, golden.output) << "run ./dev update-goldens and read git diff";
}

}  // namespace lockstep::passes
