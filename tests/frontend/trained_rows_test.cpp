// SPDX-License-Identifier: Apache-2.0
// Parameters of which only some rows are trained, on every device there is.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>

#include "frontend/io/safetensors.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

/// The loss is the sum of all p x, so that the gradient of a parameter is its input.
struct Tables : Module {
  Parameter a{*this, "a", {7, 11}, init::randn(1)}, b{*this, "b", {3, 4, 5}, init::randn(1)}, c{*this, "c", {9}, init::randn(1)};
};

std::vector<float> inputOf(size_t count, int step, double phase) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(std::sin(phase + 0.3 * static_cast<double>(i) + step)));
  return values;
}

NameFilter only(const std::string& wanted) {
  return [wanted](const std::string& name) { return name == wanted; };
}

/// Rows 1, 2 and 5 of a, and of b the places 1 to 3 along its middle axis.
std::vector<ParameterGroup> someRows() {
  return {{.filter = only("a"), .rows = {{.first = 1, .count = 2}, {.first = 5, .count = 1}}},
          {.filter = only("b"), .rows = {{.first = 1, .count = 3, .axis = 1}}}};
}
bool isTrainedElement(const std::string& name, size_t i) {
  if (name == "a") return i / 11 == 1 || i / 11 == 2 || i / 11 == 5;
  if (name == "b") return i / 5 % 4 >= 1;
  return true;
}

ModelTrainer<Tables> makeTables(const std::string& device, const OptimizerSpec& optimizer, int64_t accumulate = 1) {
  return compile<Tables>(
      {.inputs = {{"x", f32(7, 11)}, {"y", f32(3, 4, 5)}, {"z", f32(9)}},
       .loss = [](const Tables& m, const Inputs& in) { return sum(m.a * in["x"]) + sum(m.b * in["y"]) + sum(m.c * in["z"]); },
       .optimizer = optimizer,
       .seed = 3,
       .device = device,
       .accumulate = accumulate});
}
void stepTables(Trainer& trainer, int step, size_t runs = 1) {
  const std::vector<float> x = inputOf(runs * 77, step, 1), y = inputOf(runs * 60, step, 2), z = inputOf(runs * 9, step, 3);
  (void)trainer.step({{"x", x}, {"y", y}, {"z", z}});
}

bool sameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

/// Of elements that are not trained, and near those of another run where they are.
void expectRows(const ParameterValues& got, const ParameterValues& before, const ParameterValues& free) {
  for (const auto& [name, values] : got) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (isTrainedElement(name, i)) {
        EXPECT_NEAR(values[i], free.at(name)[i], 1e-6) << name << " " << i;
        EXPECT_NE(values[i], before.at(name)[i]) << name << " " << i;
      } else {
        EXPECT_TRUE(sameBits(values[i], before.at(name)[i])) << name << " " << i;
      }
    }
  }
}

class TrainedRows : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, TrainedRows, testing::Values("reference", "vulkan"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(TrainedRows, others_keep_their_bits_and_these_follow_the_rule) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("lockstep-rows-{}-{}", GetParam(), ::getpid());
  const auto all = [](OptimizerSpec spec) {
    spec.ema_decay = 0.9;
    return spec;
  };
  for (const OptimizerSpec& free : {all(adam({.lr = 0.01})), all(adamw({.lr = 0.01, .weight_decay = 0.1})),
                                    all(sgd({.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1})),
                                    all(sgd({.lr = 0.1, .weight_decay = 0.1})), all(lion({.lr = 0.01, .weight_decay = 0.1}))}) {
    OptimizerSpec some = free;
    some.groups = someRows();
    auto masked = makeTables(GetParam(), some), whole = makeTables(GetParam(), free);
    const ParameterValues before = masked.download();
    ASSERT_EQ(before, whole.download());
    for (int step = 1; step <= 4; ++step) {
      stepTables(masked, step);
      stepTables(whole, step);
    }
    expectRows(masked.download(), before, whole.download());
    expectRows(masked.download_ema(), before, whole.download_ema());
    masked.save(path);
    const io::TensorFile file = io::readSafetensors(path).orThrow();
    std::filesystem::remove(path);
    for (const char* moment : {"m/a", "v/a", "m/b", "v/b"}) {
      const io::Array* array = file.find(moment);
      if (array == nullptr) continue;
      const std::vector<float> values = array->toFloats();
      for (size_t i = 0; i < values.size(); ++i) {
        const bool trained = isTrainedElement(std::string(moment).substr(2), i);
        EXPECT_EQ(sameBits(values[i], 0), !trained) << moment << " " << i;
      }
    }
  }
}

TEST_P(TrainedRows, gradients_of_the_others_count_for_no_norm) {
  OptimizerSpec some = sgd({.lr = 1}, {.clip_grad_norm = 0.5, .groups = someRows()});
  auto trainer = makeTables(GetParam(), some);
  const ParameterValues before = trainer.download();
  const std::vector<float> x = inputOf(77, 1, 1), y = inputOf(60, 1, 2), z = inputOf(9, 1, 3);
  double squares = 0;
  for (size_t i = 0; i < 77; ++i) squares += isTrainedElement("a", i) ? x[i] * x[i] : 0;
  for (size_t i = 0; i < 60; ++i) squares += isTrainedElement("b", i) ? y[i] * y[i] : 0;
  for (const float g : z) squares += g * g;
  const StepResult result = trainer.step({{"x", x}, {"y", y}, {"z", z}});
  ASSERT_TRUE(result.grad_norm.has_value());
  EXPECT_NEAR(*result.grad_norm, std::sqrt(squares), 1e-4);
  EXPECT_NEAR(trainer.download().at("a")[11], before.at("a")[11] - x[11] * 0.5 / std::sqrt(squares), 1e-5);
}

TEST_P(TrainedRows, hold_over_accumulated_runs_too) {
  const OptimizerSpec free = adamw({.lr = 0.01, .weight_decay = 0.1});
  OptimizerSpec some = free;
  some.groups = someRows();
  auto masked = makeTables(GetParam(), some, 3), whole = makeTables(GetParam(), free, 3);
  const ParameterValues before = masked.download();
  for (int step = 1; step <= 2; ++step) {
    stepTables(masked, step, 3);
    stepTables(whole, step, 3);
  }
  expectRows(masked.download(), before, whole.download());
}

}  // namespace
}  // namespace lockstep
