// SPDX-License-Identifier: Apache-2.0
// Time and planned memory of a training step of Mamba-2 with 130 million parameters (8 sequences of 1024, 24 layers of width 768, 50 257
// tokens, AdamW).
// usage: bench_mamba [--short] [--profile] [DEVICE...]   prints one line per device and precision, of a short one on CPUs, and on request
// where the time goes; peer_state_space.py --model is the same in PyTorch
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "backends/backend.h"
#include "bench/training_step.h"
#include "frontend/lockstep.h"

namespace {

struct Size {
  int64_t batch, length, width, layers, states, head_width, chunk, vocabulary;
};
constexpr Size kSize{8, 1024, 768, 24, 128, 64, 128, 50257}, kShort{2, 64, 64, 2, 16, 16, 64, 65};

struct Model : ls::Module {
  explicit Model(const Size& s)
      : tokens(*this, "tokens", s.vocabulary, s.width),
        norms(*this, "norms", static_cast<size_t>(s.layers), s.width),
        mixers(*this, "mixers", static_cast<size_t>(s.layers), s.width,
               ls::nn::Mamba2Options{.states = s.states, .head_width = s.head_width, .chunk = s.chunk}),
        norm(*this, "norm", s.width) {}
  ls::Tensor operator()(ls::Tensor x) const {
    ls::Tensor h = tokens(x);
    for (size_t i = 0; i < mixers.size(); ++i) h = h + mixers[i](norms[i](h));
    return ls::matmul(norm(h), ls::swap_axes(tokens.W, 0, 1));
  }
  ls::nn::Embedding tokens;
  ls::ModuleList<ls::nn::RMSNorm> norms;
  ls::ModuleList<ls::nn::Mamba2> mixers;
  ls::nn::RMSNorm norm;
};

void report(const Size& s, const std::string& device, ls::Precision precision, bool with_profile) {
  ls::CompileSpec<Model> spec;
  spec.inputs = {{"x", ls::i32(s.batch, s.length)}, {"y", ls::i32(s.batch, s.length)}};
  spec.loss = [](const Model& model, const ls::Inputs& in) { return ls::cross_entropy(model(in["x"]), in["y"]); };
  spec.optimizer = ls::adamw({.lr = 1e-3});
  spec.precision = precision;
  spec.seed = 1;
  spec.device = device;
  spec.make = [s] { return std::make_unique<Model>(s); };
  auto trainer = ls::compile<Model>(spec);
  ls::Random random(1, 2);
  std::vector<int32_t> x(static_cast<size_t>(s.batch * s.length)), y(x.size());
  for (auto* tokens : {&x, &y})
    std::ranges::generate(*tokens, [&] { return static_cast<int32_t>(random.uniform(0, static_cast<double>(s.vocabulary))); });
  const auto batch = [&](size_t) { return ls::Batch{{"x", x}, {"y", y}}; };
  bench::reportStep(trainer, device, precision, batch, 9, with_profile);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> devices(argv + 1, argv + argc);
  const bool is_short = std::erase(devices, "--short") > 0, with_profile = std::erase(devices, "--profile") > 0;
  if (devices.empty()) devices = {"auto"};
  try {
    for (const std::string& device : devices) {
      const bool is_cpu = lockstep::chooseDevice(device).orThrow().info.profile.style == lockstep::program::ExecutionStyle::Cpu;
      for (const ls::Precision& precision : {ls::Precision{}, ls::mixed(ls::bf16)})
        report(is_short || is_cpu ? kShort : kSize, device, precision, with_profile);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
