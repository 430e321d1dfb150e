// SPDX-License-Identifier: Apache-2.0
// A transformer learns a text character by character and goes on writing it: the file of --data, else numbers in words.
#include <algorithm>

#include "examples/data/text.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"

namespace lockstep::examples {
namespace {

class CharGpt : public Experiment {
 public:
  explicit CharGpt(const ExperimentOptions& options)
      : seed_(options.seed),
        batch_(static_cast<size_t>(spec_.inputs[0].type.shape.extent(0))),
        length_(static_cast<size_t>(spec_.inputs[0].type.shape.extent(1))),
        text_(loadText(options.data, length_ + 1)),
        trainer_(compile(options.with(spec_))),
        logits_(trainer_.attach({.inputs = {{"tokens", i32(1, static_cast<int64_t>(length_))}},
                                 .forward = [](const Transformer& model, const Inputs& in) { return model(in["tokens"]); }})),
        test_loss_(trainer_.attach({.inputs = spec_.inputs, .forward = spec_.loss})) {}

  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override { return draw(text_.train, step); }

  /// The loss of text that was not trained on, in nats per character.
  Metrics measure() override {
    double loss = 0;
    constexpr uint64_t kBatches = 4;
    for (uint64_t i = 1; i <= kBatches; ++i) loss += test_loss_.run(draw(text_.test, UINT64_MAX - i)).output.doubles()[0] / kBatches;
    return {{"test_loss", loss}};
  }

  /// Half a sequence of the test text, and how the network goes on: the likeliest character each time.
  std::vector<Exhibit> exhibits() override {
    const size_t given = length_ / 2;
    std::vector<int32_t> tokens(text_.test.begin(), text_.test.begin() + static_cast<std::ptrdiff_t>(given));
    tokens.resize(length_, ' ');
    for (size_t at = given; at < length_; ++at) {
      const ForwardResult result = logits_.run({{"tokens", tokens}});
      const auto row = result.output.floats().subspan((at - 1) * kCharacters, kCharacters);
      tokens[at] = static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
    }
    return {{"text", textOf(std::span(tokens).first(given)) + " ... " + textOf(std::span(tokens).subspan(given)) + "\n"}};
  }

 private:
  Batch draw(const std::vector<int32_t>& text, uint64_t stream) {
    Random random(seed_, stream);
    tokens_.clear();
    targets_.clear();
    for (size_t i = 0; i < batch_; ++i) {
      const auto begin = text.begin() + random.below(static_cast<uint32_t>(text.size() - length_));
      tokens_.insert(tokens_.end(), begin, begin + static_cast<std::ptrdiff_t>(length_));
      targets_.insert(targets_.end(), begin + 1, begin + static_cast<std::ptrdiff_t>(length_) + 1);
    }
    return {{"tokens", tokens_}, {"targets", targets_}};
  }

  uint64_t seed_;
  CompileSpec<Transformer> spec_ = charGptSpec();
  size_t batch_, length_;
  Text text_;
  ModelTrainer<Transformer> trainer_;
  Forward logits_, test_loss_;
  std::vector<int32_t> tokens_, targets_;
};

}  // namespace

Recipe char_gpt() {
  return {.name = "char-gpt",
          .summary = "a transformer goes on writing a text, character by character",
          .steps = 600,
          .report_every = 50,
          .measure_every = 100,
          .chunk = 10,
          .goal = Goal{"test_loss", Goal::Kind::AtMost, 0.55, 600},
          .data = "a file of text",
          .make = make_experiment<CharGpt>};
}

}  // namespace lockstep::examples
