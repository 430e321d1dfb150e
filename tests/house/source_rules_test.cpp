// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <set>

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

TEST(SourceRules, the_drawing_has_every_room_and_no_other) {
  const std::string drawing = textOf(kRoot / "docs/images/house.svg");
  std::set<std::string> rooms, drawn;
  for (const SourceFile& file : readSources(kRoot)) rooms.insert(file.path.substr(0, file.path.find('/') + 1));
  const std::string mark = "class=\"room\">";
  for (size_t at = drawing.find(mark); at != std::string::npos; at = drawing.find(mark, at + 1)) {
    const std::string name = drawing.substr(at + mark.size(), drawing.find('<', at + mark.size()) - at - mark.size());
    if (name.ends_with('/')) drawn.insert(name);
  }
  EXPECT_EQ(drawn, rooms);
}

TEST(SourceRules, every_error_is_explained) {
  const std::string errors = textOf(kRoot / "docs/errors.md"), ops = textOf(kRoot / "docs/ops.md");
  for (const SourceFile& file : readSources(kRoot)) {
    if (file.path.starts_with("tests/") || file.path.starts_with("bench/") || file.path.starts_with("examples/models/")) continue;
    for (const std::string& violation : checkErrorCodes(file, errors, ops)) ADD_FAILURE() << violation;
  }
}

TEST(SourceRules, every_error_can_be_linked_to) {
  for (const std::string& violation : checkErrorPage(textOf(kRoot / "docs/errors.md"))) ADD_FAILURE() << violation;
}

TEST(SourceRules, docs_environment_has_every_variable_and_no_other) {
  std::set<std::string> read;
  std::vector<SourceFile> files = readSources(kRoot);
  for (const char* script : {"dev", ".ci/tidy", ".ci/format", ".ci/run", "tests/whole_program.sh"})
    files.push_back({.path = script, .text = textOf(kRoot / script)});
  for (const SourceFile& file : files) {
    if (file.path.starts_with("tests/house/")) continue;
    for (const std::string& violation : checkVariables(file)) ADD_FAILURE() << violation;
    for (const std::string& name : variablesOf(file)) read.insert(name);
  }
  EXPECT_TRUE(read.contains("VK_DRIVER_FILES") && read.contains("NO_COLOR") && read.contains("LOCKSTEP_PRESET"));
  const std::vector<std::string> listed = documentedVariables(textOf(kRoot / "docs/environment.md"));
  const std::set<std::string> documented(listed.begin(), listed.end());
  EXPECT_EQ(documented.size(), listed.size()) << "a variable has two rows";
  EXPECT_EQ(documented, read);
}

TEST(SourceRules, variables_are_found_and_hidden_ones_noticed) {
  const SourceFile plain{.path = "a.cpp", .text = "std::getenv(\"HOME\"); for (const char* variable : {\"VK_A\", \"VK_B\"}) x(\"C\");"};
  EXPECT_EQ(variablesOf(plain), (std::vector<std::string>{"HOME", "VK_A", "VK_B"}));
  EXPECT_EQ(variablesOf({.path = "dev", .text = "a=\"${A_B:-3}\" b=\"${local}\""}), std::vector<std::string>{"A_B"});
  EXPECT_EQ(checkVariables(plain).size(), 0u);
  EXPECT_EQ(checkVariables({.path = "a.cpp", .text = "std::getenv(name)"}).size(), 1u);
  EXPECT_EQ(documentedVariables("| `A`, `B` | as `C` |\n`D`\n"), (std::vector<std::string>{"A", "B"}));
}

TEST(SourceRules, broken_anchors_are_noticed) {
  EXPECT_EQ(checkErrorPage("| <a id=\"a.b\"></a>`a.b`, `<op>.C1` | as `c.d` |\n").size(), 0u);
  EXPECT_EQ(checkErrorPage("| `a.b` | what it means |\n").size(), 1u);
  EXPECT_EQ(checkErrorPage("| <a id=\"a.c\"></a>`a.b` | what it means |\n").size(), 2u);
  EXPECT_EQ(checkErrorPage("| <a id=\"a.b\"></a>`a.b` | one |\n| <a id=\"a.b\"></a>`a.b` | two |\n").size(), 1u);
}

TEST(SourceRules, broken_rules_are_noticed) {
  const SourceFile failing{.path = "passes/a.cpp",
                           .text = "fail(\"grad.C1\", m); // \"grad.C2\"\nopen(\"a.graph\");\n{.code = \"add.C2\"}"};
  EXPECT_EQ(errorCodesOf(failing), (std::vector<std::string>{"grad.C1", "add.C2"}));
  const SourceFile composing{.path = "frontend/ops/losses.cpp",
                             .text = "check(\"mse\", x);  // usage(\"comment\")\nreturn usage(\n    \"limits\", y);"};
  EXPECT_EQ(errorCodesOf(composing), (std::vector<std::string>{"usage.limits", "mse.C1", "mse.C2"}));
  EXPECT_EQ(checkErrorCodes(failing, "| <a id=\"grad.C1\"></a>`grad.C1` |", "\n### add\n\n- C2: b\n").size(), 0u);
  EXPECT_EQ(checkErrorCodes(failing, "| <a id=\"grad.C10\"></a>`grad.C10` |", "\n### add\n\n- C1: a\n\n### sub\n\n- C2: b\n").size(), 2u);
  EXPECT_EQ(checkOpChoice({.path = "passes/fuse/fuse.cpp", .text = "switch (node.op) {"}).size(), 1u);
  const std::string chain = "op->name == \"a\" op->name == \"b\" op->name != \"c\" op->name == \"d\"";
  EXPECT_EQ(checkOpChoice({.path = "passes/emit/emit.cpp", .text = chain}).size(), 1u);
  EXPECT_EQ(checkOpChoice({.path = "passes/emit/emit.cpp", .text = "op->name == \"a\" op->name == \"a\""}).size(), 0u);
  EXPECT_EQ(checkOpChoice({.path = "backends/reference/machine.cpp", .text = "switch (x.op) {"}).size(), 0u);
  EXPECT_EQ(checkForm({.path = "passes/a.cpp", .text = "int x;\n"}).size(), 1u);
  EXPECT_EQ(checkForm({.path = "passes/a.h", .text = "// SPDX-License-Identifier: Apache-2.0\nint x;\n"}).size(), 1u);
  EXPECT_EQ(checkForm({.path = "passes/a.cpp", .text = "// SPDX-License-Identifier: Apache-2.0\n" + std::string(801, '\n')}).size(), 1u);
}

}  // namespace
}  // namespace lockstep::house
