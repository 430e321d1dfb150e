// SPDX-License-Identifier: Apache-2.0
// Time and memory of compiling a training step, and how they grow with the model. Nothing runs.
// usage: bench_compile_time [--passes] MODEL SIZE...   MODEL: mlp (layers), transformer (blocks), gru (time steps), resnet (blocks)
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kBatch = 32, kWidth = 64, kLength = 32;

struct Layer : ls::Module {
  Layer(ls::Module& parent, std::string name) : Module(parent, std::move(name)) {}
  ls::nn::Linear l{*this, "l", kWidth, kWidth};
  ls::Tensor operator()(ls::Tensor x) const { return ls::relu(l(x)); }
};

struct Attention : ls::Module {
  Attention(ls::Module& parent, std::string name) : Module(parent, std::move(name)) {}
  ls::nn::TransformerBlock block{*this, "b", kWidth, 4};
  ls::Tensor operator()(ls::Tensor x) const { return block(x); }
};

struct Residual : ls::Module {
  Residual(ls::Module& parent, std::string name) : Module(parent, std::move(name)) {}
  ls::nn::Conv2d a{*this, "a", 16, 16, 3, {.padding = 1}}, b{*this, "b", 16, 16, 3, {.padding = 1}};
  ls::nn::BatchNorm na{*this, "na", 16}, nb{*this, "nb", 16};
  ls::Tensor operator()(ls::Tensor x) const { return ls::relu(x + nb(b(ls::relu(na(a(x)))))); }
};

/// `size` blocks, one after the other.
template <class Block>
struct Stack : ls::Module {
  explicit Stack(int64_t size) : blocks(*this, "blocks", static_cast<size_t>(size)) {}
  ls::ModuleList<Block> blocks;
  ls::Tensor operator()(ls::Tensor x) const {
    for (const Block& block : blocks) x = block(x);
    return x;
  }
};

struct Gru : ls::Module {
  explicit Gru(int64_t) {}
  ls::nn::GRU gru{*this, "gru", kWidth, kWidth};
  ls::Tensor operator()(ls::Tensor x) const { return gru(x).h; }
};

template <class Model>
ls::ProgramFacts factsOf(int64_t size, ls::TensorType type) {
  auto trainer = ls::compile<Model>({.inputs = {{"x", std::move(type)}},
                                     .loss = [](const Model& model, const ls::Inputs& in) { return ls::mean(ls::square(model(in["x"]))); },
                                     .optimizer = ls::adam({.lr = 0.001}),
                                     .seed = 1,
                                     .device = "reference",
                                     .make = [size] { return std::make_unique<Model>(size); }});
  return trainer.facts();
}

void report(const std::string& name, int64_t size, bool passes) {
  const auto start = Clock::now();
  ls::ProgramFacts facts;
  if (name == "mlp") facts = factsOf<Stack<Layer>>(size, ls::f32(kBatch, kWidth));
  if (name == "transformer") facts = factsOf<Stack<Attention>>(size, ls::f32(kBatch, kLength, kWidth));
  if (name == "gru") facts = factsOf<Gru>(size, ls::f32(kBatch, size, kWidth));
  if (name == "resnet") facts = factsOf<Stack<Residual>>(size, ls::f32(kBatch, 16, 8, 8));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{:12} {:6}  ready in {:8.3f} s, {:6} dispatches, {:5} kernels, {:6} MB at most so far\n", name, size, seconds,
             facts.dispatches, facts.distinct_kernels, usage.ru_maxrss / 1024);
  for (const std::string& pass : facts.passes) {
    if (passes) fmt::print("  {}\n", pass);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool passes = !arguments.empty() && arguments.front() == "--passes";
  if (passes) arguments.erase(arguments.begin());
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: bench_compile_time [--passes] mlp|transformer|gru|resnet SIZE...\n");
    return 2;
  }
  for (size_t i = 1; i < arguments.size(); ++i) report(arguments[0], std::stoll(arguments[i]), passes);
}
