// SPDX-License-Identifier: Apache-2.0
// What the trainer's tests share: a small model, its data, and a suite that runs on every device there is.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/lockstep.h"

namespace lockstep {

/// The Error that the function throws; a test failure when it throws none.
template <class Function>
Error caught(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(Diagnostic{});
}

struct Mlp : Module {
  nn::Linear l1{*this, "l1", 1, 16, {.init = init::randn(0.5)}}, l2{*this, "l2", 16, 1, {.init = init::randn(0.5)}};
  Tensor operator()(Tensor x) const { return l2(capture("hidden", relu(l1(x)))); }
};

constexpr size_t kBatch = 32;
struct Data {
  std::vector<float> x, y;
};
inline Data dataOf(size_t step) {
  Data data;
  for (size_t i = 0; i < kBatch; ++i) {
    float x = static_cast<float>(std::fmod(0.37 * static_cast<double>(step * kBatch + i), 2.0) - 1);
    data.x.push_back(x);
    data.y.push_back(x * x);
  }
  return data;
}
inline Batch batchOf(const Data& data) { return {{"x", data.x}, {"y", data.y}}; }

inline CompileSpec<Mlp> specFor(const std::string& device) {
  return {.inputs = {{"x", f32(kBatch, 1)}, {"y", f32(kBatch, 1)}},
          .loss = [](const Mlp& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); },
          .optimizer = adam({.lr = 0.01}),
          .seed = 7,
          .device = device};
}

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
  static ModelTrainer<Mlp> make() { return compile<Mlp>(specFor(GetParam())); }
};

inline std::string deviceName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace lockstep
