// SPDX-License-Identifier: Apache-2.0
// Two-digit addition by a transformer.
#include "examples/models/addition.h"
#include "tools/sample_facts.h"

namespace lockstep::tools {
namespace {

using examples::AdditionBatch;
using examples::additionBatch;
using examples::AdditionCheck;

class AdditionRun : public SampleRun {
 public:
  explicit AdditionRun(const SampleOptions& options)
      : seed_(options.seed),
        trainer_(examples::compileAddition({.seed = options.seed,
                                            .device = options.device,
                                            .dump_ir = options.dump_directory,
                                            .disable = options.disabled_passes,
                                            .memory_limit = static_cast<uint64_t>(options.memory_limit)})),
        check_(trainer_, options.seed),
        facts_(sampleFacts(trainer_.facts())) {}

  [[nodiscard]] const SampleFacts& facts() const override { return facts_; }

  std::vector<float> advance(int64_t count) override {
    const uint64_t first = trainer_.step_count() + 1;
    AdditionBatch batch;
    return lossesOf(trainer_.steps(static_cast<size_t>(count), [&](size_t i) {
      batch = additionBatch(seed_, first + i);
      return Batch{{"tokens", batch.tokens}, {"targets", batch.targets}};
    }));
  }

  Metrics measure() override {
    const AdditionCheck::Score score = check_.run();
    return {{"train_exact", score.trained}, {"heldout_exact", score.held_out}};
  }

  io::TensorFile checkpoint() override { return trainer_.checkpoint(); }

 private:
  uint64_t seed_;
  ModelTrainer<examples::Transformer> trainer_;
  AdditionCheck check_;
  SampleFacts facts_;
};

}  // namespace

std::unique_ptr<SampleRun> makeAddition(const SampleOptions& options) { return std::make_unique<AdditionRun>(options); }

}  // namespace lockstep::tools
