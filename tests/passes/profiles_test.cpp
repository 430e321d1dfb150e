// SPDX-License-Identifier: Apache-2.0
// The models of the samples, planned for every named profile: programs within the profile's limits, equal results and small plans.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "examples/models/addition.h"
#include "examples/models/cnn.h"
#include "examples/models/mlp.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "frontend/train/session.h"
#include "frontend/train/templates.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using examples::Transformer;

/// A traced loss with its batch and the start of its parameters.
struct Sample {
  graph::Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<float> parameters;  ///< the flat state
  passes::OptimizerConfig optimizer;
  examples::SineBatch sine;
  examples::AdditionBatch addition;
  std::vector<float> pictures;
  std::vector<int32_t> labels;
  [[nodiscard]] Batch batch() const {
    if (inputs[0].name == "pictures") return {{"pictures", pictures}, {"labels", labels}};
    if (inputs[0].name == "x") return {{"x", sine.x}, {"y", sine.y}};
    return {{"tokens", addition.tokens}, {"targets", addition.targets}};
  }
};

template <class M, class Loss>
void trace(Sample& sample, const M& model, const Loss& loss) {
  detail::Trace trace;
  trace.addParameters(model);
  std::map<std::string, Tensor, std::less<>> tensors;
  for (const InputSpec& input : sample.inputs) tensors.emplace(input.name, trace.addInput(input.name, input.type));
  trace.output(graph::OutputKind::Loss, "loss", loss(model, Inputs(std::move(tensors))));
  sample.graph = trace.take();
  graph::ParameterLayout layout = graph::layoutParameters(sample.graph.parameters);
  sample.parameters.resize(static_cast<size_t>(layout.total), 0.0f);
  std::vector<NamedParameter> parameters = model.parameters();
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    std::vector<float> values = parameters[i].parameter->initial(42, i);
    std::copy(values.begin(), values.end(), sample.parameters.begin() + layout.slots[i].offset);
  }
}

Sample sine() {
  Sample sample;
  sample.inputs = {{"x", f32(256, 1)}, {"y", f32(256, 1)}};
  sample.sine = examples::sineBatch(42, 1, 256);
  trace(sample, examples::Mlp({1, 64, 64, 1}),
        [](const examples::Mlp& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); });
  return sample;
}

/// 150,656 parameters. A batch of 8 keeps the activations within 64 KiB.
Sample addition(size_t batch = 8, bool captures = false) {
  auto rows = static_cast<int64_t>(batch);
  Sample sample;
  sample.inputs = {{"tokens", i32(rows, examples::kAdditionLength)}, {"targets", i32(rows, examples::kAdditionLength)}};
  sample.addition = examples::additionBatch(42, 1, batch);
  sample.optimizer = {.kind = passes::OptimizerKind::AdamW, .weight_decay = 0.01};
  trace(sample, Transformer(), [&](const Transformer& model, const Inputs& in) { return additionLoss(model, in, captures); });
  return sample;
}

/// 105,866 parameters.
Sample cnn(int64_t batch) {
  Sample sample;
  sample.inputs = {{"pictures", f32(batch, 1, 28, 28)}, {"labels", i32(batch)}};
  for (int64_t i = 0; i < batch * 28 * 28; ++i) sample.pictures.push_back(static_cast<float>(i * 7919 % 256) / 256);
  for (int64_t i = 0; i < batch; ++i) sample.labels.push_back(static_cast<int32_t>(i % 10));
  sample.optimizer = {.kind = passes::OptimizerKind::AdamW, .weight_decay = 0.01};
  sample.optimizer.clip_grad_norm = 1;
  trace(sample, examples::Cnn(),
        [](const examples::Cnn& model, const Inputs& in) { return cross_entropy(model(in["pictures"]), in["labels"]); });
  return sample;
}

/// A recurrent layer over five steps, which is a loop each way.
Sample recurrent() {
  Sample sample;
  sample.inputs = {{"x", f32(8, 5, 64)}, {"y", f32(8, 5, 64)}};
  for (size_t i = 0; i < size_t{8} * 5 * 64; ++i) {
    sample.sine.x.push_back(static_cast<float>(i * 7919 % 256) / 256);
    sample.sine.y.push_back(static_cast<float>(i * 104729 % 256) / 256);
  }
  struct Model : Module {
    nn::GRU gru{*this, "gru", 64, 64};
  };
  trace(sample, Model(), [](const Model& model, const Inputs& in) { return mean(square(model.gru(in["x"]).y - in["y"])); });
  return sample;
}

program::DeviceProfile profileNamed(const std::string& name) { return program::findProfile(name).orThrow(); }

passes::Compiled compileFor(const Sample& sample, const program::DeviceProfile& profile, uint64_t memory_limit = 0,
                            std::vector<std::string> disabled = {}) {
  passes::CompileOptions options;
  options.profile = profile;
  options.optimizer = sample.optimizer;
  options.disabled = std::move(disabled);
  options.templates = detail::templateSource();
  options.memory_limit = memory_limit;
  return passes::compile(sample.graph, options).orThrow();
}
passes::Compiled compileFor(const Sample& sample, const std::string& profile, uint64_t memory_limit = 0,
                            std::vector<std::string> disabled = {}) {
  return compileFor(sample, profileNamed(profile), memory_limit, std::move(disabled));
}

struct Trained {
  std::vector<float> losses, parameters;
};

/// Two steps on a device, planned as for `profile`.
Trained train(const char* selector, const Sample& sample, const program::DeviceProfile& profile, uint64_t memory_limit = 0,
              std::vector<std::string> disabled = {}) {
  detail::Device device = detail::openChosenDevice(selector);
  device.chosen.info.profile = profile;
  passes::CompileOptions options;
  options.disabled = std::move(disabled);
  options.optimizer = sample.optimizer;
  options.memory_limit = memory_limit;
  auto states = std::make_shared<detail::States>(std::move(device));
  detail::Session session(sample.graph, std::move(options), states, sample.inputs);
  states->writeFloats(passes::kParameterState, sample.parameters);
  Trained trained;
  for (int step = 0; step < 2; ++step) {
    const std::array<double, 4> scalars = passes::stepScalars(sample.optimizer, 0.005, 1);
    std::vector<std::byte> input = session.encode(sample.batch(), {detail::stepValue(passes::kScalarsInput, scalars)});
    std::vector<std::byte> arena = session.run(std::move(input));
    trained.losses.push_back(session.outputs(arena, graph::OutputKind::Loss).front().floats().front());
  }
  for (const Finding& finding : *states->device().findings) ADD_FAILURE() << toString(finding.diagnostic);
  trained.parameters = states->readFloats(passes::kParameterState);
  return trained;
}

Trained train(const char* selector, const Sample& sample, const char* profile, uint64_t memory_limit = 0) {
  return train(selector, sample, profileNamed(profile), memory_limit);
}

void expectSameBits(const Trained& a, const Trained& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.parameters, b.parameters);
}

TEST(Profiles, programs_of_the_samples_are_within_the_limits) {
  const std::vector<std::vector<std::string>> left_out{{},       {"simplify"},    {"splitReductions"},
                                                       {"fuse"}, {"planBuffers"}, {"mergeDispatches"}};
  for (const program::DeviceProfile& profile : program::namedProfiles()) {
    for (const Sample& sample : {sine(), addition()}) {
      for (const std::vector<std::string>& disabled : left_out) {
        auto valid = program::validate(compileFor(sample, profile.name, 0, disabled).program);
        EXPECT_TRUE(valid.ok()) << profile.name << ": " << toString(valid.diagnostics());
      }
    }
  }
}

TEST(Profiles, separate_arenas_take_captures_and_large_batches) {
  passes::Compiled compiled = compileFor(addition(examples::kAdditionBatch, true), "webgpu_default");
  EXPECT_TRUE(program::validate(compiled.program).ok());
  size_t arenas = 0;
  for (const program::Arena& arena : compiled.program.arenas) arenas += arena.role == program::ArenaRole::Workspace ? 1 : 0;
  EXPECT_GE(arenas, 2u);
  EXPECT_LE(arenas, 6u);
}

TEST(Profiles, plans_of_the_samples_are_small) {
  for (const char* profile : {"portable", "cpu"}) {
    passes::PlanSummary plan = compileFor(sine(), profile).plan;
    EXPECT_LE(plan.dispatches, 20u) << profile;
    EXPECT_LE(plan.levels, 12u) << profile;
    Sample sample = addition(examples::kAdditionBatch);
    sample.optimizer.clip_grad_norm = 1;
    plan = compileFor(sample, profile).plan;
    EXPECT_LE(plan.dispatches, 150u) << profile;
    EXPECT_LE(plan.levels, 90u) << profile;
    EXPECT_LE(plan.total_bytes, 15'000'000u) << profile;
  }
}

TEST(Profiles, convolutions_make_no_copy_of_their_windows) {
  passes::Compiled compiled = compileFor(cnn(64), "cpu");
  EXPECT_LE(compiled.plan.dispatches, 24u);
  EXPECT_LE(compiled.plan.total_bytes, 12'500'000u);
  EXPECT_LE(compileFor(cnn(64), "portable").plan.dispatches, 27u);
  // The largest temporaries are the activations [64, 16, 28, 28].
  for (const program::Buffer& buffer : compiled.program.buffers) {
    if (buffer.role != program::ArenaRole::Workspace) continue;
    EXPECT_LE(buffer.size, 64u * 16 * 28 * 28 * 4) << buffer.name;
  }
}

class ProfilesOnDevices : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ProfilesOnDevices, testing::Values("reference", "vulkan"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ProfilesOnDevices, sine_trains_to_the_same_bits) {
  Trained portable = train(GetParam(), sine(), "portable");
  EXPECT_LT(portable.losses[1], portable.losses[0]);
  expectSameBits(train(GetParam(), sine(), "webgpu_default"), portable);
  expectSameBits(train(GetParam(), sine(), "small_bindings"), portable);
}

TEST_P(ProfilesOnDevices, addition_trains_to_the_same_bits) {
  Trained portable = train(GetParam(), addition(), "portable");
  EXPECT_LT(portable.losses[1], portable.losses[0]);
  expectSameBits(train(GetParam(), addition(), "webgpu_default"), portable);
  expectSameBits(train(GetParam(), addition(), "small_bindings"), portable);
}

TEST_P(ProfilesOnDevices, cnn_trains_to_the_same_bits) {
  Trained portable = train(GetParam(), cnn(3), "portable");
  EXPECT_LT(portable.losses[1], portable.losses[0]);
  expectSameBits(train(GetParam(), cnn(3), "webgpu_default"), portable);
}

TEST_P(ProfilesOnDevices, clipped_update_in_slices_differs_in_the_rounding_of_the_norm) {
  Sample sample = addition();
  sample.optimizer.clip_grad_norm = 1;
  Trained whole = train(GetParam(), sample, "portable"), slices = train(GetParam(), sample, "small_bindings");
  EXPECT_EQ(whole.losses[0], slices.losses[0]);
  EXPECT_NEAR(whole.losses[1], slices.losses[1], 1e-6 * whole.losses[1]);
  ASSERT_EQ(whole.parameters.size(), slices.parameters.size());
  // Two updates of at most the rate; the scale of the gradients differs by a rounding or two.
  for (size_t i = 0; i < whole.parameters.size(); ++i) ASSERT_NEAR(whole.parameters[i], slices.parameters[i], 1e-6) << i;
}

TEST_P(ProfilesOnDevices, memory_limit_trades_levels_for_bytes) {
  Sample sample = addition();
  const std::vector<std::string> single{"mergeDispatches"};  // which finds fewer to merge in more levels
  passes::PlanSummary free = compileFor(sample, "portable", 0, single).plan;
  // What the backward pass needs of the forward pass lives in any order; there is not more to gain here.
  uint64_t limit = free.workspace_bytes - free.workspace_bytes / 100;
  passes::PlanSummary limited = compileFor(sample, "portable", limit, single).plan;
  EXPECT_LE(limited.workspace_bytes, limit);
  EXPECT_GT(limited.levels, free.levels);
  EXPECT_EQ(limited.dispatches, free.dispatches);
  expectSameBits(train(GetParam(), sample, "portable", limit), train(GetParam(), sample, "portable"));
}

// Not on drivers of CPUs, which compile such kernels for half a minute.
TEST(Profiles, chains_of_rows_train_as_kernels_of_their_own) {
  program::DeviceProfile profile = gpuProfile();
  for (const Sample& sample : {addition(), recurrent()}) {
    const Trained chained = train("sanitizer:race,memory", sample, profile), apart = train("reference", sample, profile, 0, {"chainRows"});
    EXPECT_LT(compileFor(sample, profile).plan.levels, compileFor(sample, profile, 0, {"chainRows"}).plan.levels);
    for (size_t step = 0; step < apart.losses.size(); ++step) EXPECT_NEAR(chained.losses[step], apart.losses[step], 1e-5);
    ASSERT_EQ(chained.parameters.size(), apart.parameters.size());
    double sum = 0;
    for (size_t i = 0; i < apart.parameters.size(); ++i) sum += std::abs(chained.parameters[i] - apart.parameters[i]);
    EXPECT_LE(sum / static_cast<double>(apart.parameters.size()), 1e-5);
  }
}

}  // namespace
}  // namespace lockstep
