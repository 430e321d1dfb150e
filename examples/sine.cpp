// SPDX-License-Identifier: Apache-2.0
// Fitting a sine: 1 -> 64 -> 64 -> 1, mean squared error, Adam.
#include <cmath>
#include <numbers>

#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/io/plot.h"

namespace lockstep::examples {
namespace {

constexpr size_t kPoints = 200;

class Sine : public Experiment {
 public:
  explicit Sine(const ExperimentOptions& options)
      : seed_(options.seed),
        trainer_(compile(options.with(sineSpec()))),
        curve_(trainer_.attach(
            {.inputs = {{"x", f32(kPoints, 1)}}, .forward = [](const Mlp& model, const Inputs& in) { return model(in["x"]); }})) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    data_ = sineBatch(seed_, step, 256);
    return {{"x", data_.x}, {"y", data_.y}};
  }

  Metrics measure() override {
    const Fit fit = fitted();
    double worst = 0;
    for (size_t i = 0; i < kPoints; ++i) {
      const double error = std::abs(fit.y[i] - std::sin(fit.x[i]));
      if (std::isnan(error) || error > worst) worst = error;  // std::max would pass over a NaN
    }
    return {{"worst_error", worst}};
  }

  std::vector<Exhibit> exhibits() override {
    const Fit fit = fitted();
    io::Series wanted{.name = "sin x", .x = fit.x, .y = {}}, got{.name = "network", .x = fit.x, .y = fit.y};
    for (const double x : fit.x) wanted.y.push_back(std::sin(x));
    return {{"fit", io::plot({wanted, got}, {.title = "sine", .x_label = "x", .y_label = "y", .log_y = false})}};
  }

 private:
  struct Fit {
    std::vector<double> x, y;
  };
  Fit fitted() {
    std::vector<float> x(kPoints);
    for (size_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>((2.0 * static_cast<double>(i) / (kPoints - 1) - 1) * std::numbers::pi);
    return {{x.begin(), x.end()}, curve_.run({{"x", x}}).output.doubles()};
  }

  uint64_t seed_;
  ModelTrainer<Mlp> trainer_;
  Forward curve_;
  SineBatch data_;
};

}  // namespace

Recipe sine() {
  return {.name = "sine",
          .alias = "mlp-sin",
          .summary = "a small network fits sin(x)",
          .steps = 1000,
          .report_every = 100,
          .chunk = 20,
          .goal = {"loss", Goal::Kind::AtMost, 1e-3, 200},
          .make = make_experiment<Sine>};
}

}  // namespace lockstep::examples
