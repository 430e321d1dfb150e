// SPDX-License-Identifier: Apache-2.0
// Parts of documents that are made from tables of the program.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace lockstep::testing {

/// What stands in the file between the lines "<!-- table -->" and "<!-- end of table -->" must be `text`; with LOCKSTEP_UPDATE_GOLDENS
/// set it is replaced instead. `name` is the word of the markers.
inline void expectGeneratedText(const std::filesystem::path& path, const std::string& text, const std::string& name = "table") {
  const std::string begin = "<!-- " + name + " -->\n", end = "<!-- end of " + name + " -->\n";
  std::stringstream stream;
  stream << std::ifstream(path).rdbuf();
  const std::string document = stream.str();
  size_t from = document.find(begin), to = document.find(end);
  ASSERT_NE(from, std::string::npos) << path << " has no line " << begin;
  ASSERT_NE(to, std::string::npos) << path << " has no line " << end;
  from += begin.size();
  if (std::getenv("LOCKSTEP_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path) << document.substr(0, from) << text << document.substr(to);
    return;
  }
  EXPECT_EQ(document.substr(from, to - from), text) << path << ": run ./dev update-goldens";
}

}  // namespace lockstep::testing
