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

void expectToTrain(std::optional<ModelTrainer<Mlp>>& trainer) {
  if (!trainer) GTEST_SKIP() << "no usable device";
  float first = trainer->step(batchOf(dataOf(0))).loss, last = first;
  for (size_t step = 1; step < 20; ++step) last = trainer->step(batchOf(dataOf(step))).loss;
  EXPECT_LT(last, first);
}

TEST(GlobalTrainer, every_op_is_there_before_main) { EXPECT_EQ(kReadyOps, std::ssize(graph::allOps())); }
TEST(GlobalTrainer, trains_on_the_reference) { expectToTrain(on_reference); }
TEST(GlobalTrainer, trains_on_vulkan) { expectToTrain(on_vulkan); }

}  // namespace
}  // namespace lockstep
