// SPDX-License-Identifier: Apache-2.0
// Flow matching: a network learns the way from noise to digits, and new digits are noise that goes it in 25 steps.
#include <cmath>

#include "examples/data/digits.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/loader.h"
#include "frontend/data/random.h"

namespace lockstep::examples {
namespace {

constexpr int64_t kBatch = 64, kShown = 16;
constexpr int kParts = 25;

class FlowMatching : public Experiment {
 public:
  explicit FlowMatching(const ExperimentOptions& options)
      : seed_(options.seed),
        data_(centred(loadDigits(options.data, options.seed).train)),
        loader_({{"x", data_.pixels}}, data_.count(), {.batch = kBatch, .seed = options.seed}),
        trainer_(compile(options.with(averaged(flowSpec())))),
        velocity_(trainer_.attach({.inputs = {{"x", f32(kShown, 1, 28, 28)}, {"time", i32(kShown)}},
                                   .forward = [](const Flow& model, const Inputs& in) { return model(in["x"], in["time"]); },
                                   .use_ema = true})) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    Random random(seed_, step);
    time_.clear();
    for (int64_t i = 0; i < kBatch; ++i) time_.push_back(1 + static_cast<int32_t>(random.below(100)));
    Batch batch = loader_.batch(step);
    batch.emplace_back("time", time_);
    return batch;
  }

  /// Euler's method from time 1, noise, to time 0.
  std::vector<Exhibit> exhibits() override {
    Random random(1);
    std::vector<float> x;
    for (size_t i = 0; i < kShown * kDigitPixels; ++i) x.push_back(static_cast<float>(random.normal()));
    for (int part = kParts; part > 0; --part) {
      const std::vector<int32_t> time(kShown, static_cast<int32_t>(std::lround(100.0 * part / kParts)));
      const ForwardResult result = velocity_.run({{"x", x}, {"time", time}});
      for (size_t i = 0; i < x.size(); ++i) x[i] -= result.output.floats()[i] / kParts;
    }
    for (float& value : x) value = (value + 1) / 2;
    return {{"digits", digitGrid(x, kShown / 2)}};
  }

 private:
  /// Pictures are drawn with the average of the last thousand steps' parameters.
  static CompileSpec<Flow> averaged(CompileSpec<Flow> spec) {
    spec.optimizer.ema_decay = 0.999;
    return spec;
  }

  /// From [0, 1] to [-1, 1].
  static Digits centred(Digits digits) {
    for (float& value : digits.pixels) value = 2 * value - 1;
    return digits;
  }

  uint64_t seed_;
  Digits data_;
  Loader loader_;
  ModelTrainer<Flow> trainer_;
  Forward velocity_;
  std::vector<int32_t> time_;
};

}  // namespace

Recipe flow_matching() {
  return {.name = "flow-matching",
          .alias = "flow-matching-tiny",
          .summary = "a network learns the way from noise to digits",
          .steps = 3000,
          .report_every = 50,
          .measure_every = 1000,
          .chunk = 10,
          .goal = Goal{"loss", Goal::Kind::AtMost, 0.3, 3000},
          .data = "a folder with the four files of MNIST, packed (.gz) or not",
          .make = make_experiment<FlowMatching>};
}

}  // namespace lockstep::examples
