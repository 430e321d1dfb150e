// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "tests/house/rules.h"

namespace lockstep::house {
namespace {

const std::filesystem::path kRoot = LOCKSTEP_SOURCE_DIR;

std::string textOf(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

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

TEST(SourceRules, every_error_is_explained) {
  const std::string errors = textOf(kRoot / "docs/errors.md"), ops = textOf(kRoot / "docs/ops.md");
  for (const SourceFile& file : readSources(kRoot)) {
    if (file.path.starts_with("tests/") || file.path.starts_with("bench/") || file.path.starts_with("examples/")) continue;
    for (const std::string& violation : checkErrorCodes(file, errors, ops)) ADD_FAILURE() << violation;
  }
}

TEST(SourceRules, broken_rules_are_noticed) {
  const SourceFile failing{.path = "passes/a.cpp",
                           .text = "fail(\"grad.C1\", m); // \"grad.C2\"\nopen(\"a.graph\");\n{.code = \"add.C2\"}"};
  EXPECT_EQ(errorCodesOf(failing), (std::vector<std::string>{"grad.C1", "add.C2"}));
  EXPECT_EQ(checkErrorCodes(failing, "| `grad.C1` |", "\n### add\n\n- C2: b\n").size(), 0u);
  EXPECT_EQ(checkErrorCodes(failing, "| `grad.C10` |", "\n### add\n\n- C1: a\n\n### sub\n\n- C2: b\n").size(), 2u);
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
