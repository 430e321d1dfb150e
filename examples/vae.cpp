// SPDX-License-Identifier: Apache-2.0
// A variational autoencoder of digits: eight numbers for a picture, and new pictures from random numbers.
#include "examples/data/digits.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/loader.h"
#include "frontend/data/random.h"

namespace lockstep::examples {
namespace {

constexpr int64_t kShown = 16, kLatent = 8;

class VaeExperiment : public Experiment {
 public:
  explicit VaeExperiment(const ExperimentOptions& options)
      : data_(loadDigits(options.data, options.seed)),
        loader_({{"x", data_.train.pixels}}, data_.train.count(), {.batch = 128, .seed = options.seed}),
        trainer_(compile(options.with(vaeSpec()))),
        encode_(trainer_.attach({.inputs = {{"x", f32(dynamic, 784)}},
                                 .forward = [](const Vae& model, const Inputs& in) { return model.encode(in["x"]).mean; }})),
        decode_(trainer_.attach({.inputs = {{"z", f32(dynamic, kLatent)}},
                                 .forward = [](const Vae& model, const Inputs& in) { return model.decode(in["z"]); }})) {}

  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override { return loader_.batch(step); }

  /// Squared error of a picture that went through the eight numbers, summed over its pixels.
  Metrics measure() override {
    const std::vector<double> got = rebuilt(data_.test.count());
    double error = 0;
    for (size_t i = 0; i < got.size(); ++i) error += (got[i] - data_.test.pixels[i]) * (got[i] - data_.test.pixels[i]);
    return {{"rebuilding_error", error / static_cast<double>(data_.test.count())}};
  }

  /// Pictures, what was made of them, and pictures of random numbers.
  std::vector<Exhibit> exhibits() override {
    std::vector<float> grid(data_.test.pixels.begin(), data_.test.pixels.begin() + kShown * static_cast<ptrdiff_t>(kDigitPixels));
    const std::vector<double> again = rebuilt(kShown);
    grid.insert(grid.end(), again.begin(), again.end());
    Random random(1);
    std::vector<float> latent;
    for (int64_t i = 0; i < 2 * kShown * kLatent; ++i) latent.push_back(static_cast<float>(random.normal()));
    const ForwardResult drawn = decode_.run({{"z", latent}});
    grid.insert(grid.end(), drawn.output.floats().begin(), drawn.output.floats().end());
    return {{"digits", digitGrid(grid, kShown)}};
  }

 private:
  std::vector<double> rebuilt(size_t count) {
    const ForwardResult latent = encode_.run({{"x", std::span(std::as_const(data_.test.pixels)).first(count * kDigitPixels)}});
    return decode_.run({{"z", latent.output.floats()}}).output.doubles();
  }

  DigitData data_;
  Loader loader_;
  ModelTrainer<Vae> trainer_;
  Forward encode_, decode_;
};

}  // namespace

Recipe vae() {
  return {.name = "vae",
          .summary = "a variational autoencoder draws digits",
          .steps = 3000,
          .report_every = 100,
          .measure_every = 500,
          .chunk = 20,
          // Not the loss: pictures that are all alike bring that below 40.
          .goal = Goal{"rebuilding_error", Goal::Kind::AtMost, 24, 3000},
          .data = "a folder with the four files of MNIST, packed (.gz) or not",
          .make = make_experiment<VaeExperiment>};
}

}  // namespace lockstep::examples
