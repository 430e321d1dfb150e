// SPDX-License-Identifier: Apache-2.0
// A dumped program trains to the bit as the trainer that it comes from, on its own.
#include "runtime/program_trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "examples/models/samples.h"
#include "frontend/io/sealed.h"
#include "tests/runtime/dumped_training.h"

namespace lockstep::testing {
namespace {

using examples::SampleProgram;

struct Case {
  const char* sample;
  const char* device;
  int64_t steps;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.sample << " on " << c.device; }

SampleProgram findSample(std::string_view name) {
  const std::vector<SampleProgram> samples = examples::samplePrograms();
  return *std::ranges::find(samples, name, &SampleProgram::name);
}

detail::CompileRequest requestOf(const SampleProgram& sample, const std::string& device) {
  return {.model = sample.model,
          .loss = sample.loss,
          .optimizer = sample.optimizer,
          .settings = {.inputs = sample.inputs, .seed = 3, .device = device},
          .where = Where::current()};
}

/// Trains from `from`, and expects `to`.
void expectTraining(const DumpedTraining& training, const std::string& device, const io::TensorFile& from, const io::TensorFile& to,
                    size_t first, size_t steps) {
  ProgramTrainer trainer = ProgramTrainer::open(training.program(), device).orThrow();
  (void)trainer.load(from).orThrow();
  for (size_t i = 0; i < steps; ++i) {
    const ProgramStep step = trainer.step(training.batches).orThrow();
    EXPECT_EQ(step.loss, training.losses[first + i]) << "step " << step.step;
  }
  EXPECT_EQ(differences(trainer.checkpoint().orThrow(), to), "");
}

class Programs : public ::testing::TestWithParam<Case> {};

TEST_P(Programs, train_as_the_trainer_does) {
  const auto [name, device, steps] = GetParam();
  const SampleProgram sample = findSample(name);
  DumpedTraining training(fmt::format("program-{}-{}", name, device));
  train(training, requestOf(sample, device), steps, sample.integers);
  EXPECT_NE(differences(training.start, training.end), "") << "it learns something";
  const auto count = static_cast<size_t>(steps);
  expectTraining(training, device, training.start, training.end, 0, count);
  expectTraining(training, device, training.middle, training.end, count / 2, count / 2);

  const std::string checkpoint = training.scratch / "end.safetensors";
  const std::string command =
      fmt::format("'{}' '{}' {} {} {} '{}'", LOCKSTEP_TRAIN_PROGRAM, training.folder(), training.program_file, device, steps, checkpoint);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_EQ(differences(io::readSealed(checkpoint).orThrow(), training.end), "") << "a program without passes";
}
INSTANTIATE_TEST_SUITE_P(Of, Programs,
                         ::testing::Values(Case{"mlp-sin", "reference", 100}, Case{"mlp-sin", "vulkan", 100},
                                           Case{"tic-tac-toe", "reference", 100}, Case{"tic-tac-toe", "vulkan", 100},
                                           Case{"kan-tiny", "reference", 100}, Case{"kan-tiny", "vulkan", 100}, Case{"vae", "reference", 4},
                                           Case{"makemore", "reference", 4}, Case{"mnist-cnn", "vulkan", 4}),
                         [](const auto& info) {
                           std::string name = fmt::format("{}_{}", info.param.sample, info.param.device);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

/// A bit of everything that a step has: buffers, random numbers, several runs, clipping, averages, a frozen layer, a schedule of parts.
struct Everything : Module {
  nn::Linear in{*this, "in", 3, 8}, fixed{*this, "fixed", 8, 8}, out{*this, "out", 8, 5};
  nn::BatchNorm norm{*this, "norm", 8};
  Tensor operator()(Tensor x) const { return out(dropout(relu(norm(fixed(in(x)))), 0.25)); }
};

detail::CompileRequest everything(const std::string& device) {
  const OptimizerSpec optimizer = adamw(
      {.lr = schedule::warmup({.peak = 0.02, .steps = 3, .after = schedule::cosine_annealing({.peak = 0.02, .final = 0.001, .steps = 5})}),
       .weight_decay = 0.02,
       .corrected_eps = true},
      {.clip_grad_norm = 0.5,
       .groups = {{.filter = [](const std::string& name) { return name.starts_with("fixed"); }, .frozen = true}},
       .ema_decay = 0.9});
  return {.model = std::make_shared<const Everything>(),
          .loss = detail::eraseModel(
              std::function([](const Everything& model, const Inputs& in) { return cross_entropy(model(in["x"]), in["y"]); })),
          .optimizer = optimizer,
          .settings = {.inputs = {{"x", f32(6, 3)}, {"y", i32(6)}}, .seed = 11, .device = device, .accumulate = 2},
          .where = Where::current()};
}

TEST(Programs, have_everything_that_a_step_has) {
  for (const std::string device : {"reference", "vulkan"}) {
    DumpedTraining training("program-everything-" + device);
    train(training, everything(device), 10, 5);
    expectTraining(training, device, training.start, training.end, 0, 10);
    expectTraining(training, device, training.middle, training.end, 5, 5);

    // And the trainer goes on where the program was.
    ProgramTrainer program = ProgramTrainer::open(training.program(), device).orThrow();
    (void)program.load(training.start).orThrow();
    for (int i = 0; i < 5; ++i) {
      const ProgramStep step = program.step(training.batches).orThrow();
      EXPECT_TRUE(step.grad_norm.has_value());
    }
    const io::TensorFile half = program.checkpoint().orThrow();
    EXPECT_EQ(differences(half, training.middle), "");
    Trainer trainer = detail::compile(everything(device));
    (void)trainer.restore(half);
    EXPECT_EQ(trainer.step_count(), 5u);
    EXPECT_EQ(differences(trainer.checkpoint(), training.middle), "");
  }
}

TEST(Programs, need_no_pass) {
  const std::string command = fmt::format("'{}' -C '{}'", LOCKSTEP_NM, LOCKSTEP_TRAIN_PROGRAM);
  std::FILE* names = ::popen(command.c_str(), "r");
  ASSERT_NE(names, nullptr);
  std::array<char, 4096> line{};
  size_t passes = 0, own = 0;
  while (std::fgets(line.data(), static_cast<int>(line.size()), names) != nullptr) {
    const std::string_view name = line.data();
    passes += name.find("lockstep::passes::") != std::string_view::npos ? 1 : 0;
    passes += name.find("lockstep::Trainer::") != std::string_view::npos ? 1 : 0;
    own += name.find("lockstep::ProgramTrainer::step") != std::string_view::npos ? 1 : 0;
  }
  EXPECT_EQ(::pclose(names), 0);
  EXPECT_EQ(passes, 0u);
  EXPECT_GT(own, 0u) << "the names are there to be read";
}

}  // namespace
}  // namespace lockstep::testing
