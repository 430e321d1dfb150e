// SPDX-License-Identifier: Apache-2.0
// What is computed around the large products of a GPT on a device with matrix units: neither in each load of an operand, nor, where it
// takes many operations, while the units wait.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/lockstep.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

constexpr int64_t kLayers = 2, kLength = 256, kWidth = 384, kVocabulary = 65;

struct SmallGpt : Module {
  SmallGpt()
      : tokens(*this, "tokens", kVocabulary, kWidth),
        blocks(*this, "blocks", static_cast<size_t>(kLayers), kWidth, 6, nn::TransformerBlockOptions{.attention = {.causal = true}}),
        norm(*this, "norm", kWidth) {}
  Tensor operator()(Tensor x) const {
    Tensor h = tokens(x);
    for (size_t i = 0; i < blocks.size(); ++i) h = blocks[i](h);
    return matmul(norm(h), swap_axes(tokens.W, 0, 1));
  }
  nn::Embedding tokens;
  ModuleList<nn::TransformerBlock> blocks;
  nn::LayerNorm norm;
};

program::DeviceProfile withUnits() {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 132;
  profile.f16 = true;
  profile.matrix_f16 = profile.matrix_bf16 = {.m = 16, .n = 16, .k = 16};
  profile.matrix_rows = true;
  return profile;
}

passes::Compiled step(int64_t batch, std::optional<DType> low = {}, std::vector<std::string> disabled = {}) {
  const SmallGpt model;
  const std::vector<InputSpec> inputs{{"x", i32(batch, kLength)}, {"y", i32(batch, kLength)}};
  const auto loss = [](const Module& module, const Inputs& in) -> Outputs {
    return cross_entropy(static_cast<const SmallGpt&>(module)(in["x"]), in["y"]);
  };
  graph::Graph graph = detail::traceFunction(&model, inputs, loss, graph::OutputKind::Loss, Where::current());
  passes::CompileOptions options;
  options.profile = withUnits();
  options.optimizer = detail::optimizerConfig(adamw({.lr = 1e-3}), graph.parameters);
  options.templates = detail::templateSource();
  options.low = low;
  options.disabled = std::move(disabled);
  options.verify_each = false;
  return passes::compile(std::move(graph), options).orThrow();
}

/// Dispatches with all of `parts` in their label.
int64_t dispatchesOf(const passes::Compiled& compiled, const std::vector<std::string_view>& parts) {
  return std::ranges::count_if(compiled.program.commands, [&](const program::Command& command) {
    return std::ranges::all_of(parts, [&](std::string_view part) { return command.label.find(part) != std::string::npos; });
  });
}

TEST(AroundProducts, heavy_functions_are_a_map_beside_large_products) {
  const passes::Compiled large = step(64);
  EXPECT_EQ(dispatchesOf(large, {"gelu", "matmul"}), 0);
  EXPECT_EQ(dispatchesOf(large, {"gelu+gelu_gradient"}), kLayers) << "both read what the product makes, once";
  EXPECT_EQ(dispatchesOf(large, {"gelu"}), kLayers);
  const passes::Compiled small = step(1);
  EXPECT_EQ(dispatchesOf(small, {"gelu", "matmul"}), dispatchesOf(small, {"gelu"})) << "a level costs more there";
}

TEST(AroundProducts, coarse_functions_stay_in_the_products_of_mixed_precision) {
  const passes::Compiled mixed = step(64, DType::BF16);
  EXPECT_EQ(dispatchesOf(mixed, {"gelu", "matmul"}), 2 * kLayers) << "gelu forwards and its gradient backwards";
  EXPECT_EQ(dispatchesOf(mixed, {"gelu"}), 2 * kLayers);
  const passes::Compiled fine = step(64, DType::BF16, {"coarseFunctions"});
  EXPECT_EQ(dispatchesOf(fine, {"gelu", "matmul"}), 0);
}

/// Commands of each level in their order, by the names of their kernels; empty between levels.
std::vector<std::string> kernelsInOrder(const passes::Compiled& compiled) {
  std::vector<std::string> names;
  uint32_t level = 0;
  for (const program::Command& command : compiled.program.commands) {
    if (command.level != level) names.emplace_back();
    level = command.level;
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    names.push_back(dispatch == nullptr ? "copy" : std::get<kernel::Module>(compiled.program[dispatch->kernel].code).name);
  }
  return names;
}

TEST(AroundProducts, long_sums_of_columns_come_before_products_and_in_parts) {
  const passes::Compiled large = step(64);
  int64_t beside = 0;
  const std::vector<std::string> names = kernelsInOrder(large);
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const auto is = [&](size_t at, std::string_view part) { return names[at].find(part) != std::string::npos; };
    const bool is_sum = is(i, "columns") && !is(i, "matrix_tiled");
    beside += is_sum && is(i + 1, "matrix_tiled") ? 1 : 0;
    EXPECT_FALSE(names[i].starts_with("matrix_tiled") && names[i + 1].starts_with("columns")) << names[i] << " before " << names[i + 1];
  }
  EXPECT_GE(beside, 2 * kLayers);
  // The gradients of biases: 96 workgroups would be left when the product beside them is done.
  int64_t long_sums = 0;
  for (const program::Command& command : large.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    const bool is_sum = dispatch != nullptr && (command.label == "sum" || command.label == "sum, sum");
    if (!is_sum || dispatch->bindings.front().size < uint64_t{64} * kLength * kWidth * 4) continue;
    EXPECT_GE(dispatch->groups[0], 384u);
    ++long_sums;
  }
  EXPECT_GE(long_sums, 2 * kLayers);
}

// The product with the vocabulary, and the gradient of its weights, are too narrow to compute their operand twice.
TEST(AroundProducts, norms_are_stored_for_the_products_that_read_them) {
  const passes::Compiled stored = step(64), computed = step(64, {}, {"storeOperands"});
  EXPECT_EQ(dispatchesOf(stored, {"mul+add+matmul"}), 2);
  EXPECT_GE(dispatchesOf(computed, {"mul+add+matmul"}), 4 * kLayers);
  // One map per norm in a layer makes it again for the gradients of weights; some of them run beside something else.
  EXPECT_GT(stored.plan.dispatches, computed.plan.dispatches);
  EXPECT_LE(stored.plan.dispatches, computed.plan.dispatches + 2 * kLayers);
  EXPECT_EQ(stored.plan.levels, computed.plan.levels);
  // Two tensors of [64, 256, 384] at most are in memory for it.
  EXPECT_LE(stored.plan.total_bytes, computed.plan.total_bytes + 2 * 64 * kLength * kWidth * 4);
}

}  // namespace
}  // namespace lockstep
