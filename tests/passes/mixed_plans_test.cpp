// SPDX-License-Identifier: Apache-2.0
// What a transformer's training step keeps and moves in mixed precision, beside f32.
#include <gtest/gtest.h>

#include <numeric>

#include "examples/models/samples.h"
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

CompileSpec<Gpt> gptSpec() {
  return {.inputs = {{"x", i32(kBatch, kLength)}, {"y", i32(kBatch, kLength)}},
          .loss = [](const Gpt& model, const Inputs& in) { return cross_entropy(model(in["x"]), in["y"]); },
          .optimizer = adamw({.lr = 1e-3})};
}

template <class Model>
passes::Compiled compiled(const CompileSpec<Model>& spec, std::optional<DType> low, std::string_view profile) {
  const auto model = detail::makeModel<Model>(spec.make);
  const auto loss = [&](const Module& module, const Inputs& in) -> Outputs { return spec.loss(static_cast<const Model&>(module), in); };
  graph::Graph graph = detail::traceFunction(model.get(), spec.inputs, loss, graph::OutputKind::Loss, Where::current());
  passes::CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.optimizer = detail::optimizerConfig(spec.optimizer, graph.parameters);
  options.templates = detail::templateSource();
  options.low = low;
  return passes::compile(std::move(graph), options).orThrow();
}

uint64_t bytesMoved(const passes::Compiled& step) {
  return std::accumulate(step.work.begin(), step.work.end(), uint64_t{0},
                         [](uint64_t sum, const passes::CommandWork& work) { return sum + work.bytes; });
}

/// A step in 16 bits keeps at most `most_kept` of the workspace of a step in f32, and moves at most `most_moved` of its bytes.
template <class Model>
void expectLess(const CompileSpec<Model>& spec, double most_kept, double most_moved) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    const passes::Compiled wide = compiled(spec, {}, profile);
    for (const DType low : {DType::BF16, DType::F16}) {
      const passes::Compiled narrow = compiled(spec, low, profile);
      const double kept = static_cast<double>(narrow.plan.workspace_bytes) / static_cast<double>(wide.plan.workspace_bytes);
      const double moved = static_cast<double>(bytesMoved(narrow)) / static_cast<double>(bytesMoved(wide));
      EXPECT_LE(kept, most_kept) << profile << " " << narrow.plan.workspace_bytes << " of " << wide.plan.workspace_bytes;
      EXPECT_LE(moved, most_moved) << profile << " " << bytesMoved(narrow) << " of " << bytesMoved(wide);
    }
  }
}

TEST(MixedPlans, transformer_keeps_and_moves_less) { expectLess(gptSpec(), 0.7, 0.9); }
TEST(MixedPlans, samples_keep_and_move_less) {
  expectLess(examples::charGptSpec(), 0.7, 0.9);
  // Neither keeps scores of attention on a GPU, of which 16 bits would be half.
  expectLess(examples::makemoreSpec(), 0.79, 0.95);
}

}  // namespace
}  // namespace lockstep
