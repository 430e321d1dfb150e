// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/house/rules.h"

namespace lockstep::house {
namespace {

const std::filesystem::path kRoot = LOCKSTEP_SOURCE_DIR;

TEST(SourceRules, only_ops_choose_by_op) {
  for (const SourceFile& file : readSources(kRoot)) {
    for (const std::string& violation : checkOpChoice(file)) ADD_FAILURE() << violation;
  }
}

TEST(SourceRules, every_file_has_its_form) {
  for (const SourceFile& file : readSources(kRoot)) {
    for (const std::string& violation : checkForm(file)) ADD_FAILURE() << violation;
  }
}

TEST(SourceRules, broken_rules_are_noticed) {
  EXPECT_EQ(checkOpChoice({.path = "passes/fuse.cpp", .text = "switch (node.op) {"}).size(), 1u);
  const std::string chain = "op->name == \"a\" op->name == \"b\" op->name != \"c\" op->name == \"d\"";
  EXPECT_EQ(checkOpChoice({.path = "passes/emit.cpp", .text = chain}).size(), 1u);
  EXPECT_EQ(checkOpChoice({.path = "passes/emit.cpp", .text = "op->name == \"a\" op->name == \"a\""}).size(), 0u);
  EXPECT_EQ(checkOpChoice({.path = "backends/reference/machine.cpp", .text = "switch (x.op) {"}).size(), 0u);
  EXPECT_EQ(checkForm({.path = "passes/a.cpp", .text = "int x;\n"}).size(), 1u);
  EXPECT_EQ(checkForm({.path = "passes/a.h", .text = "// SPDX-License-Identifier: Apache-2.0\nint x;\n"}).size(), 1u);
  EXPECT_EQ(checkForm({.path = "passes/a.cpp", .text = "// SPDX-License-Identifier: Apache-2.0\n" + std::string(801, '\n')}).size(), 1u);
}

}  // namespace
}  // namespace lockstep::house
