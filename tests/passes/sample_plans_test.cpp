// SPDX-License-Identifier: Apache-2.0
// The plans of the samples at full size, beside those of tensorgrad 0.4.6; docs/samples.md is made from them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/reference/bytecode.h"
#include "backends/reference/reference.h"
#include "examples/models/deep_models.h"
#include "examples/models/samples.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "ir/program/profile.h"
#include "passes/pipeline.h"
#include "tests/generated_text.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

/// Measured from tensorgrad's own IR.
struct Peer {
  std::string_view sample;
  uint32_t dispatches, kernels;
  double megabytes;
};
constexpr Peer kPeers[] = {
    {"mlp-sin", 63, 38, 0.50},      {"kan-tiny", 156, 82, 0.39},   {"nerf-tiny", 93, 54, 2.65},
    {"cartpole", 60, 46, 0.96},     {"tic-tac-toe", 81, 53, 0.38}, {"digit-canvas", 86, 61, 2.00},
    {"mnist-cnn", 145, 107, 18.77}, {"vae", 259, 106, 20.06},      {"flow-matching-tiny", 181, 94, 44.71},
    {"pokeformer", 639, 133, 9.91}, {"makemore", 931, 132, 13.22}, {"transformer", 933, 136, 23.28},
};

passes::Compiled compiled(const examples::SampleProgram& sample, const program::DeviceProfile& profile,
                          std::vector<std::string> disabled = {}) {
  graph::Graph graph = detail::traceFunction(sample.model.get(), sample.inputs, sample.loss, graph::OutputKind::Loss, Where::current());
  passes::CompileOptions options;
  options.profile = profile;
  options.disabled = std::move(disabled);
  options.optimizer = detail::optimizerConfig(sample.optimizer, graph.parameters);
  options.templates = detail::templateSource();
  return passes::compile(std::move(graph), options).orThrow();
}

TEST(SamplePlans, keep_their_limits_and_table_golden) {
  std::string table = "| sample | dispatches | levels | distinct kernels | MB |\n|---|---|---|---|---|\n";
  for (const examples::SampleProgram& sample : examples::samplePrograms()) {
    const Peer* peer = std::ranges::find(kPeers, sample.name, &Peer::sample);
    ASSERT_NE(peer, std::end(kPeers)) << sample.name;
    passes::PlanSummary plan = compiled(sample, program::findProfile("portable").orThrow()).plan;
    double megabytes = static_cast<double>(plan.total_bytes) / 1e6;
    EXPECT_LE(plan.dispatches * 6, peer->dispatches) << sample.name;
    EXPECT_LE(megabytes, peer->megabytes * 2 / 3) << sample.name;
    table += fmt::format("| {} | {} ({}) | {} | {} ({}) | {:.2f} ({:.2f}) |\n", sample.name, plan.dispatches, peer->dispatches, plan.levels,
                         plan.distinct_kernels, peer->kernels, megabytes, peer->megabytes);
  }
  testing::expectGeneratedText(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "docs/samples.md", table);
}

TEST(SamplePlans, a_gpt_of_real_size_has_no_chains) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 132;
  const auto planned = [&](std::vector<std::string> disabled) {
    const examples::DeepCase gpt = examples::deepCase("gpt", 2);
    passes::CompileOptions options;
    options.profile = profile;
    options.disabled = std::move(disabled);
    graph::Graph graph = detail::traceFunction(gpt.model.get(), gpt.inputs, gpt.loss, graph::OutputKind::Loss, Where::current());
    options.optimizer = detail::optimizerConfig(adamw({.lr = 1e-3}), graph.parameters);
    options.templates = detail::templateSource();
    return print(std::get<program::Program>(passes::compileTo(passes::Stage::Scheduled, std::move(graph), options).orThrow()));
  };
  EXPECT_EQ(planned({}), planned({"chainRows"}));
}

// The reference would run them on one thread.
TEST(SamplePlans, kernels_of_many_workgroups_need_no_order_of_them) {
  for (const examples::SampleProgram& sample : examples::samplePrograms()) {
    const program::Program program = compiled(sample, referenceDevice().profile).program;
    for (const program::Command& command : program.commands) {
      const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
      if (dispatch == nullptr || dispatch->groups == std::array<uint32_t, 3>{1, 1, 1}) continue;
      const program::Kernel& kernel = program[dispatch->kernel];
      EXPECT_FALSE(reference::decode(std::get<kernel::Module>(kernel.code)).orThrow().in_order) << sample.name << " " << kernel.name;
    }
  }
}

/// What each sample takes at most on a large GPU, where a level costs more than what small products do in it. "Apart" is what it would
/// take without chains of rows.
struct OnGpu {
  std::string_view sample;
  uint32_t dispatches, levels, levels_apart;
};
constexpr OnGpu kOnGpu[] = {
    {"mlp-sin", 5, 3, 7},       {"kan-tiny", 9, 6, 10},   {"nerf-tiny", 6, 4, 11},
    {"cartpole", 6, 4, 7},      {"tic-tac-toe", 4, 3, 8}, {"digit-canvas", 8, 7, 10},
    {"mnist-cnn", 22, 15, 17},  {"vae", 16, 11, 19},      {"flow-matching-tiny", 27, 15, 15},
    {"pokeformer", 21, 16, 41}, {"makemore", 24, 17, 51}, {"transformer", 31, 17, 51},
};

TEST(SamplePlans, take_few_levels_on_a_large_gpu) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 132;
  for (const examples::SampleProgram& sample : examples::samplePrograms()) {
    const OnGpu* wanted = std::ranges::find(kOnGpu, sample.name, &OnGpu::sample);
    ASSERT_NE(wanted, std::end(kOnGpu)) << sample.name;
    const passes::PlanSummary plan = compiled(sample, profile).plan, apart = compiled(sample, profile, {"chainRows"}).plan;
    EXPECT_LE(plan.dispatches, wanted->dispatches) << sample.name;
    EXPECT_LE(plan.levels, wanted->levels) << sample.name;
    EXPECT_LE(apart.levels, wanted->levels_apart) << sample.name;
  }
}

}  // namespace
}  // namespace lockstep
