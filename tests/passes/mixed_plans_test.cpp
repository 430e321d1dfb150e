// SPDX-License-Identifier: Apache-2.0
// What a transformer's training step keeps and moves in mixed precision, beside f32.
#include <gtest/gtest.h>

#include <numeric>

#include "frontend/lockstep.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "ir/program/profile.h"
#include "passes/pipeline.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 16, kLength = 64, kWidth = 128, kHeads = 4, kLayers = 4, kCharacters = 65;

struct Gpt : Module {
  nn::Embedding tokens{*this, "tokens", kCharacters, kWidth}, places{*this, "places", kLength, kWidth};
  ModuleList<nn::TransformerBlock> blocks{*this,  "blocks", kLayers,
                                          kWidth, kHeads,   nn::TransformerBlockOptions{.attention = {.causal = true}}};
  nn::LayerNorm norm{*this, "norm", kWidth};
  nn::Linear head{*this, "head", kWidth, kCharacters};

  Tensor operator()(Tensor x) const {
    Tensor h = tokens(x) + places(arange(kLength));
    for (size_t i = 0; i < blocks.size(); ++i) h = blocks[i](h);
    return head(norm(h));
  }
};

passes::Compiled compiled(std::optional<DType> low, std::string_view profile) {
  const Gpt model;
  const std::vector<InputSpec> inputs{{"x", i32(kBatch, kLength)}, {"y", i32(kBatch, kLength)}};
  const auto loss = [](const Module& module, const Inputs& in) -> Outputs {
    return cross_entropy(static_cast<const Gpt&>(module)(in["x"]), in["y"]);
  };
  graph::Graph graph = detail::traceFunction(&model, inputs, loss, graph::OutputKind::Loss, Where::current());
  passes::CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.optimizer = detail::optimizerConfig(adamw({.lr = 1e-3}), graph.parameters);
  options.templates = detail::templateSource();
  options.low = low;
  return passes::compile(std::move(graph), options).orThrow();
}

uint64_t bytesMoved(const passes::Compiled& step) {
  return std::accumulate(step.work.begin(), step.work.end(), uint64_t{0},
                         [](uint64_t sum, const passes::CommandWork& work) { return sum + work.bytes; });
}

TEST(MixedPlans, transformer_keeps_and_moves_less) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    const passes::Compiled wide = compiled({}, profile);
    for (const DType low : {DType::BF16, DType::F16}) {
      const passes::Compiled narrow = compiled(low, profile);
      const double kept = static_cast<double>(narrow.plan.workspace_bytes) / static_cast<double>(wide.plan.workspace_bytes);
      const double moved = static_cast<double>(bytesMoved(narrow)) / static_cast<double>(bytesMoved(wide));
      EXPECT_LE(kept, 0.6) << profile << " " << narrow.plan.workspace_bytes << " of " << wide.plan.workspace_bytes;
      EXPECT_LE(moved, 0.9) << profile << " " << bytesMoved(narrow) << " of " << bytesMoved(wide);
    }
  }
}

}  // namespace
}  // namespace lockstep
