// SPDX-License-Identifier: Apache-2.0
#include "examples/models/recall.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontend/data/random.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {

namespace {

constexpr int64_t kCheckRows = 64, kShown = 4, kWarmup = 50, kSteps = 600;

/// `count` of the numbers below `below`, each at most once, in random order.
std::vector<int64_t> draw(Random& random, int64_t count, int64_t below) {
  std::vector<int64_t> all(static_cast<size_t>(below));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto left = static_cast<uint32_t>(all.size() - i);
    std::swap(all[i], all[i + static_cast<size_t>(random.below(left))]);
  }
  all.resize(static_cast<size_t>(count));
  return all;
}

}  // namespace

RecallTask mambaTask() { return {}; }

RecallTask mambaHybridTask() {
  return {.symbols = 8, .marks = 8, .asked = 4, .blank = true, .layers = {Mixer::Mamba2, Mixer::Attention}, .rate = 0.005};
}

RecallBatch recallBatch(const RecallTask& task, uint64_t seed, uint64_t stream, int64_t rows, int64_t length) {
  Random random(seed, stream);
  RecallBatch batch;
  for (int64_t row = 0; row < rows; ++row) {
    const auto symbol = [&] { return static_cast<int32_t>(random.below(static_cast<uint32_t>(task.symbols))); };
    std::vector<int32_t> tokens(static_cast<size_t>(length), static_cast<int32_t>(task.symbols + task.marks));
    if (!task.blank) std::ranges::generate(tokens, symbol);
    const std::vector<int64_t> marks = draw(random, task.asked, task.marks);
    // At even places, so that the symbol after a mark stays one.
    const std::vector<int64_t> places = draw(random, task.asked, (length - task.asked) / 2);
    for (size_t i = 0; i < marks.size(); ++i) {
      const auto place = static_cast<size_t>(2 * places[i]);
      tokens[place] = static_cast<int32_t>(task.symbols + marks[i]);
      if (task.blank) tokens[place + 1] = symbol();
    }
    auto end = tokens.end() - static_cast<ptrdiff_t>(marks.size());
    for (const int64_t i : draw(random, task.asked, task.asked)) {
      const auto place = static_cast<size_t>(2 * places[static_cast<size_t>(i)]);
      *end++ = tokens[place];
      batch.answers.push_back(tokens[place + 1]);
    }
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  }
  return batch;
}

std::string recallText(const RecallTask& task, std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    const bool is_mark = token >= task.symbols, is_blank = token >= task.symbols + task.marks;
    text += static_cast<char>(is_blank ? '.' : is_mark ? 'A' + token - task.symbols : 'a' + token);
  }
  return text;
}

CompileSpec<Mixers> recallSpec(const RecallTask& task) {
  return {.inputs = {{"tokens", i32(kRecallBatch, kRecallLength)}, {"answers", i32(kRecallBatch, task.asked)}},
          .loss = [asked = task.asked](const Mixers& model,
                                       const Inputs& in) { return cross_entropy(model(in["tokens"], asked), in["answers"]); },
          .optimizer = adamw(
              {.lr = schedule::warmup({.peak = task.rate,
                                       .steps = kWarmup,
                                       .after = schedule::linear({.peak = task.rate, .final = task.rate / 10, .steps = kSteps - kWarmup})}),
               .weight_decay = 0.01},
              {.clip_grad_norm = 1}),
          .make = [task] { return std::make_unique<Mixers>(MixersShape{.vocabulary = task.vocabulary(), .layers = task.layers}); }};
}

RecallCheck::RecallCheck(const ModelTrainer<Mixers>& trainer, RecallTask task, uint64_t seed) : task_(std::move(task)), seed_(seed) {
  for (const int64_t times : kTimes) {
    forwards_.push_back(trainer.attach(
        {.inputs = {{"tokens", i32(kCheckRows, times * kRecallLength)}},
         .forward = [asked = task_.asked](const Mixers& model, const Inputs& in) { return argmax(model(in["tokens"], asked), -1); }}));
  }
}

std::vector<int32_t> RecallCheck::answers(size_t length, const RecallBatch& batch) {
  const ForwardResult result = forwards_.at(length).run({{"tokens", batch.tokens}});
  const auto said = result.output.ints();
  return {said.begin(), said.end()};
}

double RecallCheck::accuracy(size_t length) {
  // Streams count down from the last one, far from those of steps.
  const RecallBatch batch = recallBatch(task_, seed_, UINT64_MAX - length, kCheckRows, kTimes[length] * kRecallLength);
  const std::vector<int32_t> said = answers(length, batch);
  double right = 0;
  for (size_t i = 0; i < said.size(); ++i) right += said[i] == batch.answers[i] ? 1 : 0;
  return right / static_cast<double>(said.size());
}

std::string RecallCheck::text() {
  const RecallBatch batch = recallBatch(task_, seed_, UINT64_MAX, kCheckRows, kRecallLength);
  const std::vector<int32_t> said = answers(0, batch);
  const auto asked = static_cast<size_t>(task_.asked);
  std::string text;
  for (size_t row = 0; row < kShown; ++row) {
    text += recallText(task_, std::span(batch.tokens).subspan(row * kRecallLength, kRecallLength)) + "  ";
    text += recallText(task_, std::span(said).subspan(row * asked, asked));
    const std::string right = recallText(task_, std::span(batch.answers).subspan(row * asked, asked));
    text += text.ends_with(right) ? "\n" : fmt::format("  (it is {})\n", right);
  }
  return text;
}

}  // namespace lockstep::examples
