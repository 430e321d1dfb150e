// SPDX-License-Identifier: Apache-2.0
// Profiles of real steps on each device.
#include <gtest/gtest.h>

#include "examples/models/samples.h"
#include "frontend/lockstep.h"
#include "tools/profile/profile_data.h"

namespace lockstep::tools {
namespace {

class Measured : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
  [[nodiscard]] static Profile profileOf(Trainer& trainer, int64_t steps) {
    examples::SineBatch data;
    return measureProfile(
        trainer,
        [&](uint64_t step) -> Batch {
          data = examples::sineBatch(1, step, 256);
          return {{"x", data.x}, {"y", data.y}};
        },
        steps);
  }
  [[nodiscard]] static ModelTrainer<examples::Mlp> sine(const std::vector<std::string>& disable = {}) {
    auto spec = examples::sineSpec();
    spec.device = GetParam();
    spec.seed = 1;
    spec.disable = disable;
    return compile(std::move(spec));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Measured, ::testing::Values("reference", "vulkan"), [](const auto& param) { return param.param; });

TEST_P(Measured, has_every_command_of_the_plan) {
  auto trainer = sine();
  const Profile profile = profileOf(trainer, 3);
  const ProgramFacts facts = trainer.facts();
  EXPECT_EQ(profile.steps, 3);
  EXPECT_EQ(trainer.step_count(), 8u);  // two to warm up, three plain, three timed
  EXPECT_EQ(profile.commands.size(), facts.dispatches);
  const ProfileTotals totals = totalsOf(profile);
  EXPECT_EQ(totals.levels, facts.levels);
  EXPECT_GT(totals.seconds, 0);
  EXPECT_GT(totals.critical_path, 0);
  EXPECT_LE(totals.critical_path, totals.seconds * (1 + 1e-12));
  EXPECT_GT(profile.plain.wait + profile.plain.submit, 0);
  EXPECT_GE(profile.input_bytes, 2u * 256 * 4);
  EXPECT_GE(profile.output_bytes, 4u);
  for (const bool one_per_command : {false, true}) {
    double shares = 0;
    uint64_t calls = 0;
    for (const ProfileRow& row : rowsOf(profile, one_per_command)) {
      shares += row.share;
      calls += row.calls;
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_EQ(calls, profile.commands.size());
  }
}

TEST_P(Measured, times_fit_between_the_host_s) {
  auto trainer = sine();
  const Profile profile = profileOf(trainer, 1);
  ASSERT_EQ(profile.trace.host.size(), 8u);
  const StepTrace::Span wait = profile.trace.host.back();
  const ProfiledCommand& last = profile.trace.commands.back();
  EXPECT_GE(profile.trace.device_start, profile.trace.host[4].start);
  EXPECT_LE(last.start + last.seconds, wait.seconds);
  double reached = 0;
  for (const ProfiledCommand& command : profile.trace.commands) {
    EXPECT_NEAR(command.start, reached, 1e-12);
    reached = command.start + command.seconds;
  }
}

// 1 -> 64 -> 64 -> 1 with 256 rows: forward and the gradients of weights are 2*256*(64 + 64*64 + 64) each; the first layer's input needs no
// gradient.
constexpr uint64_t kContractions = 2 * (2 * 256 * (64 + 64 * 64 + 64)) + 2 * 256 * (64 * 64 + 64);

TEST_P(Measured, counts_the_operations_of_the_graph) {
  auto trainer = sine(), apart = sine({"mergeDispatches"});
  const Profile profile = profileOf(trainer, 1), unmerged = profileOf(apart, 1);
  const ProfileTotals totals = totalsOf(profile);
  ASSERT_TRUE(totals.operations.has_value());
  EXPECT_GE(*totals.operations, kContractions);
  EXPECT_LE(*totals.operations, kContractions * 11 / 10);  // bias, relu, loss and Adam
  // A merged dispatch does the work of its parts.
  EXPECT_EQ(totals.operations, totalsOf(unmerged).operations);
}

TEST_P(Measured, counts_each_byte_of_a_command_once) {
  struct Doubled : Module {
    Parameter w{*this, "w", {64, 64}, init::ones()};
  };
  auto trainer = compile(CompileSpec<Doubled>{
      .inputs = {{"x", f32(64, 64)}},
      .loss = [](const Doubled& model, const Inputs& in) { return mean(matmul(in["x"], model.w)); },
      .optimizer = sgd({.lr = 0.1}),
      .seed = 1,
      .device = GetParam(),
  });
  const std::vector<float> x(64 * 64, 0.5F);
  const StepProfile profile = trainer.profile({{"x", x}});
  EXPECT_EQ(profile.step, 1u);
  for (const ProfiledCommand& command : profile.commands) {
    EXPECT_GT(command.bytes, 0u) << command.label;
    EXPECT_LE(command.bytes, 4u * 64 * 64 * 4) << command.label;  // two matrices read and one or two written
  }
}

TEST_P(Measured, names_the_lines_of_the_model) {
  auto trainer = sine();
  const Profile profile = profileOf(trainer, 1);
  size_t with_lines = 0;
  for (const ProfileRow& row : rowsOf(profile, false)) {
    for (const std::string& line : row.lines) EXPECT_TRUE(line.starts_with("mlp.cpp:") || line.starts_with("samples.cpp:")) << line;
    EXPECT_TRUE(!row.lines.empty() || row.label.find("matmul") == std::string::npos) << row.label;
    with_lines += row.lines.empty() ? 0 : 1;
  }
  EXPECT_GT(with_lines, 3u);
}

TEST_P(Measured, a_kernel_of_one_s_own_has_a_line_and_no_operations) {
  static const Kernel kTwice({.name = "twice", .source = R"(
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = 2.0 * x[id.x]; }
)"});
  struct Scaled : Module {
    Parameter w{*this, "w", {8}, init::ones()};
  };
  const int line = __LINE__ + 3;
  auto trainer = compile(CompileSpec<Scaled>{
      .inputs = {{"x", f32(8)}},
      .loss = [](const Scaled& model, const Inputs& in) { return mean(model.w * kTwice({in["x"]}).front()); },
      .optimizer = sgd({.lr = 0.1}),
      .seed = 1,
      .device = GetParam(),
  });
  const std::vector<float> x(8, 1.0F);
  const StepProfile profile = trainer.profile({{"x", x}});
  const auto own = std::ranges::find(profile.commands, "twice", &ProfiledCommand::label);
  ASSERT_NE(own, profile.commands.end());
  EXPECT_EQ(own->operations, std::nullopt);
  EXPECT_EQ(own->bytes, 2u * 8 * 4);
  ASSERT_EQ(own->lines.size(), 1u);
  EXPECT_EQ(own->lines[0].line, static_cast<uint32_t>(line));
}

TEST_P(Measured, has_the_commands_of_all_runs_of_a_step) {
  auto spec = examples::sineSpec();
  spec.device = GetParam();
  spec.seed = 1;
  spec.inputs = {{"x", f32(64, 1)}, {"y", f32(64, 1)}};
  spec.accumulate = 4;
  auto trainer = compile(std::move(spec));
  const Profile profile = profileOf(trainer, 1);
  const ProgramFacts facts = trainer.facts();
  EXPECT_EQ(profile.commands.size(), 4u * facts.dispatches);
  EXPECT_EQ(totalsOf(profile).levels, 4u * facts.levels);
}

TEST_P(Measured, peaks_are_in_the_units_of_kernels) {
  const ChosenDevice device = chooseDevice(GetParam()).orThrow();
  const std::unique_ptr<Backend> backend = openDevice(device.info).orThrow();
  const Peaks peaks = measurePeaks(*backend).orThrow();
  EXPECT_GT(peaks.bytes_per_second, 1e6);
  EXPECT_GT(peaks.operations_per_second, 1e6);
  EXPECT_GE(peaks.dispatch_seconds, 0);
  EXPECT_GE(peaks.barrier_seconds, 0);
  EXPECT_LT(peaks.timed_dispatch_seconds, 0.1);
  auto trainer = sine();
  Profile profile = profileOf(trainer, 3);
  profile.peaks = peaks;
  // Caches are faster than memory, so more than all is possible; far more would be a wrong unit.
  for (const ProfileRow& row : rowsOf(profile, false)) EXPECT_LT(row.peak_share.value_or(0), 100) << row.label;
}

}  // namespace
}  // namespace lockstep::tools
