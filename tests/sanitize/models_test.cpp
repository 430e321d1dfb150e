// SPDX-License-Identifier: Apache-2.0
// Findings in kernels that the compiler emitted lead to the model.
#include <gtest/gtest.h>

#include <limits>

#include <lockstep/lockstep.h>

namespace {

struct Scale : ls::Module {
  ls::Parameter by{*this, "by", {4}, ls::init::constant(2)};
};

TEST(ModelFindings, name_the_line_of_the_operation_and_the_kernel) {
  uint32_t line = 0;
  auto trainer = ls::compile<Scale>({
      .inputs = {{"x", ls::f32(4)}},
      .loss =
          [&](const Scale& scale, const ls::Inputs& in) {
            const ls::Tensor scaled = scale.by * in["x"];
            line = __LINE__ + 1;
            const ls::Tensor likelihood = ls::log(scaled);
            return ls::mean(likelihood) * 3.0f;
          },
      .device = "sanitizer",
  });
  EXPECT_FALSE(trainer.step({{"x", std::vector<float>{1, 0, 3, 4}}}).completed());
  const std::vector<ls::Finding> findings = trainer.findings();
  ASSERT_FALSE(findings.empty());
  const ls::Finding& first = findings.front();
  EXPECT_EQ(first.diagnostic.code, "float.not_finite");
  EXPECT_TRUE(first.diagnostic.where.file.ends_with("models_test.cpp")) << ls::toString(first);
  EXPECT_EQ(first.diagnostic.where.line, line) << ls::toString(first);
  EXPECT_TRUE(first.invocation.starts_with("kernel ")) << first.invocation;
}

TEST(ModelFindings, are_none_where_nothing_is_wrong) {
  auto trainer = ls::compile<Scale>({
      .inputs = {{"x", ls::f32(4)}},
      .loss = [](const Scale& scale, const ls::Inputs& in) { return ls::mean(ls::square(scale.by * in["x"])); },
      .device = "sanitizer:all,error",
  });
  EXPECT_TRUE(trainer.step({{"x", std::vector<float>{1, 0, 3, 4}}}).completed());
  EXPECT_TRUE(trainer.findings().empty());
}

}  // namespace
