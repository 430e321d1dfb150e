// SPDX-License-Identifier: Apache-2.0
// trace(): the compiler without a device.
#include "frontend/train/compiled.h"

#include "frontend/wgsl/wgsl.h"
#include "passes/pipeline.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

TEST(Traced, training_step_is_what_a_trainer_runs) {
  const program::DeviceProfile profile = chooseDevice("reference").orThrow().info.profile;
  CompileSpec<Mlp> spec = specFor("reference");
  spec.loss = [](const Mlp& model, const Inputs& in) { return mean(square(model.l2(relu(model.l1(in["x"]))) - in["y"])); };
  const CompiledProgram traced = trace(spec, profile);
  const ProgramFacts run = compile<Mlp>(spec).facts();
  EXPECT_EQ(traced.facts.dispatches, run.dispatches);
  EXPECT_EQ(traced.facts.planned_bytes, run.planned_bytes);
  EXPECT_EQ(traced.facts.parameters, 49);
  EXPECT_EQ(traced.facts.device, "");
  EXPECT_EQ(traced.layout.slots.size(), 4u);
  EXPECT_NE(traced.program.findOutput("loss"), nullptr);
}

TEST(Traced, twice_gives_the_same_texts_which_read_back) {
  const CompiledProgram one = trace(specFor("")), two = trace(specFor(""));
  EXPECT_EQ(one.texts(), two.texts());
  const auto texts = one.texts();
  EXPECT_TRUE(passes::parseForm(texts.at("traced.graph"), "traced.graph").ok());
  EXPECT_TRUE(passes::parseForm(texts.at("program.program"), "program.program").ok());
  size_t kernels = 0;
  for (const auto& [name, text] : texts) {
    if (!name.ends_with(".wgsl")) continue;
    ++kernels;
    EXPECT_TRUE(wgsl::read(text, {.file_name = name, .overrides = {}}).ok()) << name;
  }
  EXPECT_EQ(kernels, one.program.kernels.size());
}

TEST(Traced, forward_program_has_a_result_and_no_gradients) {
  const CompiledProgram traced =
      trace(ForwardSpec<Mlp>{.inputs = {{"x", f32(3, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }});
  EXPECT_NE(traced.program.findOutput("output"), nullptr);
  EXPECT_EQ(traced.program.findOutput("loss"), nullptr);
  EXPECT_LT(traced.facts.dispatches, trace(specFor("")).facts.dispatches);
}

TEST(Traced, dynamic_extents_need_data) {
  CompileSpec<Mlp> spec = specFor("");
  spec.inputs[0].type = f32(dynamic, 1);
  EXPECT_EQ(caught([&] { (void)trace(spec); }).code(), "trace.dynamic");
}

}  // namespace
}  // namespace lockstep
