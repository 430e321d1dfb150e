// SPDX-License-Identifier: Apache-2.0
// Trainers that are global variables: made before main(), when no constructor of a global of the library need have run, and destroyed
// after it.
#include <algorithm>
#include <optional>

#include "ir/graph/op_def.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

std::optional<ModelTrainer<Mlp>> trainerOn(const char* device) {
  if (!chooseDevice(device).ok()) return std::nullopt;
  return compile<Mlp>(specFor(device));
}

// The linker takes this file before the archives, so these are initialized first.
const auto kReadyOps = std::ranges::count_if(graph::allOps(), [](const graph::OpDef* op) { return !op->name->empty(); });
std::optional<ModelTrainer<Mlp>> on_reference = trainerOn("reference"), on_vulkan = trainerOn("vulkan");
Forward global_forward =
    on_reference->attach({.inputs = {{"x", f32(2, 1)}}, .forward = [](const Mlp& model, const Inputs& in) { return model(in["x"]); }});
Function global_function =
    lockstep::function({.inputs = {{"x", f32(2)}}, .body = [](const Inputs& in) { return exp(in["x"]); }, .device = "reference"});
// The reader of WGSL has tables of its own.
const Kernel kGlobalKernel{{.name = "copy",
                            .source =
                                "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
                                "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
                                "@compute @workgroup_size(2) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[id.x]; }"}};

void expectToTrain(std::optional<ModelTrainer<Mlp>>& trainer) {
  if (!trainer) GTEST_SKIP() << "no usable device";
  float first = trainer->step(batchOf(dataOf(0))).loss, last = first;
  for (size_t step = 1; step < 20; ++step) last = trainer->step(batchOf(dataOf(step))).loss;
  EXPECT_LT(last, first);
}

TEST(GlobalTrainer, every_op_is_there_before_main) { EXPECT_EQ(kReadyOps, std::ssize(graph::allOps())); }
TEST(GlobalTrainer, forwards_functions_and_kernels_are_ready_too) {
  const std::vector<float> x{0, 0};
  EXPECT_EQ(global_forward.run({{"x", x}}).output.floats().size(), 2u);
  EXPECT_EQ(global_function({{"x", x}}).value.doubles(), (std::vector<double>{1, 1}));
  Function copy = lockstep::function(
      {.inputs = {{"x", f32(2)}}, .body = [](const Inputs& in) { return kGlobalKernel({in["x"]})[0]; }, .device = "reference"});
  EXPECT_EQ(copy({{"x", x}}).value.doubles(), (std::vector<double>{0, 0}));
}
TEST(GlobalTrainer, trains_on_the_reference) { expectToTrain(on_reference); }
TEST(GlobalTrainer, trains_on_vulkan) { expectToTrain(on_vulkan); }

}  // namespace
}  // namespace lockstep
