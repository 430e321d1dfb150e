// SPDX-License-Identifier: Apache-2.0
// Kernels with mistakes that `check` sees without running them, and kernels that look like them and have none: what it says is what is
// marked, line by line.
#include <gtest/gtest.h>

#include <set>

#include "frontend/wgsl/check/limits.h"
#include "frontend/wgsl/wgsl.h"
#include "tests/sanitize/case_file.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep {
namespace {

using testing::Case;

std::vector<Case> allCases() { return testing::readCases({"lints.txt", "mamba_defects.txt", "ordinary_kernels.txt"}); }

class Lints : public ::testing::TestWithParam<Case> {};

TEST_P(Lints, find_what_is_marked_and_nothing_else) {
  const Case& one = GetParam();
  const auto groups = one.words.contains("dispatch") ? tools::parseGroups(one.words.at("dispatch")).orThrow() : std::array<uint32_t, 3>{};
  std::vector<wgsl::Warning> warnings;
  std::vector<Diagnostic> errors =
      wgsl::check(one.text, {.file_name = "kernel.wgsl", .overrides = {}, .groups = groups, .warnings = &warnings});
  if (one.words.contains("limits") && errors.empty()) {
    const wgsl::Reflection reflection = wgsl::reflect(one.text).orThrow();
    errors = wgsl::checkLimits(reflection, wgsl::portableLimits());
    for (Diagnostic& each : wgsl::checkDispatch(reflection, groups, wgsl::portableLimits())) errors.push_back(std::move(each));
    for (Diagnostic& each : wgsl::checkSharedGroups(reflection)) warnings.push_back({.diagnostic = std::move(each)});
    for (Diagnostic& each : wgsl::checkHeadroom(reflection, wgsl::portableLimits())) warnings.push_back({.diagnostic = std::move(each)});
  }
  std::set<std::pair<uint32_t, std::string>> found;
  std::string all = wgsl::renderDiagnostics(errors, one.text) + wgsl::renderWarnings(warnings, one.text);
  for (const Diagnostic& error : errors) found.emplace(error.where.line, "error " + error.code);
  for (const wgsl::Warning& warning : warnings) {
    found.emplace(warning.diagnostic.where.line, warning.diagnostic.code);
    EXPECT_FALSE(warning.diagnostic.remedy.empty()) << warning.diagnostic.message;
  }
  EXPECT_EQ(found, one.marks) << all;
  EXPECT_EQ(one.marks.empty(), one.name.starts_with("ok_") || one.name.starts_with("allowed_"));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Lints, ::testing::ValuesIn(allCases()), [](const auto& info) { return info.param.name; });

TEST(LintRules, make_errors_of_what_they_find_in_every_reader) {
  const std::string text =
      "diagnostic(error, lockstep.unused);\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {}\n";
  EXPECT_EQ(wgsl::check(text).front().code, "lint.unused");
  EXPECT_EQ(wgsl::read(text).diagnostics().front().code, "lint.unused");
}

TEST(LintRules, unknown_ones_are_told_once) {
  const std::string text = "diagnostic(off, other.rule);\n@diagnostic(off, other.rule) fn f() {}\n@diagnostic(off, third) fn g() {}\n";
  std::vector<wgsl::Warning> warnings;
  EXPECT_TRUE(wgsl::check(text, {.overrides = {}, .warnings = &warnings}).empty());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].diagnostic.code, "wgsl.name");
  EXPECT_EQ(warnings[1].diagnostic.where.line, 3u);
}

/// Work that grew with the square of the module would run into the time limit of the test.
TEST(LintRules, large_modules_are_looked_at_too) {
  std::string text = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n";
  for (int f = 0; f < 2000; ++f) {
    text += "fn part" + std::to_string(f) +
            "(i: u32) { var v = x[i]; for (var k = 0u; k < 8u; k++) { v = exp(v) * 0.5; if (v > 2.0) { v -= 1.0; } } x[i] = v; }\n";
  }
  text += "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n";
  for (int f = 0; f < 2000; ++f) text += "part" + std::to_string(f) + "(id.x);\n";
  text += "}\n";
  std::vector<wgsl::Warning> warnings;
  const auto errors = wgsl::check(text, {.overrides = {}, .warnings = &warnings});
  EXPECT_TRUE(errors.empty()) << toString(errors);
  EXPECT_TRUE(warnings.empty()) << wgsl::renderWarnings(warnings, text).substr(0, 1000);
}

}  // namespace
}  // namespace lockstep
