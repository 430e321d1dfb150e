// SPDX-License-Identifier: Apache-2.0
// Kernels with one planted mistake each, and kernels that look like them and have none: what the sanitizer finds is what is marked, line by
// line, and what a kernel computes is what it computes without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/wgsl/wgsl.h"
#include "tests/sanitize/case_file.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep {
namespace {

using tools::KernelRun;
using tools::Slot;

using testing::Case;

std::vector<Case> allCases() {
  return testing::readCases({"races.txt", "memory.txt", "rounds.txt", "numbers.txt", "rounding.txt", "schedules.txt", "mamba_runs.txt"});
}

KernelRun runOf(const Case& one) {
  KernelRun run{
      .module = wgsl::read(one.text, {.file_name = "kernel.wgsl", .overrides = {}}).orThrow(), .entry = {}, .device = "reference"};
  for (const auto& [name, value] : one.words) {
    if (name == "dispatch") {
      run.groups = tools::parseGroups(value).orThrow();
      continue;
    }
    if (name == "schedules") {
      run.schedules = std::stoll(value);
      continue;
    }
    const Slot slot = tools::parseSlot(name).orThrow();
    if (value.starts_with("alias:")) {
      run.aliases[slot] = tools::parseSlot(value.substr(6)).orThrow();
      continue;
    }
    if (value.starts_with("uninit:")) run.unwritten.insert(slot);
    run.bytes[slot] = tools::makeBytes(value, run.module, *tools::findVariable(run.module, slot)).orThrow();
  }
  return run;
}

class Sanitize : public ::testing::TestWithParam<Case> {};

TEST_P(Sanitize, finds_what_is_marked_and_nothing_else) {
  KernelRun run = runOf(GetParam());
  run.sanitize = SanitizeOptions{.checks = {}, .loop_budget = uint64_t{1} << 26};
  tools::KernelResult result = tools::runKernel(std::move(run)).orThrow();
  dropAllowed(result.findings, GetParam().text);
  std::set<std::pair<uint32_t, std::string>> found;
  std::string all;
  for (const Finding& finding : result.findings) {
    // A warning on a line that has an error of the same code says nothing more.
    const std::string warning = finding.severity == Finding::Severity::Warning ? "warning " : "";
    found.emplace(finding.diagnostic.where.line, warning + finding.diagnostic.code);
    all += toString(finding) + "\n";
    EXPECT_GT(finding.count, 0u);
  }
  std::erase_if(found,
                [&](const auto& one) { return one.second.starts_with("warning ") && found.contains({one.first, one.second.substr(8)}); });
  EXPECT_EQ(found, GetParam().marks) << all;
  EXPECT_EQ(GetParam().marks.empty(), GetParam().name.starts_with("ok_") || GetParam().name.starts_with("allowed_"));
}

TEST_P(Sanitize, results_are_those_of_a_plain_run) {
  // Races have no one result, and endless loops none.
  const bool comparable = std::ranges::none_of(GetParam().marks, [](const auto& finding) {
    const std::string& code = finding.second;
    return code.find("race.") != std::string::npos || code == "loop.endless" || code == "order.waits" || code == "memory.aliased";
  });
  if (!comparable) return;
  KernelRun watched = runOf(GetParam());
  watched.sanitize = SanitizeOptions{};
  EXPECT_EQ(tools::runKernel(std::move(watched)).orThrow().bytes, tools::runKernel(runOf(GetParam())).orThrow().bytes);
}

TEST_P(Sanitize, right_kernels_give_the_same_in_every_order_and_a_seed_gives_one_order) {
  const auto inOtherOrders = [] {
    KernelRun run = runOf(GetParam());
    run.sanitize = SanitizeOptions{.checks = parseSanitizeChecks("loop,subgroup", false).orThrow(), .loop_budget = uint64_t{1} << 18};
    run.schedules = 5;
    run.schedule_seed = 7;
    return tools::runKernel(std::move(run)).orThrow().findings;
  };
  const std::vector<Finding> findings = inOtherOrders();
  EXPECT_EQ(findings, inOtherOrders());
  if (!GetParam().name.starts_with("ok_")) return;
  for (const Finding& finding : findings) EXPECT_NE(finding.diagnostic.code, "order.schedule") << toString(finding);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Sanitize, ::testing::ValuesIn(allCases()), [](const auto& info) { return info.param.name; });

TEST(SanitizeChecks, a_list_chooses) {
  const SanitizeChecks races = parseSanitizeChecks("race", true).orThrow();
  EXPECT_TRUE(races.races);
  EXPECT_FALSE(races.memory || races.integers || races.floats || races.loops || races.barriers || races.errors);
  EXPECT_EQ(parseSanitizeChecks("", true).orThrow(), SanitizeChecks{});
  EXPECT_EQ(parseSanitizeChecks("race,memory,integer,float,loop,barrier,subgroup,layout,error", false).orThrow(), SanitizeChecks{});
  EXPECT_EQ(parseSanitizeChecks("all,error", false).orThrow(), SanitizeChecks{});
  EXPECT_EQ(parseSanitizeChecks("all", false).orThrow(), SanitizeChecks{.errors = false});
  const auto wrong = parseSanitizeChecks("race,racing", true);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.diagnostics().front().code, "sanitize.check");
}

TEST(SanitizeChecks, what_is_not_chosen_is_not_found) {
  for (const Case& one : allCases()) {
    if (one.name != "division_by_zero" && one.name != "all_lanes_write_one_cell") continue;
    KernelRun run = runOf(one);
    run.sanitize = SanitizeOptions{.checks = parseSanitizeChecks("float,loop", true).orThrow()};
    EXPECT_TRUE(tools::runKernel(std::move(run)).orThrow().findings.empty()) << one.name;
  }
}

TEST(SanitizeChecks, only_operations_of_the_text_wrap) {
  const std::string text = R"(enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = subgroupShuffleUp(i, 2u) + pack2x16float(vec2f(1.0, -1.0 - f32(i)));
  y[i] ^= insertBits(0u, i + 5u, 30u, 2u) ^ (1u << (i + 30u));
  y[i] = i - 4u;
})";
  KernelRun run{.module = wgsl::read(text).orThrow(), .entry = {}, .device = "reference"};
  run.bytes[{0, 0}] = Bytes(32);
  run.sanitize = SanitizeOptions{.checks = parseSanitizeChecks("wrap,integer", true).orThrow()};
  std::map<std::pair<std::string, uint32_t>, uint64_t> counts;
  for (const Finding& finding : tools::runKernel(std::move(run)).orThrow().findings)
    counts[{finding.diagnostic.code, finding.diagnostic.where.line}] += finding.count;
  const std::map<std::pair<std::string, uint32_t>, uint64_t> expected{{{"integer.shift", 6}, 6}, {{"integer.wrap", 7}, 4}};
  EXPECT_EQ(counts, expected);
}

TEST(SanitizeRun, another_device_is_refused) {
  KernelRun run = runOf(allCases().front());
  run.sanitize = SanitizeOptions{};
  run.device = "vulkan";
  const auto ran = tools::runKernel(std::move(run));
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.diagnostics().front().code, "usage.device");
}

}  // namespace
}  // namespace lockstep
