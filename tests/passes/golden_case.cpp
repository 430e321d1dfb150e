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
  GoldenCase out{.path = path, .header = {}, .input = {}, .output = {}, .passes = {}, .profile = "portable", .memory_limit = 0};
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

void expectGolden(const GoldenCase& golden, const std::string& text) {
  if (std::getenv("LOCKSTEP_UPDATE_GOLDENS") != nullptr && !testing::Test::HasFailure()) {
    std::ofstream(golden.path) << golden.header << "--- input\n" << golden.input << "--- output\n" << text;
    return;
  }
  EXPECT_EQ(text, golden.output) << "run ./dev update-goldens and read git diff";
}

}  // namespace lockstep::passes
