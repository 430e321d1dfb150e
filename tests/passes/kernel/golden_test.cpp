// SPDX-License-Identifier: Apache-2.0
// Golden texts of kernel passes. Every case also checks that the output is valid, that its text is a fixpoint and that the last pass leaves
// its own result alone.
#include "tests/passes/golden_case.h"

#include <gtest/gtest.h>

#include "passes/kernel/kernel_pipeline.h"

namespace lockstep::passes {
namespace {

class Golden : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(KernelPasses, Golden, testing::ValuesIn(goldenFiles("tests/passes/kernel/data")),
                         [](const auto& info) { return goldenName(info.param); });

TEST_P(Golden, output_is_as_recorded) {
  GoldenCase golden = readGolden(GetParam());
  kernel::Module input = kernel::parse(golden.input, GetParam().filename().string()).orThrow();
  ASSERT_TRUE(kernel::validate(input).ok()) << toString(kernel::validate(input).diagnostics());
  kernel::Module output = runKernelPasses(input, golden.passes).orThrow();
  auto valid = kernel::validate(output);
  ASSERT_TRUE(valid.ok()) << toString(valid.diagnostics());
  std::string text = print(canonical(output, true));
  EXPECT_EQ(print(kernel::parse(text).orThrow()), text) << "the text is no fixpoint";
  EXPECT_EQ(print(canonical(runKernelPasses(output, {golden.passes.back()}).orThrow(), true)), text) << "the pass is not idempotent";
  expectGolden(golden, shortened(text, print(canonical(input, true))));
}

// A pass without a text that shows what it does would go unseen.
TEST(KernelPasses, each_has_a_golden_text) {
  for (const KernelPassInfo& pass : listKernelPasses()) {
    bool found = false;
    for (const auto& file : goldenFiles("tests/passes/kernel/data")) found = found || readGolden(file).passes.back() == pass.name;
    EXPECT_TRUE(found) << pass.name;
  }
}

TEST(KernelPasses, unknown_pass_is_refused_with_the_known_ones) {
  auto result = runKernelPasses({}, {"foldConstant"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "pipeline.pass");
  EXPECT_NE(result.diagnostics().front().remedy.find("foldConstants"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::passes
