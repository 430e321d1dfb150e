// SPDX-License-Identifier: Apache-2.0
// Each data/*.wgsl is read and compared with the .kir beside it. LOCKSTEP_UPDATE_GOLDENS=1 rewrites the .kir files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

TEST(Golden, everyFile_whenRead_givesTheRecordedIr) {
  const bool update = std::getenv("LOCKSTEP_UPDATE_GOLDENS") != nullptr;
  const auto files = dataFiles();
  ASSERT_GE(files.size(), 8u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const std::string source = readFile(path);
    const std::string text = kernel::print(readGood(source, optionsOf(source)));
    std::filesystem::path golden = path;
    golden.replace_extension(".kir");
    if (update) std::ofstream(golden, std::ios::binary) << text;
    EXPECT_EQ(text, readFile(golden));
  }
}

TEST(Golden, everyRecordedIr_belongsToAText) {
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/frontend/wgsl/data")) {
    std::filesystem::path source = entry.path();
    source.replace_extension(".wgsl");
    EXPECT_TRUE(std::filesystem::exists(source)) << entry.path();
  }
}

TEST(Golden, locations_pointToTheExpression) {
  const kernel::Module module = readGood("fn f(a: i32) -> i32 {\n  let b = a *\n      2;\n  return b - 1;\n}\n");
  ASSERT_EQ(module.instructions.size(), 3u);
  const auto place = [&](size_t i) { return toString(module.locations[module.instructions[i].location - 1]); };
  EXPECT_EQ(place(0), "kernel.wgsl:2:11");
  EXPECT_EQ(place(1), "kernel.wgsl:4:10");
  EXPECT_EQ(place(2), "kernel.wgsl:4:3");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
