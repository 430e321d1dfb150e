// SPDX-License-Identifier: Apache-2.0
// Attention of few queries over a long cache by several workgroups per query, as on GPUs: how many there are, and that the results are
// right however many keys are seen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "tests/differential/compare.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

constexpr int64_t kHeads = 4, kKvHeads = 2;

struct CacheCase {
  std::string name;
  int64_t keys = 2111, queries = 1, window = 0;
  bool own = false;  ///< the queries' own keys come apart
  double cap = 0;
  int64_t width = 8;
};
void PrintTo(const CacheCase& one, std::ostream* out) { *out << one.name; }

Graph attentionGraph(const CacheCase& c, const char* op = "attend_cache") {
  Builder b;
  const auto input = [&](const char* name, std::vector<int64_t> shape, DType dtype = DType::F32) {
    return b.make("input", {}, {{"name", std::string(name)}, {"dtype", dtype}, {"shape", std::move(shape)}});
  };
  std::vector<ValueId> operands{input("q", {1, kHeads, c.queries, c.width}), input("k", {1, kKvHeads, c.keys, c.width}),
                                input("v", {1, kKvHeads, c.keys, c.width}), input("length", {1}, DType::I32)};
  if (c.own) {
    operands.push_back(input("own_k", {1, kKvHeads, c.queries, c.width}));
    operands.push_back(input("own_v", {1, kKvHeads, c.queries, c.width}));
  }
  Attributes attributes{{"scale", 0.4}};
  if (c.window > 0) attributes.set("window", c.window);
  if (c.cap > 0) attributes.set("soft_cap", c.cap);
  b.output(OutputKind::Result, "out", b.makeAll(op, operands, attributes).front());
  return b.take();
}

LeafValues cacheLeaves(const Graph& graph, int64_t length) {
  LeafValues leaves;
  double phase = 0.1;
  for (const NodeId id : graph.body().nodes) {
    if (leafKind(graph[id]) != LeafKind::Input) continue;
    Tensor values{graph.typeOf(graph[id].results[0]), {}};
    phase += 0.35;
    // Means of values around 0 would be small beside what their rounding adds up to.
    const double middle = leafName(graph[id])->ends_with("v") ? 1.5 : 0;
    for (int64_t i = 0; i < values.type.shape.elementCount(); ++i)
      values.data.push_back(static_cast<double>(static_cast<float>(middle + 2 * std::sin(phase * static_cast<double>(i) + phase))));
    if (*leafName(graph[id]) == "length") values.data.assign(1, static_cast<double>(length));
    leaves.emplace(*leafName(graph[id]), std::move(values));
  }
  return leaves;
}

std::map<std::string, size_t> groupsOf(const CacheCase& c, passes::CompileOptions options) {
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(attentionGraph(c), options).orThrow();
  std::map<std::string, size_t> groups;
  for (const program::Command& command : compiled.program.commands) {
    if (const auto* dispatch = std::get_if<program::Dispatch>(&command.action))
      groups[command.label] += size_t{dispatch->groups[0]} * dispatch->groups[1] * dispatch->groups[2];
  }
  return groups;
}

passes::CompileOptions plannedFor(program::DeviceProfile profile) {
  passes::CompileOptions options;
  options.profile = std::move(profile);
  return options;
}

passes::CompileOptions onGpuOf(uint32_t units) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = units;
  return plannedFor(profile);
}

/// With small workgroups, so that a short cache is long, and without known subgroups.
program::DeviceProfile portableGpu() {
  program::DeviceProfile profile = program::findProfile("portable").orThrow();
  profile.max_workgroup_invocations = profile.max_workgroup_size_x = 64;
  profile.parallel_units = 64;
  return profile;
}

class SplitAttention : public ::testing::TestWithParam<CacheCase> {};

/// Shares that have no keys at all among them: the first lengths are below the number of shares.
TEST_P(SplitAttention, is_right_for_any_number_of_keys) {
  const CacheCase& c = GetParam();
  ASSERT_TRUE(groupsOf(c, plannedFor(portableGpu())).contains("join_shares"));
  const Graph graph = attentionGraph(c);
  for (const int64_t length : {c.queries, c.queries + 1, int64_t{257}, c.keys - 1, c.keys}) {
    const LeafValues leaves = cacheLeaves(graph, length);
    const Tensor want = runGraph(graph, leaves).front();
    for (const std::string selector : {"reference", "vulkan"}) {
      if (!chooseDevice(selector).ok()) continue;
      const detail::Device device = profiledDevice(selector, portableGpu());
      const std::string& id = device.chosen.info.id;
      expectClose({runGraph(graph, leaves, {.device = id, .opened = &device}).front()}, {want}, 4e-6,
                  fmt::format("{}, {} keys", id, length));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SplitAttention,
                         ::testing::Values(CacheCase{.name = "token"}, CacheCase{.name = "own", .own = true},
                                           CacheCase{.name = "queries", .queries = 3},
                                           CacheCase{.name = "own_queries", .queries = 3, .own = true},
                                           CacheCase{.name = "window", .keys = 2503, .window = 2111, .own = true},
                                           CacheCase{.name = "cap", .cap = 2.5}),
                         [](const auto& info) { return info.param.name; });

TEST(SplitAttentionPlans, a_long_cache_has_work_for_most_units) {
  const CacheCase long_cache{.name = "long", .keys = 8209, .width = 64};
  const auto split = groupsOf(long_cache, onGpuOf(60));
  EXPECT_GE(split.at("attend_cache"), 60u / 2);
  EXPECT_LE(split.at("attend_cache"), 60u);
  EXPECT_TRUE(split.contains("join_shares"));
  passes::CompileOptions whole = onGpuOf(60);
  whole.disabled = {"splitAttention"};
  EXPECT_EQ(groupsOf(long_cache, whole), (std::map<std::string, size_t>{{"attend_cache", kHeads}}));
}

/// A level more would cost what it saves, or all units have work.
TEST(SplitAttentionPlans, short_caches_and_many_queries_stay_whole) {
  for (const CacheCase& c :
       {CacheCase{.name = "short", .keys = 1031, .width = 64}, CacheCase{.name = "window", .keys = 8209, .window = 600, .width = 64}})
    EXPECT_FALSE(groupsOf(c, onGpuOf(60)).contains("join_shares")) << c.name;
  EXPECT_FALSE(groupsOf({.name = "many", .keys = 8209, .queries = 3, .width = 64}, onGpuOf(16)).contains("join_shares"));
}

/// Drivers of CPUs compile a kernel with several wide keys for minutes.
TEST(SplitAttentionPlans, wide_heads_keep_the_text_for_cpus_short) {
  passes::CompileOptions options = plannedFor(program::findProfile("cpu").orThrow());
  options.templates = detail::templateSource();
  const auto compiled = [&](int64_t width, const char* op) {
    graph::Graph graph = attentionGraph({.name = "wide", .keys = 100, .width = width}, op);
    return passes::compile(graph, options);
  };
  const auto instructionsOf = [&](int64_t width) {
    size_t most = 0;
    const passes::Compiled made = compiled(width, "attend_cache").orThrow();
    for (const program::Kernel& kernel : made.program.kernels)
      most = std::max(most, std::get<kernel::Module>(kernel.code).instructions.size());
    return most;
  };
  EXPECT_LE(instructionsOf(256), 2 * instructionsOf(64));
  EXPECT_EQ(compiled(260, "attend_cache").diagnostics().front().code, "schedule.row_width");
  EXPECT_GT(compiled(260, "cached_attention").orThrow().plan.dispatches, 1u);
}

}  // namespace
}  // namespace lockstep
