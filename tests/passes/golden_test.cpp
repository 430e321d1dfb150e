// SPDX-License-Identifier: Apache-2.0
// Golden texts of passes. Every case also checks that the output is valid, that its text is a fixpoint, that the pass is deterministic
// and that the meaning is the same (golden_meaning.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "passes/pipeline.h"
#include "tests/passes/golden_case.h"
#include "tests/passes/golden_meaning.h"

namespace lockstep::passes {
namespace {

class Golden : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(Passes, Golden, testing::ValuesIn(goldenFiles("tests/passes/data")),
                         [](const auto& info) { return goldenName(info.param); });

TEST_P(Golden, output_is_as_recorded) {
  GoldenCase golden = readGolden(GetParam());
  Form input = parseForm(golden.input, GetParam().filename().string()).orThrow();
  CompileOptions options;
  options.optimizer = OptimizerConfig{};
  options.profile = program::findProfile(golden.profile).orThrow();
  options.memory_limit = golden.memory_limit;
  options.low = golden.precision;
  Form output = runPasses(input, golden.passes, options).orThrow();
  std::string text = print(output);
  EXPECT_EQ(print(parseForm(text, "output").orThrow()), text) << "the text is no fixpoint";
  EXPECT_EQ(print(runPasses(input, golden.passes, options).orThrow()), text) << "the pass is not deterministic";
  if (golden.passes.back() == "emit") {
    auto valid = program::validate(std::get<program::Program>(output));
    EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics());
  }
  expectSameMeaning(input, output, golden.precision);
  expectGolden(golden, shortened(text, print(input)));
}

TEST(GoldenTexts, none_is_longer_than_a_screen) {
  for (const char* folder : {"tests/passes/data", "tests/passes/kernel/data"}) {
    for (const auto& path : goldenFiles(folder)) {
      std::ifstream file(path);
      const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
      EXPECT_LE(static_cast<size_t>(lines), kMostGoldenLines) << path << ": make the input smaller, or several goldens of it";
    }
  }
}

TEST(GoldenTexts, what_a_pass_left_alone_is_one_line) {
  const std::string input = "kernel @a {\n  x\n  y\n}\nkernel @b {\n  x\n  z\n}\n";
  EXPECT_EQ(shortened(input, input), "kernel @a {\n  as in the input\n}\nkernel @b {\n  as in the input\n}\n");
  EXPECT_EQ(shortened("kernel @k1_a {\n  x\n  y\n}\nend\n", input), "kernel @k1_a {\n  as in the input\n}\nend\n");
  const std::string changed = "kernel @a {\n  x\n  changed\n}\n";
  EXPECT_EQ(shortened(changed, input), changed);
}

}  // namespace
}  // namespace lockstep::passes
