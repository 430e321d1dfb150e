// SPDX-License-Identifier: Apache-2.0
// A small training step with its dump, for tests of what compares devices.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/io/file.h"
#include "frontend/io/safetensors.h"
#include "frontend/lockstep.h"
#include "passes/stage.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {

struct SmallModel : Module {
  nn::Linear first{*this, "first", 3, 8}, second{*this, "second", 8, 1};
  Tensor operator()(const Tensor& x) const { return second(exp(first(x))); }
};

/// The line of the exp above, from which its place is known.
inline constexpr int kExpLine = 21;

/// Compiled for the reference, with a dump of its first step.
class SmallStep {
 public:
  SmallStep() : scratch_("small_step") {
    auto trainer =
        compile<SmallModel>({.inputs = {{"x", f32(16, 3)}, {"y", f32(16, 1)}},
                             .loss = [](const SmallModel& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); },
                             .optimizer = adam({.lr = 1e-2}),
                             .device = "reference",
                             .dump_ir = (scratch_ / "dump").string()});
    std::vector<float> x(48), y(16);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) * 0.25f - 0.75f;
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 5) * 0.5f;
    (void)trainer.step({{"x", x}, {"y", y}}).or_throw();
  }

  [[nodiscard]] std::filesystem::path dump() const { return scratch_ / "dump"; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return scratch_ / name; }
  [[nodiscard]] io::TensorFile inputs() const { return *io::readSafetensors(dump() / "inputs.safetensors"); }
  /// A stage by the end of its file's name.
  [[nodiscard]] passes::Form stage(const std::string& ending) const {
    const std::vector<std::filesystem::path> files = *io::listFolder(dump());
    for (const std::filesystem::path& file : files) {
      if (file.filename().string().ends_with(ending)) return passes::parseForm(*io::readTextFile(file), file.string()).orThrow();
    }
    throw std::runtime_error("the dump has no stage " + ending);
  }

 private:
  ScratchDirectory scratch_;
};

}  // namespace lockstep::testing
