// SPDX-License-Identifier: Apache-2.0
// What attention keeps in memory: no tensor of scores where its templates run, and what a device without them is told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/lockstep.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

struct GptShape {
  int64_t vocabulary, length, width, layers, heads, batch;
};

struct Gpt : Module {
  explicit Gpt(const GptShape& s)
      : tokens(*this, "tokens", s.vocabulary, s.width),
        places(*this, "places", s.length, s.width),
        blocks(*this, "blocks", static_cast<size_t>(s.layers), s.width, s.heads,
               nn::TransformerBlockOptions{.attention = {.causal = true}}),
        norm(*this, "norm", s.width),
        length(s.length) {}
  Tensor operator()(Tensor x) const {
    Tensor h = tokens(x) + places(arange(length));
    for (size_t i = 0; i < blocks.size(); ++i) h = blocks[i](h);
    return matmul(norm(h), swap_axes(tokens.W, 0, 1));
  }
  nn::Embedding tokens, places;
  ModuleList<nn::TransformerBlock> blocks;
  nn::LayerNorm norm;
  int64_t length;
};

passes::Compiled trained(const GptShape& shape, const program::DeviceProfile& profile, std::optional<DType> low = {}) {
  const Gpt model(shape);
  const std::vector<InputSpec> inputs{{"x", i32(shape.batch, shape.length)}, {"y", i32(shape.batch, shape.length)}};
  const auto loss = [](const Module& module, const Inputs& in) -> Outputs {
    return cross_entropy(static_cast<const Gpt&>(module)(in["x"]), in["y"]);
  };
  graph::Graph graph = detail::traceFunction(&model, inputs, loss, graph::OutputKind::Loss, Where::current());
  passes::CompileOptions options;
  options.profile = profile;
  options.optimizer = detail::optimizerConfig(adamw({.lr = 1e-3}), graph.parameters);
  options.templates = detail::templateSource();
  options.low = low;
  options.verify_each = false;
  return passes::compile(std::move(graph), options).orThrow();
}

/// The largest tensor of the workspace, in elements.
int64_t largestTensor(const passes::Compiled& compiled) {
  int64_t most = 0;
  for (const program::Buffer& buffer : compiled.program.buffers) {
    if (buffer.role == program::ArenaRole::Workspace) most = std::max(most, buffer.type.shape.elementCount());
  }
  return most;
}

/// Attention of one head with its gradients; `mask`: of [T, T].
Result<passes::Compiled> attention(int64_t length, int64_t width, const program::DeviceProfile& profile, bool mask = false,
                                   std::vector<std::string> disabled = {}) {
  graph::Builder b;
  const auto leaf = [&](std::string name, const graph::Shape& shape) {
    return b.make("input", {}, {{"name", std::move(name)}, {"shape", shape.extents()}, {"dtype", graph::DType::F32}});
  };
  std::vector<graph::ValueId> operands;
  for (const char* name : {"q", "k", "v"}) operands.push_back(leaf(name, {1, 1, length, width}));
  if (mask) operands.push_back(leaf("mask", {length, length}));
  const graph::ValueId out = b.make("scaled_dot_product_attention", operands, {{"causal", true}, {"offset", int64_t{0}}, {"scale", 0.125}});
  b.output(graph::OutputKind::Loss, "loss", b.make("sum", {out}, {{"axes", std::vector<int64_t>{0, 1, 2, 3}}, {"keep_dims", false}}));
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  options.keep_gradients = true;
  options.wrt = {"q", "k", "v"};
  options.disabled = std::move(disabled);
  return passes::compile(b.take(), options);
}

TEST(AttentionPlans, scores_are_in_no_memory) {
  for (const program::DeviceProfile& profile :
       {program::findProfile("portable").orThrow(), program::findProfile("cpu").orThrow(), gpuProfile()}) {
    for (const int64_t length : {int64_t{2053}, int64_t{8209}, int64_t{16384}}) {
      // Without known subgroups products are faster, as long as there is memory for the scores.
      if (!profile.fixed_subgroups && length < 8192) continue;
      const passes::Compiled compiled = attention(length, 64, profile).orThrow();
      EXPECT_EQ(largestTensor(compiled), length * 64) << profile.name;
    }
  }
}

/// The plans of its kernels, by number: those of the forward pass and of both gradients.
TEST(AttentionPlans, tiles_where_subgroups_are_known) {
  const auto plans = [](const program::DeviceProfile& profile, int64_t width) {
    std::string text;
    const passes::Compiled compiled = attention(9001, width, profile).orThrow();
    for (const program::Kernel& kernel : compiled.program.kernels) {
      const std::string& name = std::get<kernel::Module>(kernel.code).name;
      if (name == "stream" || name == "tiled" || name == "tiled_tiled") text += name + " ";
    }
    return text;
  };
  EXPECT_EQ(plans(gpuProfile(), 64), "tiled tiled tiled ");
  EXPECT_EQ(plans(gpuProfile(), 7), "tiled tiled tiled ") << "the width of one invocation";
  EXPECT_EQ(plans(gpuProfile(), 256), "tiled tiled tiled ");
  EXPECT_EQ(plans(program::findProfile("portable").orThrow(), 64), "stream stream stream ");
  EXPECT_EQ(plans(program::findProfile("cpu").orThrow(), 64), "stream stream stream ");
}

/// A head whose scores fit into a workgroup's memory is one kernel forward and one backward on a GPU. CPU drivers are faster with
/// products.
TEST(AttentionPlans, short_sequences_take_one_kernel_each_way) {
  const auto counts = [](int64_t length, int64_t width, const program::DeviceProfile& profile, std::vector<std::string> disabled = {}) {
    const passes::Compiled compiled = attention(length, width, profile, false, std::move(disabled)).orThrow();
    size_t whole = 0;
    for (const program::Command& command : compiled.program.commands) {
      const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
      if (dispatch == nullptr) continue;
      // Nothing flows from one to the other here, so they are one dispatch.
      const std::string& name = std::get<kernel::Module>(compiled.program.kernels[dispatch->kernel.index()].code).name;
      whole += (name == "whole" ? 1 : 0) + (name == "whole_whole" ? 2 : 0);
    }
    return std::pair(whole, compiled.plan.levels);
  };
  using Counts = std::pair<size_t, uint32_t>;
  for (const int64_t length : {1, 8, 17, 31, 32}) EXPECT_EQ(counts(length, 64, gpuProfile()).first, 2u) << length;
  EXPECT_EQ(counts(17, 16, gpuProfile()), (Counts{2, 2}));
  EXPECT_EQ(counts(17, 16, gpuProfile(), {"template:short_attention"}).first, 0u);
  EXPECT_EQ(counts(17, 16, gpuProfile(), {"template:attention"}).first, 0u);
  EXPECT_GE(counts(17, 16, gpuProfile(), {"template:attention", "chainRows"}).second, 5u);
  EXPECT_EQ(counts(33, 16, gpuProfile()).first, 0u);
  EXPECT_EQ(counts(17, 16, program::findProfile("cpu").orThrow()).first, 0u);
  // Of a width of 64, 32 rows fit into 16 KiB neither way, and 17 rows of 32 do forward.
  program::DeviceProfile small = gpuProfile();
  small.max_workgroup_bytes = 16384;
  EXPECT_EQ(counts(32, 64, small).first, 0u);
  EXPECT_EQ(counts(17, 32, small).first, 2u);
}

/// Arrays in workgroup memory are whole vectors: nine of them may take more bytes than their elements.
TEST(AttentionPlans, short_sequences_keep_to_the_limit_of_workgroup_memory) {
  for (const auto& [bytes, length, width] : {std::tuple{32768u, 30, 48}, {16384u, 9, 104}, {49152u, 32, 68}, {32768u, 31, 47}}) {
    program::DeviceProfile profile = gpuProfile();
    profile.max_workgroup_bytes = bytes;
    const Result<passes::Compiled> compiled = attention(length, width, profile);
    EXPECT_TRUE(compiled.ok()) << bytes << ": " << (compiled.ok() ? "" : toString(compiled.diagnostics()));
  }
}

/// q, k and v take two bindings each, and the device has eight: products by slices instead.
TEST(AttentionPlans, short_sequences_beyond_one_binding_take_products) {
  graph::Builder b;
  std::vector<graph::ValueId> operands;
  for (const char* name : {"q", "k", "v"}) {
    operands.push_back(b.make("input", {}, {{"name", name}, {"shape", std::vector<int64_t>{40000, 8, 128}}, {"dtype", graph::DType::F32}}));
  }
  const auto results = b.makeAll("scaled_dot_product_attention", operands, {{"causal", true}, {"offset", int64_t{0}}, {"scale", 0.125}});
  b.output(graph::OutputKind::Result, "out", results[0]);
  b.output(graph::OutputKind::Result, "lse", results[1]);
  passes::CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  options.templates = detail::templateSource();
  const Result<passes::Compiled> compiled = passes::compile(b.take(), options);
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : toString(compiled.diagnostics()));
}

/// Workgroups of both gradients, which are one dispatch where there are few, and of the forward pass.
TEST(AttentionPlans, few_rows_are_shared_by_more_workgroups) {
  const auto groups = [](int64_t length, uint32_t units) {
    program::DeviceProfile profile = gpuProfile();
    profile.parallel_units = units;
    const passes::Compiled compiled = attention(length, 64, profile).orThrow();
    std::vector<uint32_t> found;
    for (const program::Command& command : compiled.program.commands) {
      const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
      if (dispatch == nullptr) continue;
      const std::string& name = std::get<kernel::Module>(compiled.program.kernels[dispatch->kernel.index()].code).name;
      if (name == "tiled" || name == "tiled_tiled") found.push_back(dispatch->groups[0]);
    }
    std::ranges::sort(found);
    return found;
  };
  using Groups = std::vector<uint32_t>;
  EXPECT_EQ(groups(4099, 65), (Groups{65 + 129, 257})) << "64 rows of queries, 32 of keys by two shares, 16 of the forward pass by four";
  EXPECT_EQ(groups(4099, 33), (Groups{65 + 65, 257})) << "the units have enough for keys";
  EXPECT_EQ(groups(4099, 16), (Groups{65, 65, 65}));
}

TEST(AttentionPlans, memory_grows_with_the_length_and_not_with_its_square) {
  const uint64_t once = attention(4096, 64, gpuProfile()).orThrow().plan.workspace_bytes;
  const uint64_t four_times = attention(4 * 4096, 64, gpuProfile()).orThrow().plan.workspace_bytes;
  EXPECT_LE(four_times, 4 * once);
}

TEST(AttentionPlans, without_the_template_scores_are_kept) {
  const int64_t length = 2053;
  EXPECT_GE(largestTensor(attention(length, 64, gpuProfile(), false, {"template:attention"}).orThrow()), length * length);
  // Short ones are better off with products, and on a device with few bindings the gradient with a mask has no kernel.
  EXPECT_GE(largestTensor(attention(512, 64, gpuProfile()).orThrow()), 512 * 512);
  EXPECT_GE(largestTensor(attention(length, 64, program::findProfile("portable").orThrow(), true).orThrow()), length * length);
  EXPECT_EQ(largestTensor(attention(length, 64, gpuProfile(), true).orThrow()), length * 64);
}

TEST(AttentionPlans, scores_beyond_the_number_of_elements_are_refused_without_the_template) {
  const Result<passes::Compiled> refused = attention(65536, 8, gpuProfile(), false, {"template:attention"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().code, "decompose.elements");
  EXPECT_TRUE(attention(65536, 8, gpuProfile()).ok());
}

/// Whoever disables it can misspell it.
TEST(AttentionPlans, unknown_template_is_refused) {
  const Result<passes::Compiled> refused = attention(16, 8, gpuProfile(), false, {"template:attentoin"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().code, "pipeline.pass");
}

// PyTorch's peaks for the same steps are 2.80 and 11.9 GB.
TEST(GptPlans, of_characters_takes_2_4_GB) {
  const GptShape shape{.vocabulary = 65, .length = 256, .width = 384, .layers = 6, .heads = 6, .batch = 64};
  EXPECT_LE(trained(shape, gpuProfile()).plan.total_bytes, uint64_t{2'380'000'000});
}

/// What products read is kept in 16 bits and not computed again in each of their rounds: gelu of the hidden layer, and norms.
TEST(GptPlans, in_bf16_keeps_two_thirds_of_the_temporaries) {
  const GptShape shape{.vocabulary = 65, .length = 256, .width = 384, .layers = 6, .heads = 6, .batch = 64};
  EXPECT_LE(trained(shape, gpuProfile(), graph::DType::BF16).plan.workspace_bytes * 3,
            trained(shape, gpuProfile()).plan.workspace_bytes * 2);
}

TEST(GptPlans, of_words_takes_8_5_GB_and_keeps_logits_once) {
  const GptShape shape{.vocabulary = 50257, .length = 1024, .width = 768, .layers = 12, .heads = 12, .batch = 8};
  const passes::Compiled step = trained(shape, gpuProfile());
  EXPECT_LE(step.plan.total_bytes, uint64_t{8'500'000'000});
  for (const program::Arena& arena : step.program.arenas) EXPECT_LE(arena.size, gpuProfile().max_binding_bytes) << arena.name;
  const int64_t logits = shape.batch * shape.length * shape.vocabulary;
  std::vector<std::pair<program::ArenaId, uint64_t>> places;
  for (const program::Buffer& buffer : step.program.buffers) {
    if (buffer.type.shape.elementCount() != logits) continue;
    if (std::ranges::find(places, std::pair(buffer.arena, buffer.offset)) == places.end()) places.emplace_back(buffer.arena, buffer.offset);
  }
  EXPECT_EQ(places.size(), 1U);
}

}  // namespace
}  // namespace lockstep
