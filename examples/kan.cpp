// SPDX-License-Identifier: Apache-2.0
// A Kolmogorov-Arnold network learns sin(pi x): four splines in, four out, 72 numbers in all.
#include <cmath>
#include <numbers>

#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/io/plot.h"

namespace lockstep::examples {
namespace {

constexpr size_t kBatch = 256, kPoints = 200;

class KanExperiment : public Experiment {
 public:
  explicit KanExperiment(const ExperimentOptions& options)
      : seed_(options.seed),
        trainer_(compile(options.with(kanSpec()))),
        curve_(trainer_.attach(
            {.inputs = {{"x", f32(kPoints, 1)}}, .forward = [](const Kan& model, const Inputs& in) { return model(in["x"]); }})) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    Random random(seed_, step);
    x_.clear();
    y_.clear();
    for (size_t i = 0; i < kBatch; ++i) {
      const double x = random.uniform(-1, 1);
      x_.push_back(static_cast<float>(x));
      y_.push_back(static_cast<float>(std::sin(std::numbers::pi * x)));
    }
    return {{"x", x_}, {"y", y_}};
  }

  Metrics measure() override {
    const Fit fit = fitted();
    double worst = 0;
    for (size_t i = 0; i < kPoints; ++i) {
      const double error = std::abs(fit.y[i] - std::sin(std::numbers::pi * fit.x[i]));
      if (std::isnan(error) || error > worst) worst = error;  // std::max would pass over a NaN
    }
    return {{"worst_error", worst}};
  }

  std::vector<Exhibit> exhibits() override {
    const Fit fit = fitted();
    io::Series wanted{.name = "sin(pi x)", .x = fit.x, .y = {}}, got{.name = "network", .x = fit.x, .y = fit.y};
    for (const double x : fit.x) wanted.y.push_back(std::sin(std::numbers::pi * x));
    return {{"fit", io::plot({wanted, got}, {.title = "Kolmogorov-Arnold network", .x_label = "x", .y_label = "y", .log_y = false})}};
  }

 private:
  struct Fit {
    std::vector<double> x, y;
  };
  Fit fitted() {
    std::vector<float> x(kPoints);
    for (size_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>(2.0 * static_cast<double>(i) / (kPoints - 1) - 1);
    return {{x.begin(), x.end()}, curve_.run({{"x", x}}).output.doubles()};
  }

  uint64_t seed_;
  ModelTrainer<Kan> trainer_;
  Forward curve_;
  std::vector<float> x_, y_;
};

}  // namespace

Recipe kan() {
  return {.name = "kan",
          .alias = "kan-tiny",
          .summary = "a Kolmogorov-Arnold network fits sin(pi x)",
          .steps = 1000,
          .report_every = 100,
          .chunk = 20,
          .goal = {"loss", Goal::Kind::AtMost, 1e-3, 200},
          .make = make_experiment<KanExperiment>};
}

}  // namespace lockstep::examples
