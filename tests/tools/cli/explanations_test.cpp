// SPDX-License-Identifier: Apache-2.0
// `lockstep explain` has an answer for everything that an error or a warning is called.
#include "tools/explain/explanations.h"

#include <gtest/gtest.h>

#include "frontend/wgsl/check/diagnostic_filters.h"
#include "tests/house/rules.h"

namespace lockstep::tools {
namespace {

TEST(Explanations, every_code_of_the_sources_has_one) {
  size_t codes = 0;
  for (const house::SourceFile& file : house::readSources(LOCKSTEP_SOURCE_DIR)) {
    // Names of captures are written like codes.
    if (file.path.starts_with("tests/") || file.path.starts_with("bench/") || file.path.starts_with("examples/models/")) continue;
    for (const std::string& code : house::errorCodesOf(file)) {
      ++codes;
      EXPECT_TRUE(explanationOf(code).has_value()) << file.path << ": " << code;
    }
  }
  EXPECT_GT(codes, 500u);
}

TEST(Explanations, every_rule_of_wgsl_has_one) {
  for (size_t rule = 0; rule < wgsl::kDiagnosticRules; ++rule) {
    const std::string name(toString(static_cast<wgsl::DiagnosticRule>(rule)));
    const auto found = explanationOf(name);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_EQ(found->anchor, name);
  }
}

TEST(Explanations, parts_that_vary_fit_names_only) {
  const auto call = explanationOf("vulkan.vkQueueSubmit");
  ASSERT_TRUE(call.has_value());
  EXPECT_TRUE(call->meaning.starts_with("the Vulkan function of this name failed"));
  EXPECT_EQ(call->anchor, "");
  EXPECT_TRUE(explanationOf("cumsum.axis").has_value());
  for (const char* wrong : {"vulkan.", "vulkan.<call>", "vulkan.vk Queue", ".axis", "matmul.C33", "nothing"}) {
    EXPECT_FALSE(explanationOf(wrong).has_value()) << wrong;
  }
  for (const std::string& code : explainedCodes()) EXPECT_TRUE(explanationOf(code).has_value()) << code;
}

}  // namespace
}  // namespace lockstep::tools
