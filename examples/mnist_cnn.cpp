// SPDX-License-Identifier: Apache-2.0
// Which digit is it? Two convolutions with max pooling and two linear layers; MNIST with --data, else drawn digits.
#include <algorithm>

#include "examples/data/digits.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/loader.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

constexpr size_t kEvaluated = 256, kShown = 10;

class MnistCnn : public Experiment {
 public:
  explicit MnistCnn(const ExperimentOptions& options)
      : data_(loadDigits(options.data, options.seed)),
        loader_({{"x", data_.train.pixels}, {"y", data_.train.labels}}, data_.train.count(), {.batch = 64, .seed = options.seed}),
        trainer_(compile(options.with(cnnSpec()))),
        classify_(trainer_.attach({.inputs = {{"x", f32(kEvaluated, 1, 28, 28)}},
                                   .forward = [](const Cnn& model, const Inputs& in) { return argmax(model(in["x"]), -1); }})) {}

  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override { return loader_.batch(step); }

  Metrics measure() override {
    size_t right = 0, seen = 0;
    for (size_t first = 0; first + kEvaluated <= data_.test.count(); first += kEvaluated) {
      const std::vector<int32_t> guesses = guess(first);
      for (size_t i = 0; i < kEvaluated; ++i) right += guesses[i] == data_.test.labels[first + i] ? 1 : 0;
      seen += kEvaluated;
    }
    return {{"test_accuracy", seen > 0 ? static_cast<double>(right) / static_cast<double>(seen) : 0}};
  }

  std::vector<Exhibit> exhibits() override {
    const std::vector<int32_t> guesses = guess(0);
    std::string text = "guessed";
    for (size_t i = 0; i < kShown; ++i) text += " " + std::to_string(guesses[i]);
    return {{"digits", digitGrid(std::span(data_.test.pixels).first(kShown * kDigitPixels), kShown)}, {"guesses", text + "\n"}};
  }

 private:
  std::vector<int32_t> guess(size_t first) {
    const auto pictures = std::span(std::as_const(data_.test.pixels)).subspan(first * kDigitPixels, kEvaluated * kDigitPixels);
    const ForwardResult result = classify_.run({{"x", pictures}});
    return {result.output.ints().begin(), result.output.ints().end()};
  }

  DigitData data_;
  Loader loader_;
  ModelTrainer<Cnn> trainer_;
  Forward classify_;
};

}  // namespace

Recipe mnist_cnn() {
  return {.name = "mnist-cnn",
          .summary = "a convolutional network reads digits",
          .steps = 1000,
          .report_every = 50,
          .measure_every = 250,
          .chunk = 10,
          .goal = Goal{"test_accuracy", Goal::Kind::AtLeast, 0.97, 1000},
          .data = "a folder with the four files of MNIST, packed (.gz) or not",
          .make = make_experiment<MnistCnn>};
}

}  // namespace lockstep::examples
