// SPDX-License-Identifier: Apache-2.0
// Models that only compute, forwards of several outputs, and places that another language makes.
#include "frontend/train/inference.h"

#include <gtest/gtest.h>

#include "tests/frontend/io/scratch.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

using testing::ScratchDirectory;

struct Statistics : Module {
  nn::Linear l{*this, "l", 2, 3};
  nn::BatchNorm norm{*this, "norm", 3};
  Tensor operator()(Tensor x) const { return norm(l(x)); }
};

const std::vector<float> kPoints = {0.5f, -1, 2, 0.25f, 1, 1, -3, 0};

CompileSpec<Statistics> training(const char* device) {
  return {.inputs = {{"x", f32(4, 2)}},
          .loss = [](const Statistics& net, const Inputs& in) { return mean(square(net(in["x"]))); },
          .optimizer = sgd({.lr = 0.1}),
          .seed = 9,
          .device = device};
}
InferenceSpec<Statistics> computing(const char* device) {
  return {.inputs = {{"x", f32(4, 2)}},
          .forward = [](const Statistics& net, const Inputs& in) { return net(in["x"]); },
          .device = device,
          .seed = 9};
}
std::vector<float> valuesOf(const HostTensor& tensor) { return {tensor.floats().begin(), tensor.floats().end()}; }

class Inferences : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Inferences, ::testing::Values("reference", "vulkan"), deviceName);

TEST_P(Inferences, compute_as_a_forward_of_the_trainer_whose_checkpoint_they_load) {
  ScratchDirectory scratch("inference");
  auto trainer = compile<Statistics>(training(GetParam()));
  Forward attached = trainer.attach({.inputs = {{"x", f32(4, 2)}}, .forward = computing(GetParam()).forward});
  auto net = forward<Statistics>(computing(GetParam()));
  const Batch batch = {{"x", kPoints}};
  EXPECT_EQ(valuesOf(net.run(batch).output), valuesOf(attached.run(batch).output)) << "the same seed gives the same initial values";
  for (int i = 0; i < 3; ++i) trainer.step(batch);
  const std::vector<float> trained = valuesOf(attached.run(batch).output);
  EXPECT_NE(valuesOf(net.run(batch).output), trained);

  trainer.save(scratch / "checkpoint.safetensors");
  EXPECT_TRUE(net.load(scratch / "checkpoint.safetensors").missing.empty());
  EXPECT_EQ(valuesOf(net.run(batch).output), trained) << "running means are part of it";
  EXPECT_EQ(net.download(), trainer.download());

  auto second = forward<Statistics>(computing(GetParam()));
  (void)io::writeSafetensors(scratch / "weights.safetensors", trainer.state_dict()).orThrow();
  second.load(scratch / "weights.safetensors");
  EXPECT_EQ(valuesOf(second.run(batch).output), trained) << "a state dict";
  auto third = forward<Statistics>(computing(GetParam()));
  third.upload(trainer.download());
  EXPECT_EQ(valuesOf(third.run(batch).output), trained);
}

TEST_P(Inferences, keep_their_weights_when_a_file_does_not_fit) {
  ScratchDirectory scratch("inference-mistakes");
  auto trainer = compile<Statistics>(training(GetParam()));
  auto net = forward<Statistics>(computing(GetParam()));
  const ParameterValues before = net.download();
  io::TensorFile file = trainer.checkpoint();
  file.tensors.erase("l.b");
  (void)io::writeSafetensors(scratch / "a.safetensors", file).orThrow();
  EXPECT_EQ(caught([&] { net.load(scratch / "a.safetensors"); }).code(), "checkpoint.missing");
  file.tensors.emplace("l.b", io::Array::fromFloats({4}, std::vector<float>(4)));
  (void)io::writeSafetensors(scratch / "a.safetensors", file).orThrow();
  EXPECT_EQ(caught([&] { net.load(scratch / "a.safetensors"); }).code(), "checkpoint.shape");
  EXPECT_EQ(caught([&] { net.load_state_dict({}); }).code(), "state_dict.missing");
  EXPECT_EQ(caught([&] { net.upload({}); }).code(), "parameters.missing");
  EXPECT_EQ(caught([&] { net.load(scratch / "none.safetensors"); }).code(), "file.read");
  EXPECT_EQ(net.download(), before);
}

TEST_P(Inferences, take_one_parameter_at_a_time) {
  auto net = forward<Statistics>(computing(GetParam()));
  ParameterValues values = net.download();
  std::vector<float>& weights = values.at("l.W");
  std::ranges::fill(weights, 0.25F);
  const auto fileOf = [&](const std::string& name, int64_t count) {
    io::TensorFile file;
    file.tensors.emplace(name, io::Array::fromFloats({count}, std::span(weights).first(static_cast<size_t>(count))));
    return file;
  };
  io::TensorFile whole;
  const Parameter& parameter = net.model().l.W.parameter();
  whole.tensors.emplace("l.W", io::Array::fromFloats(parameter.type().shape.extents(), weights));
  net.write(whole);
  EXPECT_EQ(net.download(), values);
  EXPECT_EQ(caught([&] { net.write(fileOf("nothing", 1)); }).code(), "parameters.unknown");
  EXPECT_EQ(caught([&] { net.write(fileOf("l.W", 1)); }).code(), "parameters.type");
}

TEST_P(Inferences, give_several_outputs_by_name) {
  InferenceSpec<Statistics> spec = computing(GetParam());
  spec.forward = [](const Statistics& net, const Inputs& in) {
    Tensor y = net.l(in["x"]);
    return Outputs{{"values", y}, {"largest", argmax(y, 1)}, {"output", sum(y)}};
  };
  auto net = forward<Statistics>(spec);
  const ForwardResult result = net.run({{"x", kPoints}});
  EXPECT_EQ(result.outputs.names(), (std::vector<std::string>{"largest", "output", "values"}));
  EXPECT_EQ(result.output.name(), "values") << "the first one";
  const std::vector<float> values = valuesOf(result.outputs.get("values"));
  ASSERT_EQ(values.size(), 12u);
  for (size_t row = 0; row < 4; ++row) {
    const auto* const begin = values.data() + row * 3;
    EXPECT_EQ(result.outputs.get("largest").ints()[row], std::max_element(begin, begin + 3) - begin);
  }
  // A trainer's forward does it too, and one output has no list.
  auto trainer = compile<Statistics>(training(GetParam()));
  EXPECT_EQ(trainer.attach({.inputs = spec.inputs, .forward = spec.forward}).run({{"x", kPoints}}).outputs.names().size(), 3u);
  EXPECT_TRUE(forward<Statistics>(computing(GetParam())).run({{"x", kPoints}}).outputs.names().empty());
}

/// Rows that came in so far, by a forward that writes one more.
struct Notes : Module {
  Buffer rows{*this, "rows", {5, 2}}, count{*this, "count", {}, 0, DType::I32};
  Parameter scale{*this, "scale", {2}, init::ones()};
  Tensor add(Tensor row) const {
    rows.update(write_rows(rows, row, count, 0));
    count.update(count + 1);
    return rows * scale;
  }
};

TEST_P(Inferences, have_several_programs_of_one_model) {
  std::optional<Forward> longer, all;
  {
    auto notes = forward<Notes>({.inputs = {{"row", f32(1, 2)}},
                                 .forward = [](const Notes& its, const Inputs& in) { return its.add(in["row"]); },
                                 .device = GetParam(),
                                 .seed = 1,
                                 .updates_buffers = true});
    longer = notes.attach({.inputs = {{"row", f32(1, 2)}},
                           .forward = [](const Notes& its, const Inputs& in) { return its.add(in["row"] * 10.0); },
                           .updates_buffers = true});
    all = notes.attach({.forward = [](const Notes& its, const Inputs&) {
      return Outputs(std::vector<std::pair<std::string, Tensor>>{{"rows", its.rows}, {"count", its.count}});
    }});
    notes.upload({{"count", {0}}, {"rows", std::vector<float>(10, 0)}, {"scale", {1, 1}}});
    notes.run({{"row", std::vector<float>{1, 2}}});
  }
  // Buffers are shared, and last as long as any of them.
  longer->run({{"row", std::vector<float>{3, 4}}});
  const ForwardResult kept = all->run({});
  EXPECT_EQ(valuesOf(kept.outputs.get("rows")), (std::vector<float>{1, 2, 30, 40, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(kept.outputs.get("count").ints()[0], 2);
}

TEST_P(Inferences, may_keep_a_state_from_run_to_run) {
  auto notes = forward<Notes>({.inputs = {{"row", f32(1, 2)}},
                               .forward = [](const Notes& net, const Inputs& in) { return net.add(in["row"]); },
                               .device = GetParam(),
                               .updates_buffers = true});
  std::vector<float> want(10, 0);
  for (int run = 0; run < 5; ++run) {
    const std::vector<float> row{static_cast<float>(run + 1), -0.5f};
    std::ranges::copy(row, want.begin() + 2 * run);
    EXPECT_EQ(valuesOf(notes.run({{"row", row}}).output), want) << run;
  }
  EXPECT_EQ(notes.download().at("count"), std::vector<float>{5});
  notes.upload({{"count", {1}}, {"rows", std::vector<float>(10, 0)}, {"scale", {1, 1}}});
  std::ranges::fill(want, 0.0f);
  want[2] = want[3] = 7;
  const std::vector<float> row{7, 7};
  EXPECT_EQ(valuesOf(notes.run({{"row", row}}).output), want);
}

TEST_P(Inferences, profile_a_run_that_counts) {
  auto notes = forward<Notes>({.inputs = {{"row", f32(1, 2)}},
                               .forward = [](const Notes& net, const Inputs& in) { return net.add(in["row"]); },
                               .device = GetParam(),
                               .updates_buffers = true});
  const std::vector<float> row{3, 4};
  const StepProfile profile = notes.profile({{"row", row}});
  EXPECT_EQ(profile.step, 1u);
  EXPECT_GE(profile.commands.size(), notes.facts().dispatches);
  EXPECT_GE(profile.output_bytes, 10 * sizeof(float));
  EXPECT_EQ(valuesOf(notes.run({{"row", row}}).output), (std::vector<float>{3, 4, 3, 4, 0, 0, 0, 0, 0, 0}));
  EXPECT_THROW((void)notes.profile({}), Error);
}

/// What is made of the old value and of the new one needs both at once.
TEST_P(Inferences, may_compare_a_state_with_what_it_was) {
  auto notes = forward<Notes>({.inputs = {{"row", f32(1, 2)}},
                               .forward =
                                   [](const Notes& net, const Inputs& in) {
                                     const Tensor old = net.rows;
                                     return net.add(in["row"]) - old;
                                   },
                               .device = GetParam(),
                               .updates_buffers = true});
  for (size_t run = 0; run < 5; ++run) {
    std::vector<float> want(10, 0);
    want[2 * run] = want[2 * run + 1] = 3;
    const std::vector<float> row{3, 3};
    EXPECT_EQ(valuesOf(notes.run({{"row", row}}).output), want) << run;
  }
}

struct Wide : Module {
  Parameter head{*this, "head", {3}, init::randn(1)}, wide{*this, "wide", {4100, 4200}, init::constant(0.5)},
      tail{*this, "tail", {5}, init::randn(1)};
};

// More than what is written at once.
TEST(LargeInference, begins_with_the_values_of_its_initializers) {
  auto net = forward<Wide>(
      {.forward = [](const Wide& model, const Inputs&) -> Outputs { return sum(model.wide) + sum(model.head) + sum(model.tail); },
       .device = "reference",
       .seed = 3});
  const ParameterValues values = net.download();
  const Wide model;
  uint32_t index = 0;
  for (const NamedParameter& named : model.parameters())
    EXPECT_TRUE(values.at(named.name) == named.parameter->initial(3, index++)) << named.name;
}

TEST(Outputs, have_names_of_their_own) {
  const auto codeOf = [](std::function<Outputs(const Statistics&, const Inputs&)> function) {
    InferenceSpec<Statistics> spec = computing("reference");
    spec.forward = std::move(function);
    return caught([&] { forward<Statistics>(spec); }).code();
  };
  EXPECT_EQ(codeOf([](const Statistics&, const Inputs& in) { return Outputs{{"a", in["x"]}, {"a", in["x"] + 1.0}}; }), "forward.output");
  EXPECT_EQ(codeOf([](const Statistics&, const Inputs& in) { return Outputs{{"", in["x"]}}; }), "forward.output");
  EXPECT_EQ(codeOf([](const Statistics&, const Inputs&) { return Outputs(std::initializer_list<std::pair<std::string, Tensor>>{}); }),
            "forward.output");
  EXPECT_EQ(codeOf([](const Statistics&, const Inputs& in) { return Outputs{{"a", capture("a", in["x"])}}; }), "forward.output");
  EXPECT_EQ(codeOf({}), "compile.function");
}

TEST(Places, can_be_made_by_another_language) {
  InferenceSpec<Statistics> spec = computing("reference");
  spec.forward = [](const Statistics&, const Inputs& in) { return matmul(in["x"], in["x"], Where::of(std::string("model.py"), 7, 3)); };
  const Error error = caught([&] { forward<Statistics>(spec); });
  EXPECT_EQ(error.code(), "matmul.C3");
  const Location& where = error.diagnostics().front().where;
  EXPECT_EQ(where.file, "model.py");
  EXPECT_EQ(where.line, 7u);
  EXPECT_EQ(where.column, 3u);
  EXPECT_EQ(Where::of("a.py", 1).file_name(), Where::of(std::string("a.py"), 2).file_name()) << "the name is kept once";
}

}  // namespace
}  // namespace lockstep
