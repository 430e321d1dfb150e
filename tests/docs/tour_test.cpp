// SPDX-License-Identifier: Apache-2.0
// docs/tour.md quotes a dump: every line of a block is in the file that the block names, in this order.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/docs/page.h"
#include "tests/tools/cli/process.h"

namespace lockstep::testing {
namespace {

TEST(Tour, quotes_what_is_dumped) {
  ScratchDirectory scratch("tour");
  const Outcome outcome = runTool(scratch, "train sine --steps 1 --no-out --device vulkan --dump-ir " + (scratch / "dump").string());
  if (outcome.status == 3) GTEST_SKIP() << "there is no Vulkan device";
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string page = readPage("tour.md");
  static const std::regex fence("\n```([0-9a-zA-Z_.-]+)\n");
  size_t blocks = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), fence), end; match != end; ++match, ++blocks) {
    const std::string name = (*match)[1];
    const Result<std::string> dumped = io::readTextFile(scratch / ("dump/" + name));
    ASSERT_TRUE(dumped.ok()) << name;
    for (const std::string& block : blocksOf(page, name)) {
      std::istringstream lines(block);
      size_t at = 0;
      for (std::string line; std::getline(lines, line);) {
        const size_t found = dumped->find(line, at);
        EXPECT_NE(found, std::string::npos) << name << " has no line\n" << line;
        if (found != std::string::npos) at = found + line.size();
      }
    }
  }
  EXPECT_EQ(blocks, 5u);
}

}  // namespace
}  // namespace lockstep::testing
