// SPDX-License-Identifier: Apache-2.0
// The chain of operations that made a word.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/wgsl/wgsl.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep {
namespace {

Result<tools::KernelResult> explain(const std::string& text, const std::string& input, uint64_t bytes, uint64_t word,
                                    std::array<uint32_t, 3> groups = {1, 1, 1}) {
  tools::KernelRun run{
      .module = wgsl::read(text, {.file_name = "k.wgsl", .overrides = {}}).orThrow(), .entry = {}, .groups = groups, .device = "reference"};
  for (const auto& [slot, value] : {std::pair(tools::Slot{0, 0}, input), std::pair(tools::Slot{0, 1}, "zeros:" + std::to_string(bytes))})
    run.bytes[slot] = tools::makeBytes(value, run.module, *tools::findVariable(run.module, slot)).orThrow();
  run.why = {.slot = {0, 1}, .word = word};
  return tools::runKernel(std::move(run));
}

/// "line depth text"
std::vector<std::string> linesOf(const tools::KernelResult& result) {
  std::vector<std::string> lines;
  for (const WhyLine& line : result.why)
    lines.push_back(std::to_string(line.where.line) + " " + std::to_string(line.depth) + " " + line.text);
  return lines;
}

constexpr const char* kNeighbours = R"(@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
  tile[i] = x[g.x * 4u + i] * 2.0;
  workgroupBarrier();
  y[g.x * 4u + i] = tile[i] - tile[(i + 1u) % 4u];
}
)";

TEST(Why, follows_what_other_invocations_stored) {
  const tools::KernelResult result = explain(kNeighbours, "iota:f32[8]", 32, 6, {2, 1, 1}).orThrow();
  const std::vector<std::string> expected{
      "8 0 y[6] = -2 was stored by workgroup (1, 0, 0), local (2, 0, 0)",
      "8 1 -2 = 12 - 14",
      "8 2 tile[2] = 12 was read",
      "6 3 tile[2] = 12 was stored by workgroup (1, 0, 0), local (2, 0, 0)",
      "6 4 12 = 6 * 2",
      "6 5 x[6] = 6 was read, as it was before this workgroup ran",
      "8 2 tile[3] = 14 was read",
      "6 3 tile[3] = 14 was stored by workgroup (1, 0, 0), local (3, 0, 0)",
      "6 4 14 = 7 * 2",
      "6 5 x[7] = 7 was read, as it was before this workgroup ran",
  };
  EXPECT_EQ(linesOf(result), expected);
}

TEST(Why, shows_two_rounds_of_a_loop) {
  const tools::KernelResult result = explain(R"(@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn main() {
  var sum = 0u;
  for (var k = 0u; k < 100000u; k++) {
    sum += x[k % 5u];
  }
  y[0] = sum;
}
)",
                                             "iota:u32[5]", 4, 0)
                                         .orThrow();
  const std::vector<std::string> lines = linesOf(result);
  EXPECT_EQ(lines.front(), "9 0 y[0] = 200000 was stored by workgroup (0, 0, 0), local (0, 0, 0)");
  EXPECT_EQ(std::ranges::count(lines, "7 1 200000 = 199996 + 4"), 1);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) { return line.ends_with("in the round before, and so on"); }));
  EXPECT_LT(lines.size(), 12u);
}

TEST(Why, words_that_nobody_wrote_and_words_that_are_not_there_are_errors) {
  for (const uint64_t word : {uint64_t{5}, uint64_t{8}}) {
    const auto result = explain(kNeighbours, "iota:f32[8]", 32, word);
    ASSERT_FALSE(result.ok()) << word;
    EXPECT_EQ(result.diagnostics().front().code, "why.word");
  }
  EXPECT_EQ(tools::parseWhy("0.1[303]").orThrow().word, 303u);
  EXPECT_FALSE(tools::parseWhy("0.1").ok());
  EXPECT_FALSE(tools::parseWhy("0.1[x]").ok());
}

}  // namespace
}  // namespace lockstep
