// SPDX-License-Identifier: Apache-2.0
// Mistakes outside of a trace name the line of the user's call.
#include <filesystem>

#include "frontend/data/loader.h"
#include "frontend/io/png.h"
#include "frontend/nn/nn.h"
#include "frontend/train/checkpoint_folder.h"
#include "frontend/train/compiled.h"
#include "frontend/train/function.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

/// A call in one line that fails under `code` and names that line.
template <class Function>
void expectHere(const char* code, uint32_t line, Function function) {
  const Error error = caught(function);
  const Diagnostic& diagnostic = error.diagnostics().front();
  EXPECT_EQ(diagnostic.code, code);
  EXPECT_TRUE(diagnostic.where.file.ends_with("places_test.cpp")) << error.what();
  EXPECT_EQ(diagnostic.where.line, line) << error.what();
}
#define EXPECT_HERE(code, ...) expectHere(code, __LINE__, [&] { (void)(__VA_ARGS__); })

TEST(Places, of_an_input_that_is_unknown) {
  auto spec = specFor("reference");
  const uint32_t line = __LINE__ + 1;
  spec.loss = [](const Mlp& model, const Inputs& in) { return mean(model(in["X"])); };
  const Error error = caught([&] { compile<Mlp>(spec); });
  EXPECT_EQ(error.diagnostics().front().where.line, line);
  EXPECT_TRUE(error.diagnostics().front().where.file.ends_with("places_test.cpp"));
  EXPECT_EQ(error.diagnostics().front().remedy, "declare it in .inputs, which has x, y");
  // Names need not be literals.
  const std::string name = "x";
  const std::string_view view = name;
  auto function = lockstep::function({.inputs = {{"x", f32(2)}},
                                      .body = [&](const Inputs& in) { return in[name] + in[view] + in[std::string("x")]; },
                                      .device = "reference"});
  EXPECT_EQ(function({{"x", std::vector<float>{1, 2}}}).value.doubles(), (std::vector<double>{3, 6}));
}

TEST(Places, of_a_step) {
  auto trainer = compile<Mlp>(specFor("reference"));
  const uint32_t compiled = __LINE__ - 1;
  const Data data = dataOf(0);
  const std::vector<float> shorter(3);
  const std::vector<int32_t> ints(kBatch);
  const Batch missing{{"x", data.x}}, unknown{{"x", data.x}, {"y", data.y}, {"z", data.y}}, wrong_type{{"x", data.x}, {"y", ints}};
  const Batch wrong_size{{"x", data.x}, {"y", shorter}}, twice{{"x", data.x}, {"y", data.y}, {"y", data.y}};
  const auto always = [&](size_t) { return missing; };
  EXPECT_HERE("batch.missing", trainer.step(missing));
  EXPECT_HERE("batch.unknown", trainer.step(unknown));
  EXPECT_HERE("batch.type", trainer.step(wrong_type));
  EXPECT_HERE("batch.length", trainer.step(wrong_size));
  EXPECT_HERE("batch.twice", trainer.step(twice));
  EXPECT_HERE("batch.missing", trainer.steps(2, always));
  EXPECT_HERE("batch.missing", trainer.enqueue(2, always));
  EXPECT_HERE("batch.missing", trainer.profile(missing));
  EXPECT_HERE("steps.count", trainer.steps(0, always));
  EXPECT_HERE("steps.ticket", trainer.wait(77));
  // The declaration is named as well.
  const Error error = caught([&] { trainer.step(missing); });
  ASSERT_EQ(error.diagnostics().front().notes.size(), 1u);
  EXPECT_EQ(error.diagnostics().front().notes[0].message, "the inputs are declared here");
  EXPECT_EQ(error.diagnostics().front().notes[0].where.line, compiled);
  EXPECT_EQ(trainer.compiled_at().line(), compiled);
}

TEST(Places, of_programs_that_only_compute) {
  auto trainer = compile<Mlp>(specFor("reference"));
  Forward forward = trainer.attach({.inputs = {{"x", f32(2, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }});
  EXPECT_HERE("batch.missing", forward.run({}));
  const std::vector<float> xs(2);
  const ForwardResult result = forward.run({{"x", xs}});
  EXPECT_HERE("value.type", result.output.ints());
  EXPECT_HERE("value.type", forward.run({{"x", xs}}).output.uints());
  EXPECT_HERE("capture.unknown", result.captures.get("hidden"));
  EXPECT_HERE("capture.unknown", result.captures.per_head("hidden"));
  const Captures captures({HostTensor("flat", f32(1), std::as_bytes(std::span(xs).first(1)))});
  EXPECT_HERE("capture.heads", captures.per_head("flat"));
  auto function = lockstep::function({.inputs = {{"x", f32(2)}}, .body = [](const Inputs& in) { return in["x"]; }, .device = "reference"});
  EXPECT_HERE("batch.missing", function({}));
}

TEST(Places, of_what_compiles) {
  auto with = [](auto change) {
    auto spec = specFor("reference");
    change(spec);
    return spec;
  };
  const auto unknown_pass = with([](auto& spec) { spec.disable = {"nonsense"}; });
  const auto no_runs = with([](auto& spec) { spec.accumulate = 0; });
  const auto no_device = with([](auto& spec) { spec.device = "abacus"; });
  const auto no_match = with(
      [](auto& spec) { spec.optimizer = adam({}, {.groups = {{.filter = [](const std::string&) { return false; }, .lr_factor = 2}}}); });
  const auto parameter_name = with([](auto& spec) { spec.inputs.push_back({"l1.W", f32(1)}); });
  const auto too_large = with([](auto& spec) { spec.memory_limit = 8; });
  EXPECT_HERE("pipeline.pass", compile<Mlp>(unknown_pass));
  EXPECT_HERE("compile.accumulate", compile<Mlp>(no_runs));
  EXPECT_HERE("device.selector", compile<Mlp>(no_device));
  EXPECT_HERE("optimizer.filter", compile<Mlp>(no_match));
  EXPECT_HERE("compile.input", compile<Mlp>(parameter_name));
  EXPECT_HERE("planBuffers.memory", compile<Mlp>(too_large));
  EXPECT_HERE("pipeline.pass", trace<Mlp>(unknown_pass));
  // Profiles are plain structs.
  const auto good = specFor("reference");
  program::DeviceProfile nothing;
  nothing.max_workgroup_invocations = 0;
  EXPECT_HERE("profile.value", trace<Mlp>(good, nothing));
  program::DeviceProfile raised;
  raised.max_binding_bytes = uint64_t{1} << 40;
  EXPECT_NO_THROW(trace<Mlp>(good, raised));
}

TEST(Places, of_rates_optimizers_and_initial_values) {
  EXPECT_HERE("optimizer.number", adam({.beta1 = 2}));
  EXPECT_HERE("optimizer.number", adamw({.weight_decay = -1}));
  EXPECT_HERE("optimizer.nesterov", sgd({.nesterov = true}));
  EXPECT_HERE("optimizer.number", lion({.beta2 = 1}));
  EXPECT_HERE("schedule.steps", schedule::linear({.peak = 1, .final = 0, .steps = 0}));
  EXPECT_HERE("schedule.steps", schedule::cosine_annealing({.peak = 1, .final = 0, .steps = 0}));
  EXPECT_HERE("schedule.steps", schedule::warmup({.peak = 1, .steps = 0, .after = 1.0}));
  EXPECT_HERE("schedule.steps", schedule::staircase({.peak = 1, .every = 0, .gamma = 0.5}));
  EXPECT_HERE("schedule.steps", schedule::multi_step({.peak = 1, .milestones = {0}, .gamma = 0.5}));
  EXPECT_HERE("init.number", init::randn(-1));
  EXPECT_HERE("init.range", init::uniform(1, 1));
  EXPECT_HERE("init.range", init::truncated_normal(1, 0));
  EXPECT_HERE("init.number", init::constant(NAN));
  EXPECT_HERE("init.number", init::kaiming_normal(-1));
}

TEST(Places, of_what_is_too_large_or_does_not_exist) {
  struct Deep : Module {
    ModuleList<nn::Linear> layers{*this, "layers", 2, 4, 4};
  } deep;
  EXPECT_HERE("module.index", deep.layers[2]);
  EXPECT_HERE("module.index", deep.layers[-1]);
  EXPECT_EQ(deep.layers[size_t{1}].path(), "layers.1");
  EXPECT_EQ(caught([&] { (void)deep.layers[2]; }).diagnostics().front().message, "there is no part 2 of 'layers', which has 2");
  Deep owner;
  EXPECT_HERE("parameter.shape", nn::Linear(owner, "huge", 1 << 20, 1 << 20));
  EXPECT_HERE("parameter.shape", Parameter(owner, "huger", {int64_t{1} << 40, int64_t{1} << 40}));
  EXPECT_HERE("parameter.shape", Buffer(owner, "buffer", {1 << 20, 1 << 20}));
  const auto identity = [](const Inputs& in) { return in["x"]; };
  const FunctionSpec huge{.inputs = {{"x", f32(1 << 20, 1 << 20)}}, .body = identity, .device = "reference"};
  const FunctionSpec beyond{.inputs = {{"x", f32(int64_t{1} << 40, int64_t{1} << 40)}}, .body = identity, .device = "reference"};
  EXPECT_HERE("input.C1", function(huge));
  EXPECT_HERE("input.C1", function(beyond));
  const std::vector<float> five(5);
  EXPECT_HERE("array.length", io::Array::fromFloats({2, 3}, five));
  EXPECT_HERE("array.shape", io::Array::zeros(io::ElementType::F32, {2, -3}));
  EXPECT_HERE("image.size", io::Image(0, 3, {}));
  // A tensor that was put together wrongly is not written.
  io::TensorFile file;
  file.tensors.emplace("x", io::Array{io::ElementType::F32, {3}, {}});
  EXPECT_EQ(io::writeSafetensors(testing::TempDir() + "places_test.safetensors", file).diagnostics().front().code, "safetensors.length");
}

TEST(Places, of_parameters_and_files) {
  auto trainer = compile<Mlp>(specFor("reference"));
  EXPECT_HERE("parameters.missing", trainer.upload({}));
  EXPECT_HERE("parameters.ema", trainer.download_ema());
  EXPECT_HERE("schedule.number", trainer.set_lr(NAN));
  EXPECT_HERE("checkpoint.metadata", trainer.restore({}));
  EXPECT_HERE("state_dict.missing", trainer.load_state_dict({}));
  EXPECT_HERE("loader.batch", Loader({}, 3, {.batch = 0}));
  EXPECT_HERE("file.directory", CheckpointFolder("/proc/no/folder"));
  // An error about a file names the file, and the call in a note.
  const std::string path = testing::TempDir() + "places_test.safetensors";
  (void)io::writeSafetensors(path, {}).orThrow();
  const uint32_t line = __LINE__ + 1;
  const Error error = caught([&] { trainer.load(path); });
  EXPECT_EQ(error.code(), "checkpoint.metadata");
  EXPECT_EQ(error.diagnostics().front().where.file, path);
  ASSERT_EQ(error.diagnostics().front().notes.size(), 1u);
  EXPECT_EQ(error.diagnostics().front().notes[0].where.line, line);
  std::filesystem::remove(path);
  // One that is not there is named in the message.
  EXPECT_HERE("file.read", trainer.load(path));
}

}  // namespace
}  // namespace lockstep
