// SPDX-License-Identifier: Apache-2.0
// A model whose table of embeddings alone is above the binding limit: the shape of GPT-2 small, 124 million parameters.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/backend.h"
#include "examples/models/transformer.h"
#include "frontend/lockstep.h"
#include "frontend/trace/trace.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

constexpr int64_t kVocabulary = 50'257, kPositions = 256;

examples::TransformerShape shapeOf(int64_t layers) {
  return {.vocabulary = kVocabulary, .width = 768, .layers = layers, .heads = 12, .sequence = kPositions + 1};
}

Tensor lossOf(const examples::Transformer& model, const Tensor& tokens, const Tensor& targets) {
  return cross_entropy(model(tokens), targets);
}

/// The limits of lavapipe, whatever devices this machine has.
program::DeviceProfile lavapipe() {
  program::DeviceProfile profile = program::findProfile("cpu").orThrow();
  profile.name = "lavapipe";
  profile.max_loop_iterations = 65'535;
  profile.subgroup_size = 8;
  return profile;
}

TEST(LargeModel, gpt2_small_is_planned_within_the_limits_of_a_cpu_driver) {
  const examples::Transformer model(shapeOf(12));
  detail::Trace trace;
  trace.addParameters(model);
  const Tensor tokens = trace.addInput("tokens", i32(1, kPositions)), targets = trace.addInput("targets", i32(1, kPositions));
  trace.output(graph::OutputKind::Loss, "loss", lossOf(model, tokens, targets));
  passes::CompileOptions options;
  options.profile = lavapipe();
  options.optimizer = passes::OptimizerConfig{.kind = passes::OptimizerKind::AdamW};
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(trace.take(), options).orThrow();
  int64_t elements = 0;
  for (const graph::ParameterInfo& parameter : compiled.program.parameters) elements += parameter.type.shape.elementCount();
  EXPECT_GT(elements, 120'000'000);
  for (const program::Command& command : compiled.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    for (const program::Range& range : dispatch->bindings) EXPECT_LE(range.size, options.profile.max_binding_bytes) << command.label;
  }
}

/// Two steps on the Vulkan device: the loss begins at the logarithm of the vocabulary and falls.
void expectItTrains(int64_t layers, int64_t length) {
  std::vector<int32_t> tokens(static_cast<size_t>(length)), targets(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 197 % kVocabulary);
    targets[i] = static_cast<int32_t>((i + 1) * 197 % kVocabulary);
  }
  if (!chooseDevice("vulkan").ok()) GTEST_SKIP() << "there is no Vulkan device";
  auto trainer = compile<examples::Transformer>({
      .inputs = {{"tokens", i32(1, length)}, {"targets", i32(1, length)}},
      .loss = [](const examples::Transformer& model, const Inputs& in) { return lossOf(model, in["tokens"], in["targets"]); },
      .optimizer = adam({.lr = 1e-3}),
      .device = "vulkan",
      .make = [&] { return std::make_unique<examples::Transformer>(shapeOf(layers)); },
  });
  const double first = trainer.step({{"tokens", tokens}, {"targets", targets}}).loss;
  EXPECT_NEAR(first, std::log(static_cast<double>(kVocabulary)), 2.0);
  const double second = trainer.step({{"tokens", tokens}, {"targets", targets}}).loss;
  EXPECT_LT(second, first);
}

TEST(LargeModel, nightly_one_layer_with_a_large_vocabulary_trains) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectItTrains(1, 16);
}

TEST(LargeModel, nightly_gpt2_small_trains) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectItTrains(12, kPositions);
}

}  // namespace
}  // namespace lockstep::large
