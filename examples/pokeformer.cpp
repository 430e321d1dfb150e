// SPDX-License-Identifier: Apache-2.0
// A small Llama learns the names of creatures; it draws its next letters itself, inside the program.
#include "examples/data/names.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

constexpr size_t kBatch = 32, kLength = 16, kShown = 8;
constexpr int32_t kEdge = 26, kFirstLetter = 0;  // begins, ends and fills
constexpr float kTemperature = 0.8f;

class PokeformerExperiment : public Experiment {
 public:
  explicit PokeformerExperiment(const ExperimentOptions& options)
      : seed_(options.seed),
        names_(loadNames(options.data, creatureNames(), 2, kLength - 2)),
        trainer_(compile(options.with(pokeformerSpec()))),
        next_(trainer_.attach({.inputs = {{"tokens", i32(kShown, kLength)}, {"temperature", f32(1)}},
                               .forward = [](const Pokeformer& model, const Inputs& in) {
                                 return categorical(model(in["tokens"]) / max(in["temperature"], 0.05));
                               }})) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    Random random(seed_, step);
    std::vector<std::string> names;
    for (size_t i = 0; i < kBatch; ++i) names.push_back(names_[static_cast<size_t>(random.below(static_cast<uint32_t>(names_.size())))]);
    data_ = nameBatch(names, kLength, kFirstLetter, kEdge, kEdge);
    return {{"tokens", data_.tokens}, {"targets", data_.targets}, {"mask", data_.mask}};
  }

  std::vector<Exhibit> exhibits() override {
    std::vector<int32_t> tokens(kShown * kLength, kEdge);
    for (size_t at = 0; at + 1 < kLength; ++at) {
      const ForwardResult drawn = next_.run({{"tokens", tokens}, {"temperature", std::span(&kTemperature, 1)}});
      for (size_t name = 0; name < kShown; ++name) tokens[name * kLength + at + 1] = drawn.output.ints()[name * kLength + at];
    }
    std::string text;
    for (size_t name = 0; name < kShown; ++name)
      text += nameOf(std::span(tokens).subspan(name * kLength + 1, kLength - 1), kFirstLetter) + "\n";
    return {{"names", text}};
  }

 private:
  uint64_t seed_;
  std::vector<std::string> names_;
  ModelTrainer<Pokeformer> trainer_;
  Forward next_;
  NameBatch data_;
};

}  // namespace

Recipe pokeformer() {
  return {.name = "pokeformer",
          .summary = "a small Llama names creatures",
          .steps = 300,
          .report_every = 50,
          .measure_every = 50,
          .chunk = 10,
          .goal = Goal{"loss", Goal::Kind::AtMost, 0.75, 150},
          .data = "a file with one name per line, in letters from a to z",
          .make = make_experiment<PokeformerExperiment>};
}

}  // namespace lockstep::examples
