// SPDX-License-Identifier: Apache-2.0
// Findings without an instruction of their own: what a kernel does before its first one.
#include <gtest/gtest.h>

#include "backends/reference/dispatch.h"
#include "backends/reference/sanitize/watch.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::reference {
namespace {

kernel::Module readModule() {
  return wgsl::read(R"(@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  y[id.y * groups.x * 8u + id.x] = 1u;
}
)",
                    {.file_name = "k.wgsl", .overrides = {}})
      .orThrow();
}

TEST(Findings, of_no_instruction_have_no_place) {
  const kernel::Module module = readModule();
  const Bytecode code = decodeWatched(module, {}, {.indices = true}).orThrow();
  std::vector<uint32_t> words(64);
  const BufferView buffer{.words = words.data(), .count = 64};
  Watch watch(code, {&buffer, 1}, {});
  watch.add({.code = FindingCode::Wrap, .site = 0, .invocation = 0, .exact = 0x1p32});
  watch.add({.code = FindingCode::RaceStorage, .site = 0, .other_site = 0, .variable = 0});
  const std::vector<Finding> findings = findingsOf(watch, code, module, "main", {1, 1, 1});
  ASSERT_EQ(findings.size(), 2u);
  for (const Finding& finding : findings) EXPECT_EQ(finding.diagnostic.where, Location{}) << toString(finding);
  EXPECT_TRUE(toString(findings[0]).starts_with("error: integer.wrap: 4294967296 does not fit")) << toString(findings[0]);
}

TEST(Findings, of_a_builtin_that_wraps_are_where_it_is_an_index) {
  const Bytecode code = decodeWatched(readModule(), {}, {.indices = true, .integers = true}).orThrow();
  ASSERT_EQ(code.expressions.size(), 1u);
  size_t of_builtins = 0;
  for (const IndexExpression::Node& node : code.expressions[0].nodes) {
    EXPECT_NE(node.site, 0u);
    of_builtins += !node.is_leaf && node.site == code.expressions[0].nodes[0].site ? 1 : 0;
  }
  EXPECT_GE(of_builtins, 2u) << "id.x and id.y are products and sums";
}

}  // namespace
}  // namespace lockstep::reference
