// SPDX-License-Identifier: Apache-2.0
// A transformer learns names letter by letter and makes up new ones; a file of names with --data, else some 400 given names.
#include <algorithm>
#include <cmath>
#include <set>

#include "examples/data/names.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

constexpr size_t kBatch = 32, kLength = 16, kShown = 8, kVocabulary = 27;
constexpr int32_t kEdge = 0, kFirstLetter = 1;  // '.' begins, ends and fills

/// About a tenth of all names is never trained on, whatever else is in the file.
bool isTest(const std::string& name) {
  uint32_t hash = 0;
  for (const char letter : name) hash = 31 * hash + static_cast<uint8_t>(letter);
  return hash % 10 == 0;
}

class Makemore : public Experiment {
 public:
  explicit Makemore(const ExperimentOptions& options)
      : seed_(options.seed),
        trainer_(compile(options.with(makemoreSpec()))),
        letters_(trainer_.attach({.inputs = {{"noise", f32(kLength - 1, kShown, kVocabulary)}},
                                  .forward = [](const Transformer& model, const Inputs& in) { return letters(model, in["noise"]); }})),
        test_loss_(trainer_.attach({.inputs = tokenInputs(kBatch, kLength), .forward = makemoreSpec().loss})) {
    for (std::string& name : loadNames(options.data, givenNames(), 2, kLength - 1)) {
      (isTest(name) ? test_ : train_).push_back(name);
      known_.insert(std::move(name));
    }
  }

  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override { return draw(train_, step); }

  /// The loss of names that were not trained on, and the share of made-up names that nobody has.
  Metrics measure() override {
    double loss = 0;
    constexpr uint64_t kBatches = 8;
    for (uint64_t i = 1; i <= kBatches; ++i) loss += test_loss_.run(draw(test_, UINT64_MAX - i)).output.doubles()[0] / kBatches;
    made_ = makeUp();
    const auto is_new = [&](const std::string& name) { return !name.empty() && !known_.contains(name); };
    return {{"test_loss", loss}, {"new_names", static_cast<double>(std::ranges::count_if(made_, is_new)) / kShown}};
  }

  std::vector<Exhibit> exhibits() override {
    std::string text;
    for (const std::string& name : made_) text += name + "\n";
    return {{"names", text}};
  }

 private:
  Batch draw(const std::vector<std::string>& from, uint64_t stream) {
    Random random(seed_, stream);
    std::vector<std::string> names;
    for (size_t i = 0; i < kBatch; ++i)
      names.push_back(from.empty() ? "" : from[static_cast<size_t>(random.below(static_cast<uint32_t>(from.size())))]);
    data_ = nameBatch(names, kLength, kFirstLetter, kEdge, kEdge);
    return {{"tokens", data_.tokens}, {"targets", data_.targets}, {"mask", data_.mask}};
  }

  /// Letter by letter, each with the probability that the network gives it: the largest of logits with Gumbel noise is a draw from their
  /// softmax. All letters are made in one submission.
  static Tensor letters(const Transformer& model, const Tensor& noise) {
    const auto draw = [](const Tensor& logits, const std::vector<Tensor>& row) { return argmax(logits + row[0], -1); };
    return model.generate(full({kShown, 1}, kEdge, DType::I32), kLength - 1, draw, {noise});
  }

  std::vector<std::string> makeUp() {
    Random random(seed_, trainer_.step_count());
    std::vector<float> noise((kLength - 1) * kShown * kVocabulary);
    for (float& number : noise) number = static_cast<float>(-std::log(-std::log(std::max(random.uniform(), 1e-9))));
    const ForwardResult result = letters_.run({{"noise", noise}});
    std::vector<std::string> names;
    for (size_t name = 0; name < kShown; ++name)
      names.push_back(nameOf(result.output.ints().subspan(name * (kLength - 1), kLength - 1), kFirstLetter));
    return names;
  }

  uint64_t seed_;
  std::vector<std::string> train_, test_, made_;
  std::set<std::string> known_;
  ModelTrainer<Transformer> trainer_;
  Forward letters_, test_loss_;
  NameBatch data_;
};

}  // namespace

Recipe makemore() {
  return {.name = "makemore",
          .summary = "a transformer makes up names",
          .steps = 400,
          .report_every = 50,
          .measure_every = 100,
          .chunk = 10,
          .goal = Goal{"test_loss", Goal::Kind::AtMost, 2.4, 400},
          .data = "a file with one name per line, in letters from a to z",
          .make = make_experiment<Makemore>};
}

}  // namespace lockstep::examples
