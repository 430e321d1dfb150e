// SPDX-License-Identifier: Apache-2.0
#include "examples/models/addition.h"

#include <algorithm>

#include "frontend/nn/init.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {

namespace {

constexpr int32_t kPlus = 10, kEquals = 11;
constexpr size_t kDigits = 3, kFirstDigit = 5;  // position 5 holds '=', which predicts the first digit of the sum
constexpr size_t kChecked = 100, kShown = 8;    // pairs of each kind, and those that are shown

}  // namespace

bool isHeldOut(AdditionPair pair) { return ((100 * pair.a + pair.b) * 31 + 7) % 5 == 0; }

std::array<int32_t, kAdditionLength + 1> additionTokens(AdditionPair pair) {
  int32_t sum = pair.a + pair.b;
  return {pair.a / 10, pair.a % 10, kPlus, pair.b / 10, pair.b % 10, kEquals, sum % 10, sum / 10 % 10, sum / 100};
}

std::vector<AdditionPair> drawPairs(uint64_t seed, uint32_t stream, size_t count, bool held_out) {
  std::vector<AdditionPair> pairs;
  for (uint32_t draw = 0; pairs.size() < count; ++draw) {
    // The last word of the counter keeps these draws apart from the initial values of parameters.
    auto words = random::words({draw, stream, 0, 1}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    auto below100 = [](uint32_t word) { return static_cast<int32_t>((uint64_t{word} * 100) >> 32); };
    AdditionPair pair{below100(words[0]), below100(words[1])};
    if (isHeldOut(pair) == held_out) pairs.push_back(pair);
  }
  return pairs;
}

AdditionBatch additionBatch(uint64_t seed, uint64_t step, size_t count) {
  AdditionBatch batch;
  for (AdditionPair pair : drawPairs(seed, static_cast<uint32_t>(step), count, false)) {
    auto tokens = additionTokens(pair);
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end() - 1);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
  }
  return batch;
}

Tensor additionLoss(const Transformer& model, const Inputs& in, bool captures) {
  static constexpr std::array<float, kAdditionLength> kMask{0, 0, 0, 0, 0, 1, 1, 1};
  Tensor losses = cross_entropy(model(in["tokens"], captures), in["targets"], {.reduction = Reduction::None});
  Tensor masked = losses * constant(kMask, {static_cast<int64_t>(kAdditionLength)});
  return sum(masked) / (losses.extent(0) * static_cast<int64_t>(kDigits));
}

CompileSpec<Transformer> additionSpec(bool captures) {
  return {
      .inputs = {{"tokens", i32(kAdditionBatch, kAdditionLength)}, {"targets", i32(kAdditionBatch, kAdditionLength)}},
      .loss = [captures](const Transformer& model, const Inputs& in) { return additionLoss(model, in, captures); },
      .optimizer =
          adamw({.lr = schedule::linear({.peak = 0.005, .final = 0.0005, .steps = 1500}), .weight_decay = 0.01}, {.clip_grad_norm = 1}),
  };
}

ModelTrainer<Transformer> compileAddition(const AdditionOptions& options) {
  CompileSpec<Transformer> spec = additionSpec(options.captures);
  spec.seed = options.seed;
  spec.device = options.device;
  spec.dump_ir = options.dump_ir;
  spec.dump_steps = options.dump_steps;
  spec.disable = options.disable;
  spec.memory_limit = options.memory_limit;
  return compile(std::move(spec));
}

namespace {

/// The likeliest digit each time, all three in one submission.
Tensor digits(const Transformer& model, const Tensor& question) {
  const auto likeliest = [](const Tensor& logits, const std::vector<Tensor>&) { return argmax(narrow(logits, -1, 0, 10), -1); };
  return model.generate(question, static_cast<int64_t>(kDigits), likeliest);
}

}  // namespace

AdditionCheck::AdditionCheck(const ModelTrainer<Transformer>& trainer, uint64_t seed, bool use_ema)
    : pairs_(drawPairs(seed, UINT32_MAX, kChecked, false)),
      forward_(trainer.attach({.inputs = {{"tokens", i32(2 * kChecked, kFirstDigit + 1)}},
                               .forward = [](const Transformer& model, const Inputs& in) { return digits(model, in["tokens"]); },
                               .use_ema = use_ema})) {
  std::vector<AdditionPair> held_out = drawPairs(seed, UINT32_MAX, kChecked, true);
  pairs_.insert(pairs_.end(), held_out.begin(), held_out.end());
}

AdditionCheck::Score AdditionCheck::run() {
  std::vector<int32_t> tokens;
  for (AdditionPair pair : pairs_) {
    auto all = additionTokens(pair);
    tokens.insert(tokens.end(), all.begin(), all.begin() + kFirstDigit + 1);
  }
  const ForwardResult result = forward_.run({{"tokens", tokens}});
  std::span<const int32_t> said = result.output.ints();
  std::vector<bool> exact(pairs_.size(), true);
  std::vector<int32_t> sums(pairs_.size(), 0);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    for (size_t digit = 0; digit < kDigits; ++digit) {
      const int32_t best = said[i * kDigits + digit];
      sums[i] += best * (digit == 0 ? 1 : digit == 1 ? 10 : 100);
      if (best != additionTokens(pairs_[i])[kFirstDigit + digit + 1]) exact[i] = false;
    }
  }
  auto share = [&](size_t first) {
    auto begin = exact.begin() + static_cast<ptrdiff_t>(first);
    return static_cast<double>(std::count(begin, begin + kChecked, true)) / kChecked;
  };
  Score score{share(0), share(kChecked)};
  for (size_t i = kChecked; i < kChecked + kShown; ++i) score.answers.push_back({pairs_[i], sums[i]});
  return score;
}

}  // namespace lockstep::examples
