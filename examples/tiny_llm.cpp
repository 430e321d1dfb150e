// SPDX-License-Identifier: Apache-2.0
// A small language model learns a text, with a tokenizer that is learned from the same text, or one of Hugging Face goes on learning; what
// comes out is a folder of Hugging Face, which `lockstep generate`, `chat` and `eval` take.
#include <fmt/format.h>
#include <algorithm>

#include "examples/data/conversations.h"
#include "examples/data/language_text.h"
#include "examples/language_check.h"
#include "examples/language_start.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/io/file.h"
#include "frontend/llm/checkpoint.h"
#include "frontend/ops/losses.h"

namespace lockstep::examples {
namespace {

constexpr int64_t kBatch = 8, kLongest = 128;

/// The rate of random parameters, and one at which those of a model that was trained stay near to what they know.
OptimizerSpec optimizerOf(const ExperimentOptions& options) {
  const double peak = options.from.empty() ? 0.003 : 0.0003;
  const int64_t warmup = std::clamp<int64_t>(options.steps / 20, 1, 100);
  return adamw({.lr = schedule::warmup({.peak = peak,
                                        .steps = warmup,
                                        .after = schedule::cosine_annealing(
                                            {.peak = peak, .final = peak / 10, .steps = std::max<int64_t>(options.steps - warmup, 1)})}),
                .weight_decay = 0.01,
                .beta2 = 0.95},
               {.clip_grad_norm = 1});
}

CompileSpec<llm::LanguageModel> specOf(const ExperimentOptions& options, const LanguageStart& start, int64_t length) {
  return {.inputs = {{"tokens", i32(kBatch, length)}, {"targets", i32(kBatch, length)}},
          .loss = [](const llm::LanguageModel& model, const Inputs& in) { return cross_entropy(model(in["tokens"]), in["targets"]); },
          .optimizer = optimizerOf(options),
          .make =
              [&start] {
                llm::LanguageConfig config = start.config;
                if (start.values) config.init_scale = 0;
                return std::make_unique<llm::LanguageModel>(config);
              }};
}

class TinyLlm : public Experiment {
 public:
  explicit TinyLlm(const ExperimentOptions& options)
      : seed_(options.seed),
        text_(loadLanguageText(options.data)),
        start_(options.from.empty() ? newLanguageStart(text_.train) : languageStartOf(options.from)),
        length_(start_.config.context > 0 ? std::min(start_.config.context, kLongest) : kLongest),
        train_(tokensOf(start_, text_.train)),
        heldout_(checked(tokensOf(start_, text_.heldout), nameOfText(options.data))),
        trainer_(compile(options.with(specOf(options, start_, length_)))),
        check_(trainer_, start_, heldout_, length_) {
    if (start_.values) trainer_.upload(*start_.values);
    start_.values.reset();
    if (const auto end = start_.tokenizer.idOf(kTextEnd)) document_end_ = static_cast<int32_t>(*end);
  }

  Trainer& trainer() override { return trainer_; }

  /// Half of the rows begin with a document, as prompts do, and half of them anywhere.
  Batch batch(uint64_t step) override {
    Random random(seed_, step);
    tokens_.clear();
    targets_.clear();
    for (int64_t i = 0; i < kBatch; ++i) {
      Place begin = train_.begin() + random.below(static_cast<uint32_t>(std::ssize(train_) - length_));
      if (i % 2 == 0) begin = documentBefore(begin);
      tokens_.insert(tokens_.end(), begin, begin + length_);
      targets_.insert(targets_.end(), begin + 1, begin + length_ + 1);
    }
    return {{"tokens", tokens_}, {"targets", targets_}};
  }

  Metrics measure() override { return check_.measure(); }
  std::vector<Exhibit> exhibits() override { return check_.exhibits(); }

  Status saveModel(const std::filesystem::path& folder) override {
    LS_CHECK(llm::saveCheckpoint(folder, start_.config, trainer_.download()));
    LS_CHECK(llm::writeTokenizerFiles(folder, start_.files));
    LS_CHECK(io::writeFileAtomically(folder / "heldout.txt", std::string_view(text_.heldout)));
    // Weights that are rounded give other logits.
    if (start_.config.dtype != io::ElementType::F32) return Success{};
    return io::writeSafetensors(folder / "expected.safetensors", check_.expectations());
  }

 private:
  using Place = std::vector<int32_t>::const_iterator;

  /// One token more than a window for training, and two for tests.
  [[nodiscard]] std::vector<int32_t> checked(std::vector<int32_t> heldout, const std::string& name) const {
    if (std::ssize(train_) > length_ + 1 && heldout.size() > 1) return heldout;
    throw Error(fail("data.text",
                     fmt::format("{} has {} tokens to train on and {} for tests, wanted more than {} and 2 at least", name, train_.size(),
                                 heldout.size(), length_ + 1),
                     {}, "give it a longer text; a tenth of it is kept for tests")
                    .diagnostics);
  }

  /// The beginning of its document, if that is less than a window before it.
  [[nodiscard]] Place documentBefore(Place place) const {
    const Place first = place - std::min<ptrdiff_t>(place - train_.begin(), length_);
    for (Place at = place; at != first; --at) {
      if (*(at - 1) == document_end_) return at;
    }
    return place;
  }

  uint64_t seed_;
  LanguageText text_;
  LanguageStart start_;
  int64_t length_;
  std::vector<int32_t> train_, heldout_;
  ModelTrainer<llm::LanguageModel> trainer_;
  LanguageCheck check_;
  int32_t document_end_ = -1;
  std::vector<int32_t> tokens_, targets_;
};

}  // namespace

Recipe tiny_llm() {
  return {.name = "tiny-llm",
          .summary = "a small language model with a tokenizer of its own answers questions",
          .steps = 1000,
          .report_every = 50,
          .measure_every = 100,
          .chunk = 10,
          .goal = Goal{"perplexity", Goal::Kind::AtMost, 1.42, 600},
          .data = "a file of text",
          .model = "a folder with a language model of Hugging Face",
          .make = make_experiment<TinyLlm>};
}

}  // namespace lockstep::examples
