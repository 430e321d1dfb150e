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
  run.why = {.slot = {0, 1}, .index = word};
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

/// One invocation after the other does `statements` with the atomic `at`; x[i] is 5, 6, 7, 8.
std::vector<std::string> linesOfAtomics(const std::string& type, const std::string& statements) {
  return linesOf(explain("@group(0) @binding(0) var<storage, read> x: array<" + type + R"(, 4>;
@group(0) @binding(1) var<storage, read_write> y: array<)" +
                             type + R"(>;
var<workgroup> at: atomic<)" +
                             type +
                             R"(>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
)" + statements + R"(
  workgroupBarrier();
  if (i == 0) { y[0] = atomicLoad(&at); }
}
)",
                         "list:5,6,7,8", 4, 0)
                     .orThrow());
}

TEST(Why, an_atomic_stores_what_it_computed) {
  const std::vector<std::string> lines = linesOfAtomics("u32", "  if (i < 2) { atomicAdd(&at, x[i]); }");
  const std::vector<std::string> expected{
      "8 0 y[0] = 11 was stored by workgroup (0, 0, 0), local (0, 0, 0)",
      "8 1 at = 11 was read",
      "6 2 at = 11 was stored by workgroup (0, 0, 0), local (1, 0, 0)",
      "6 3 11 = 5 + 6",
      "6 4 at = 5 was read",
      "6 5 at = 5 was stored by workgroup (0, 0, 0), local (0, 0, 0)",
      "6 6 5 = 0 + 5",
      "6 7 at = 0 was read, its value at the start",
      "6 7 x[0] = 5 was read, as it was before this workgroup ran",
      "6 4 x[1] = 6 was read, as it was before this workgroup ran",
  };
  EXPECT_EQ(lines, expected);
}

TEST(Why, each_atomic_has_its_formula) {
  struct Row {
    const char *type, *statement, *stored, *formula;
  };
  const Row rows[] = {
      {"i32", "atomicSub(&at, x[1]);", "-6", "-6 = 0 - 6"},   {"i32", "atomicMin(&at, x[1] - 9);", "-3", "-3 = min(0, -3)"},
      {"u32", "atomicMax(&at, x[1]);", "6", "6 = max(0, 6)"}, {"u32", "atomicOr(&at, x[1]);", "6", "6 = 0 | 6"},
      {"u32", "atomicXor(&at, x[1]);", "6", "6 = 0 ^ 6"},     {"u32", "atomicAnd(&at, x[1]);", "0", "0 = 0 & 6"},
  };
  for (const Row& row : rows) {
    const std::vector<std::string> lines = linesOfAtomics(row.type, "  if (i == 0) { " + std::string(row.statement) + " }");
    ASSERT_GT(lines.size(), 3u) << row.statement;
    EXPECT_EQ(lines[2], "6 2 at = " + std::string(row.stored) + " was stored by workgroup (0, 0, 0), local (0, 0, 0)");
    EXPECT_EQ(lines[3], "6 3 " + std::string(row.formula));
  }
}

TEST(Why, an_exchange_stores_its_operand_and_a_failing_one_stores_nothing) {
  const std::vector<std::string> exchanged = linesOfAtomics("i32", "  if (i == 3) { atomicExchange(&at, -x[i]); }");
  const std::vector<std::string> expected{
      "8 0 y[0] = -8 was stored by workgroup (0, 0, 0), local (0, 0, 0)", "8 1 at = -8 was read",
      "6 2 at = -8 was stored by workgroup (0, 0, 0), local (3, 0, 0)",   "6 3 -8 = -8",
      "6 4 x[3] = 8 was read, as it was before this workgroup ran",
  };
  EXPECT_EQ(exchanged, expected);
  // All four compare with 0: the first succeeds.
  const std::vector<std::string> compared = linesOfAtomics("i32", "  atomicCompareExchangeWeak(&at, 0, -x[i]);");
  ASSERT_EQ(compared.size(), 5u);
  EXPECT_EQ(compared[2], "6 2 at = -5 was stored by workgroup (0, 0, 0), local (0, 0, 0)");
  const auto result = explain(R"(@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  atomicCompareExchangeWeak(&y[i], x[i] + 1u, 9u);
}
)",
                              "iota:u32[4]", 16, 2);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().message, "no invocation wrote y[2], one of 4 words of 4 bytes");
}

constexpr const char* kHalves = R"(enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = x[i] * 0.5h;
}
)";

TEST(Why, of_f16_an_index_counts_halves) {
  const std::vector<std::string> expected{
      "6 0 y[5] = 2.5 was stored by workgroup (0, 0, 0), local (5, 0, 0)",
      "6 1 2.5 = 5 * 0.5",
      "6 2 x[5] = 5 was read, as it was before this workgroup ran",
  };
  EXPECT_EQ(linesOf(explain(kHalves, "iota:f16[8]", 16, 5).orThrow()), expected);
  const auto outside = explain(kHalves, "iota:f16[8]", 16, 8);
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.diagnostics().front().message, "y has 8 halves of 2 bytes, because there is f16 in it: there is no y[8]");
}

TEST(Why, of_vectors_of_f16_an_index_counts_components_and_padding) {
  const std::string text = R"(enable f16;
@group(0) @binding(0) var<storage, read> x: array<vec3<f16>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec3<f16>>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = x[i];
}
)";
  const std::vector<std::string> lines = linesOf(explain(text, "iota:f16[8]", 16, 6).orThrow());
  const std::vector<std::string> expected{
      "6 0 y[6] = 6 was stored by workgroup (0, 0, 0), local (1, 0, 0)",
      "6 1 x[6] = 6 was read, as it was before this workgroup ran",
  };
  EXPECT_EQ(lines, expected);
  EXPECT_FALSE(explain(text, "iota:f16[8]", 16, 7).ok());
}

TEST(Why, of_a_struct_with_f16_an_index_counts_halves_of_its_words_too) {
  const std::string text = R"(enable f16;
struct Pair { a: f32, b: f16, c: f16 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<Pair>;
var<workgroup> pairs: array<Pair, 2>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) {
  pairs[i] = Pair(f32(x[i]) + 0.1, f16(x[i]) + 0.25h, 3h);
  workgroupBarrier();
  y[i] = pairs[i];
}
)";
  const auto at = [&](uint64_t index) { return linesOf(explain(text, "iota:u32[2]", 16, index).orThrow()); };
  for (const uint64_t half : {uint64_t{4}, uint64_t{5}}) {
    EXPECT_EQ(at(half)[0], "10 0 y[4] = 1.10000002 was stored by workgroup (0, 0, 0), local (1, 0, 0)");
    EXPECT_EQ(at(half)[1], "10 1 pairs[4] = 1.10000002 was read");
  }
  EXPECT_EQ(at(6)[0], "10 0 y[6] = 1.25 was stored by workgroup (0, 0, 0), local (1, 0, 0)");
  EXPECT_EQ(at(6)[3], "8 3 1.25 = 1 + 0.25");
  EXPECT_EQ(at(7)[0], "10 0 y[7] = 3 was stored by workgroup (0, 0, 0), local (1, 0, 0)");
}

TEST(Why, one_instruction_of_several_operations_is_no_loop) {
  const std::vector<std::string> lines = linesOf(explain(R"(@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn main() {
  y[0] = dot(x[0], x[1]);
}
)",
                                                         "iota:f32[8]", 4, 0)
                                                     .orThrow());
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.ends_with("and so on"); }), 0);
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.ends_with("before this workgroup ran"); }), 8);
}

TEST(Why, the_memory_is_that_which_earlier_workgroups_left) {
  const std::vector<std::string> lines = linesOf(explain(R"(@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) g: vec3<u32>) {
  y[0] += x[g.x];
  if (g.x == 4) { y[1] = 1; }
}
)",
                                                         "iota:u32[8]", 8, 0, {6, 1, 1})
                                                     .orThrow());
  ASSERT_GT(lines.size(), 2u);
  EXPECT_EQ(lines[0], "5 0 y[0] = 15 was stored by workgroup (5, 0, 0), local (0, 0, 0)");
  EXPECT_EQ(lines[1], "5 1 15 = 10 + 5");
}

TEST(Why, words_that_nobody_wrote_and_words_that_are_not_there_are_errors) {
  for (const uint64_t word : {uint64_t{5}, uint64_t{8}}) {
    const auto result = explain(kNeighbours, "iota:f32[8]", 32, word);
    ASSERT_FALSE(result.ok()) << word;
    EXPECT_EQ(result.diagnostics().front().code, "why.word");
  }
  EXPECT_EQ(tools::parseWhy("0.1[303]").orThrow().index, 303u);
  EXPECT_FALSE(tools::parseWhy("0.1").ok());
  EXPECT_FALSE(tools::parseWhy("0.1[x]").ok());
}

}  // namespace
}  // namespace lockstep
