// SPDX-License-Identifier: Apache-2.0
// Fitting a sine: 1 -> 64 -> 64 -> 1, mean squared error, Adam.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "examples/models/mlp.h"
#include "frontend/ops.h"
#include "frontend/trainer.h"
#include "tools/sample_facts.h"

namespace lockstep::tools {
namespace {

using examples::Mlp;
using examples::SineBatch;
using examples::sineBatch;

constexpr size_t kBatch = 256, kPoints = 200;

class SineRun : public SampleRun {
 public:
  explicit SineRun(const SampleOptions& options)
      : seed_(options.seed),
        trainer_(compile<Mlp>({
            .inputs = {{"x", f32(kBatch, 1)}, {"y", f32(kBatch, 1)}},
            .loss = [](const Mlp& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); },
            .optimizer = adam({.lr = 5e-3}),
            .seed = options.seed,
            .device = options.device,
            .dump_ir = options.dump_directory,
            .disable = options.disabled_passes,
            .memory_limit = static_cast<uint64_t>(options.memory_limit),
            .make = [] { return std::make_unique<Mlp>(std::vector<int64_t>{1, 64, 64, 1}); },
        })),
        curve_(trainer_.attach(
            {.inputs = {{"x", f32(kPoints, 1)}}, .forward = [](const Mlp& model, const Inputs& in) { return model(in["x"]); }})),
        facts_(sampleFacts(trainer_.facts())) {}

  [[nodiscard]] const SampleFacts& facts() const override { return facts_; }

  std::vector<float> advance(int64_t count) override {
    const uint64_t first = trainer_.step_count() + 1;
    SineBatch batch;
    return lossesOf(trainer_.steps(static_cast<size_t>(count), [&](size_t i) {
      batch = sineBatch(seed_, first + i, kBatch);
      return Batch{{"x", batch.x}, {"y", batch.y}};
    }));
  }

  Metrics measure() override {
    std::vector<float> x(kPoints);
    for (size_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>((2.0 * static_cast<double>(i) / (kPoints - 1) - 1) * std::numbers::pi);
    const ForwardResult result = curve_.run({{"x", x}});
    double worst = 0;
    for (size_t i = 0; i < kPoints; ++i) worst = std::max(worst, std::abs(static_cast<double>(result.output.floats()[i]) - std::sin(x[i])));
    return {{"worst_error", worst}};
  }

  io::TensorFile checkpoint() override { return trainer_.checkpoint(); }

 private:
  uint64_t seed_;
  ModelTrainer<Mlp> trainer_;
  Forward curve_;
  SampleFacts facts_;
};

}  // namespace

std::unique_ptr<SampleRun> makeSine(const SampleOptions& options) { return std::make_unique<SineRun>(options); }

}  // namespace lockstep::tools
