// SPDX-License-Identifier: Apache-2.0
// Reading, writing and reading again gives the same module: for our own files, and for the recorded programs in the folder that
// LOCKSTEP_CONFORMANCE names.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "conformance/gzip_lines.h"
#include "conformance/recorded_number.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

TEST(RoundTrip, everyDataFile_isTheSameAgain) {
  for (const auto& path : dataFiles()) {
    const std::string source = readFile(path);
    EXPECT_EQ(roundTripProblem(readGood(source, optionsOf(source))), "") << path;
  }
}

/// Programs that the reader does not support are counted; whether it should is a question for `lockstep conformance`.
TEST(RoundTrip, everyRecordedProgram_isTheSameAgain) {
  const char* folder = std::getenv("LOCKSTEP_CONFORMANCE");
  if (folder == nullptr) GTEST_SKIP() << "LOCKSTEP_CONFORMANCE does not name a folder with valid_programs.jsonl.gz";
  auto lines = conformance::GzipLines::open(std::filesystem::path(folder) / "valid_programs.jsonl.gz", conformance::kMostFileBytes);
  ASSERT_TRUE(lines.ok()) << toString(lines.diagnostics());
  size_t same = 0, not_read = 0, different = 0;
  constexpr size_t kShown = 10;
  while (true) {
    auto line = lines->next();
    ASSERT_TRUE(line.ok()) << toString(line.diagnostics());
    if (!*line) break;
    const nlohmann::json program = nlohmann::json::parse(**line);
    const auto module = read(program.at("wgsl").get<std::string>());
    if (!module.ok()) {
      ++not_read;
      continue;
    }
    const std::string problem = roundTripProblem(*module);
    if (problem.empty()) {
      ++same;
    } else if (++different <= kShown) {
      ADD_FAILURE() << program.at("f").get<std::string>() << "\n" << problem;
    }
  }
  fmt::print("{} programs are the same again, {} differ, {} are not read\n", same, different, not_read);
  EXPECT_EQ(different, 0u);
  EXPECT_GT(same, 1000u);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
