// SPDX-License-Identifier: Apache-2.0
// Time and planned memory of a training step of a GPT of characters (64 sequences of 256, 6 layers of width 384 with 6 heads, AdamW), or of
// GPT-2 small (8 sequences of 1024, 12 layers of width 768 with 12 heads, 50 257 tokens).
// usage: bench_gpt [--short] [--gpt2] [--profile | --losses] [DEVICE...]   prints one line per device and precision, of a short one on
// CPUs, and on request where the time goes; peer_gpt.py [--gpt2] is the same in PyTorch. With --losses: the losses of 500 steps in plain
// f32, f32 as it is by default, and mixed precision.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "backends/backend.h"
#include "bench/training_step.h"
#include "frontend/lockstep.h"

namespace {

struct Size {
  int64_t batch, length, width, layers, heads, vocabulary;
};
constexpr Size kSize{64, 256, 384, 6, 6, 65}, kGpt2{8, 1024, 768, 12, 12, 50257}, kShort{4, 32, 64, 2, 4, 65};

struct Gpt : ls::Module {
  explicit Gpt(const Size& s)
      : tokens(*this, "tokens", s.vocabulary, s.width),
        places(*this, "places", s.length, s.width),
        blocks(*this, "blocks", static_cast<size_t>(s.layers), s.width, s.heads,
               ls::nn::TransformerBlockOptions{.attention = {.causal = true}}),
        norm(*this, "norm", s.width),
        size(s) {}
  ls::Tensor operator()(ls::Tensor x) const {
    ls::Tensor h = tokens(x) + places(ls::arange(size.length));
    for (int64_t i = 0; i < size.layers; ++i) h = blocks[static_cast<size_t>(i)](h);
    return ls::matmul(norm(h), ls::swap_axes(tokens.W, 0, 1));
  }
  ls::nn::Embedding tokens, places;
  ls::ModuleList<ls::nn::TransformerBlock> blocks;
  ls::nn::LayerNorm norm;
  Size size;
};

ls::CompileSpec<Gpt> specOf(const Size& size, const std::string& device, ls::Precision precision) {
  ls::CompileSpec<Gpt> spec;
  spec.inputs = {{"x", ls::i32(size.batch, size.length)}, {"y", ls::i32(size.batch, size.length)}};
  spec.loss = [](const Gpt& model, const ls::Inputs& in) { return ls::cross_entropy(model(in["x"]), in["y"]); };
  spec.optimizer = ls::adamw({.lr = 1e-3});
  spec.precision = precision;
  spec.seed = 1;
  spec.device = device;
  spec.make = [size] { return std::make_unique<Gpt>(size); };
  return spec;
}

/// Lines in which the token before one decides it, three times out of four.
ls::Batch lines(const Size& size, uint64_t step) {
  ls::Random random(2, step);
  std::vector<int32_t> x(static_cast<size_t>(size.batch * size.length)), y(x.size());
  int64_t last = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool known = random.uniform(0, 4) < 3;
    const int64_t next =
        known ? (5 * last + 11) % size.vocabulary : static_cast<int64_t>(random.uniform(0, static_cast<double>(size.vocabulary)));
    x[i] = static_cast<int32_t>(last);
    y[i] = static_cast<int32_t>(next);
    last = next;
  }
  return {{"x", std::move(x)}, {"y", std::move(y)}};
}

void reportLosses(const Size& size, const std::string& device) {
  struct Way {
    std::string_view name;
    ls::Precision precision;
  };
  for (const Way& way : {Way{"plain f32", ls::strict_f32}, Way{"f32", {}}, Way{"bf16", ls::mixed(ls::bf16)}}) {
    ls::Trainer trainer = ls::compile(specOf(size, device, way.precision));
    constexpr size_t kSteps = 20, kRounds = 25;
    std::string line = fmt::format("{:12} {:9}", device, way.name);
    for (size_t round = 0; round < kRounds; ++round) {
      const std::vector<ls::StepResult> results = trainer.steps(kSteps, [&](size_t i) { return lines(size, round * kSteps + i); });
      double sum = 0;
      for (const ls::StepResult& result : results) sum += static_cast<double>(result.loss);
      if (round % 6 == 0) line += fmt::format(" {:.5f}", sum / static_cast<double>(results.size()));
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
}

void report(const Size& size, const std::string& device, ls::Precision precision, bool with_profile) {
  ls::Trainer trainer = ls::compile(specOf(size, device, precision));
  ls::Random random(1, 2);
  std::vector<int32_t> x(static_cast<size_t>(size.batch * size.length)), y(x.size());
  for (auto* tokens : {&x, &y})
    std::ranges::generate(*tokens, [&] { return static_cast<int32_t>(random.uniform(0, static_cast<double>(size.vocabulary))); });
  const auto batch = [&](size_t) { return ls::Batch{{"x", x}, {"y", y}}; };
  bench::reportStep(trainer, device, precision, batch, 9, with_profile);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  const bool is_short = std::erase(devices, "--short") > 0;
  const bool is_gpt2 = std::erase(devices, "--gpt2") > 0;
  const bool with_losses = std::erase(devices, "--losses") > 0;
  const bool with_profile = std::erase(devices, "--profile") > 0;
  if (devices.empty()) devices = {"auto"};
  try {
    for (const std::string& device : devices) {
      const bool is_cpu = lockstep::chooseDevice(device).orThrow().info.profile.style == lockstep::program::ExecutionStyle::Cpu;
      const Size& size = is_short || is_cpu ? kShort : is_gpt2 ? kGpt2 : kSize;
      if (with_losses) {
        reportLosses(size, device);
        continue;
      }
      for (const ls::Precision& precision : {ls::Precision{}, ls::mixed(ls::bf16)}) report(size, device, precision, with_profile);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
