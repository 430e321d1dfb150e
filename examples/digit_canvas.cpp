// SPDX-License-Identifier: Apache-2.0
// Reading digits with a small network and dropout, which is active in training only; one forward program for any number of pictures.
#include <fmt/format.h>

#include <algorithm>

#include "examples/data/digits.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/loader.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

constexpr int64_t kHidden = 64;

class DigitCanvas : public Experiment {
 public:
  explicit DigitCanvas(const ExperimentOptions& options)
      : data_(loadDigits(options.data, options.seed)),
        loader_({{"x", data_.train.pixels}, {"y", data_.train.labels}}, data_.train.count(), {.batch = 64, .seed = options.seed}),
        trainer_(compile(options.with(digitSpec(kHidden)))),
        probabilities_(trainer_.attach({.inputs = {{"x", f32(dynamic, 784)}},
                                        .forward = [](const DigitMlp& model, const Inputs& in) { return softmax(model(in["x"])); }})) {}

  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override { return loader_.batch(step); }

  Metrics measure() override {
    const std::vector<float> all = read(data_.test.count());
    size_t right = 0;
    for (size_t i = 0; i < data_.test.count(); ++i) right += best(all, i) == data_.test.labels[i] ? 1 : 0;
    return {{"test_accuracy", static_cast<double>(right) / static_cast<double>(data_.test.count())}};
  }

  /// One picture and what the network thinks of it.
  std::vector<Exhibit> exhibits() override {
    const std::vector<float> one = read(1);
    std::string text;
    for (size_t digit = 0; digit < 10; ++digit) {
      text += fmt::format("{} {:5.1f} % {}\n", digit, 100 * one[digit], std::string(static_cast<size_t>(40 * one[digit]), '#'));
    }
    return {{"digit", digitGrid(std::span(data_.test.pixels).first(kDigitPixels), 1, 8)}, {"probabilities", text}};
  }

 private:
  std::vector<float> read(size_t count) {
    const ForwardResult result = probabilities_.run({{"x", std::span(std::as_const(data_.test.pixels)).first(count * kDigitPixels)}});
    return {result.output.floats().begin(), result.output.floats().end()};
  }
  static int32_t best(std::span<const float> all, size_t picture) {
    const auto row = all.subspan(picture * 10, 10);
    return static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
  }

  DigitData data_;
  Loader loader_;
  ModelTrainer<DigitMlp> trainer_;
  Forward probabilities_;
};

}  // namespace

Recipe digit_canvas() {
  return {.name = "digit-canvas",
          .summary = "a small network with dropout reads digits",
          .steps = 1500,
          .report_every = 100,
          .measure_every = 500,
          .chunk = 20,
          .goal = Goal{"test_accuracy", Goal::Kind::AtLeast, 0.95, 1500},
          .data = "a folder with the four files of MNIST, packed (.gz) or not",
          .make = make_experiment<DigitCanvas>};
}

}  // namespace lockstep::examples
