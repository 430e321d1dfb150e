// SPDX-License-Identifier: Apache-2.0
// What a token costs on a GPU: commands and levels of the program that a generator runs for each, and that it is right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/backend.h"
#include "frontend/llm/generator_session.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/llm/tiny.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/profiled_device.h"

namespace lockstep::llm {
namespace {

using graph::OutputKind;
using testing::configOf;
using testing::tinyJson;

graph::Graph traced(LanguageConfig config, const GeneratorOptions& options, int64_t tokens = 1) {
  config.init_scale = 0;
  const GeneratorSession session(config, options);
  const bool several = options.tokens_per_submission > 1;
  return detail::traceFunction(
      &session, several ? inputsOfSeveral(options) : inputsOf(options, tokens),
      [&](const Module&, const Inputs& in) { return several ? advanceSeveral(session, in, options) : advance(session, in, options); },
      OutputKind::Result, Where::current(), true);
}

/// As an H100 is planned for, without its matrix units, which a token has no use for.
passes::CompileOptions onGpu() {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 132;
  options.templates = detail::templateSource();
  options.check_indices = true;
  options.verify_each = false;
  return options;
}

passes::Compiled compiled(const LanguageConfig& config, const GeneratorOptions& options) {
  return passes::compile(detail::withoutCaptures(traced(config, options)), onGpu()).orThrow();
}

/// Of this shape Qwen2.5-0.5B has 24 layers.
LanguageConfig qwen(int64_t layers) {
  return configOf(fmt::format(R"({{"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "num_hidden_layers": {},
      "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "max_position_embeddings": 32768,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true}})",
                              layers));
}

std::string listOf(const passes::Compiled& compiled) {
  std::string list;
  for (const program::Command& command : compiled.program.commands) list += fmt::format("level {}: {}\n", command.level, command.label);
  return list;
}

int64_t labelled(const passes::Compiled& compiled, std::string_view part) {
  return std::ranges::count_if(compiled.program.commands,
                               [&](const program::Command& c) { return c.label.find(part) != std::string::npos; });
}

uint64_t bytesOf(const passes::Compiled& compiled, program::ArenaRole role) {
  uint64_t bytes = 0;
  for (const program::Buffer& buffer : compiled.program.buffers) bytes += buffer.role == role ? buffer.type.byteSize() : 0;
  return bytes;
}

/// Of this shape Llama-3.2-1B has 16 layers.
LanguageConfig llama(int64_t layers) {
  return configOf(fmt::format(R"({{"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": {},
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true}})",
                              layers));
}

/// Per layer: norm, q, k, v and rotary positions; attention; o with its residual, and the rows of the cache; norm, gate and up; down.
TEST(DecodePlans, a_token_takes_few_dispatches_and_levels) {
  for (const char* format : {"f32", "bf16", "f16"}) {
    LanguageConfig config = qwen(24), short_config = qwen(2), other = qwen(3);
    for (LanguageConfig* one : {&config, &short_config, &other}) one->weights = nn::WeightFormat::parse(format).orThrow();
    const GeneratorOptions options{.positions = 1024, .chunk = 1, .cache = config.weights.dtype()};
    const passes::Compiled all = compiled(config, options);
    const std::string list = format + std::string("\n") + listOf(compiled(short_config, options));
    EXPECT_LE(all.plan.dispatches, 150u) << list;
    EXPECT_LE(all.plan.levels, 125u) << list;
    EXPECT_LE(bytesOf(all, program::ArenaRole::Output), 64u);
    EXPECT_EQ(labelled(all, "attend_cache"), 24);
    // Layers share their kernels.
    EXPECT_EQ(all.plan.distinct_kernels, compiled(other, options).plan.distinct_kernels);
  }
}

/// Of this shape Llama-3.1-8B has 32 layers. Its queries are too many to be turned in their product, and are where attention reads them.
TEST(DecodePlans, attention_turns_queries_that_it_reads) {
  LanguageConfig config = configOf(R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 3,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false})");
  config.weights = nn::WeightFormat::parse("bf16").orThrow();
  const passes::Compiled one = compiled(config, {.positions = 512, .chunk = 1, .cache = graph::DType::BF16});
  EXPECT_LE(one.plan.levels, 5u * 3 + 5) << listOf(one);
}

/// With room for 8192 positions the heads of a token share out their keys: one level more per layer, and most of the 132 units have work.
TEST(DecodePlans, a_long_cache_is_shared_out) {
  LanguageConfig config = qwen(3);
  config.weights = nn::WeightFormat::parse("bf16").orThrow();
  const GeneratorOptions brief{.positions = 1024, .chunk = 1, .cache = graph::DType::BF16};
  GeneratorOptions longer = brief;
  longer.positions = 8192;
  const passes::Compiled few = compiled(config, brief), many = compiled(config, longer);
  EXPECT_EQ(many.plan.levels, few.plan.levels + 3) << listOf(many);
  EXPECT_EQ(many.plan.dispatches, few.plan.dispatches) << listOf(many);  // beside the rows that go into the cache
  for (const program::Command& command : many.program.commands) {
    if (command.label.find("attend_cache") == std::string::npos) continue;
    EXPECT_GE(std::get<program::Dispatch>(command.action).groups[0], 120u);
    EXPECT_LE(std::get<program::Dispatch>(command.action).groups[0], 132u);
  }
}

/// Integers of few bits are sums like those of 16 bits, and rows of a quantised table are unpacked a level before they are read.
TEST(DecodePlans, a_token_of_quantised_weights_takes_as_few) {
  for (const char* format : {"int8", "int4"}) {
    LanguageConfig config = qwen(24);
    config.weights = nn::WeightFormat::parse(format).orThrow();
    passes::CompileOptions how = onGpu();
    how.profile.packed_dot = true;
    const GeneratorOptions options{.positions = 1024, .chunk = 1, .cache = graph::DType::BF16};
    const passes::Compiled all = passes::compile(detail::withoutCaptures(traced(config, options)), how).orThrow();
    EXPECT_LE(all.plan.dispatches, 151u) << format << "\n" << listOf(all);
    EXPECT_LE(all.plan.levels, 126u) << format << "\n" << listOf(all);
    // The matrices of a layer have 4.4 million numbers at most, the head has 136.
    EXPECT_EQ(labelled(all, "multiply_quantized"), 1) << format;
  }
}

/// Large ones are integer dot products, which take in norms and gates before them and what follows them: five levels per layer, and five
/// around them. Without the pass that gives them the norms, each norm before them is a level.
TEST(DecodePlans, what_is_around_large_quantised_products_takes_no_level) {
  for (const char* format : {"int8", "int4"}) {
    LanguageConfig config = llama(16);
    config.weights = nn::WeightFormat::parse(format).orThrow();
    passes::CompileOptions how = onGpu();
    how.profile.packed_dot = true;
    const GeneratorOptions options{.positions = 1024, .chunk = 1, .cache = graph::DType::BF16};
    const passes::Compiled all = passes::compile(detail::withoutCaptures(traced(config, options)), how).orThrow();
    EXPECT_LE(all.plan.levels, 5u * 16 + 5) << format << "\n" << listOf(all);
    how.disabled = {"takeNorms"};
    const passes::Compiled apart = passes::compile(detail::withoutCaptures(traced(config, options)), how).orThrow();
    EXPECT_EQ(apart.plan.levels, all.plan.levels + 16 + 1) << format;
  }
}

/// What a norm and a product of one row sum over is not taken apart, although a kernel before it has rows of the same size.
TEST(DecodePlans, products_of_a_row_stay_whole) {
  LanguageConfig config = llama(4);
  config.weights = nn::WeightFormat::parse("bf16").orThrow();
  GeneratorOptions options{.positions = 1024, .chunk = 1, .cache = graph::DType::BF16};
  const passes::Compiled one = compiled(config, options);
  EXPECT_LE(one.plan.levels, 5u * 4 + 5) << listOf(one);
  EXPECT_LT(one.plan.workspace_bytes, 1u << 20) << "logits, and no partial sums";
  options.tokens_per_submission = 8;
  EXPECT_LT(compiled(config, options).plan.workspace_bytes, 2u << 20);
}

/// Of all commands.
uint64_t movedBytes(const passes::Compiled& compiled) {
  uint64_t bytes = 0;
  for (const passes::CommandWork& work : compiled.work) bytes += work.bytes;
  return bytes;
}

/// Beside the likeliest token: how often each id was there goes into the logits, then chunks of them are ranked, and one is drawn.
TEST(DecodePlans, sampling_takes_two_dispatches_and_sorts_no_vocabulary) {
  const GeneratorOptions options{.positions = 1024, .chunk = 1, .samples = true};
  const passes::Compiled greedy = compiled(qwen(2), {.positions = 1024, .chunk = 1}), sampled = compiled(qwen(2), options);
  EXPECT_LE(sampled.plan.dispatches, greedy.plan.dispatches + 2) << listOf(sampled);
  EXPECT_LE(sampled.plan.levels, greedy.plan.levels + 1) << listOf(sampled);
  for (const char* sorts : {"ordering", "merge_order", "take_along_axis", "cumsum"}) EXPECT_EQ(labelled(sampled, sorts), 0) << sorts;
  // In numbers of 32 bits per id: 4 to count ids and to change logits, 1 and 3 to rank, 3 to draw from the ranks.
  constexpr uint64_t kPerId = 11 * sizeof(float), kIds = 151936;
  EXPECT_LE(movedBytes(sampled) - movedBytes(greedy), kPerId * kIds * 102 / 100);

  passes::CompileOptions by_sort = onGpu();
  by_sort.disabled = {"template:draw_token"};
  const passes::Compiled sorted = passes::compile(detail::withoutCaptures(traced(qwen(2), options)), by_sort).orThrow();
  EXPECT_GT(labelled(sorted, "merge_order"), 0) << listOf(sorted);
  EXPECT_GE(sorted.plan.dispatches, sampled.plan.dispatches + 40);
  EXPECT_GE(sorted.plan.levels, sampled.plan.levels + 30);
  EXPECT_GE(movedBytes(sorted) - movedBytes(greedy), 5 * (movedBytes(sampled) - movedBytes(greedy)));
}

/// With the least that every device has, and as CPU drivers are planned for.
TEST(DecodePlans, sampling_sorts_no_vocabulary_anywhere) {
  LanguageConfig config = configOf(tinyJson("qwen2"));
  config.vocabulary = 151936;
  for (const char* name : {"portable", "cpu"}) {
    passes::CompileOptions how = onGpu();
    how.profile = program::findProfile(name).orThrow();
    const passes::Compiled made =
        passes::compile(detail::withoutCaptures(traced(config, {.positions = 64, .chunk = 1, .samples = true})), how).orThrow();
    EXPECT_EQ(labelled(made, "draw_from_chunks"), 1) << name;
    EXPECT_EQ(labelled(made, "merge_order"), 0) << name;
  }
}

/// With the eight storage buffers that every device has.
TEST(DecodePlans, sampling_keeps_to_the_bindings_of_every_device) {
  for (const char* name : {"portable", "webgpu_default", "cpu"}) {
    passes::CompileOptions how = onGpu();
    how.profile = program::findProfile(name).orThrow();
    for (const int64_t vocabulary : {24, 3000, 151936}) {
      LanguageConfig config = configOf(tinyJson("qwen2"));
      config.vocabulary = vocabulary;
      for (const int64_t tokens : {1, 20, 64}) {
        const GeneratorOptions options{.positions = 96, .chunk = tokens, .samples = true};
        const passes::Compiled made = passes::compile(detail::withoutCaptures(traced(config, options, tokens)), how).orThrow();
        for (const program::Command& command : made.program.commands) {
          const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
          if (dispatch == nullptr) continue;
          EXPECT_LE(dispatch->bindings.size(), how.profile.max_storage_buffers)
              << name << ", " << vocabulary << " ids, " << tokens << " tokens: " << command.label;
        }
      }
    }
  }
}

/// A loop over the same commands: caches stay in their place.
TEST(DecodePlans, several_tokens_take_the_kernels_of_one) {
  const passes::Compiled one = compiled(qwen(2), {.positions = 1024, .chunk = 1});
  const passes::Compiled several = compiled(qwen(2), {.positions = 1024, .chunk = 1, .tokens_per_submission = 8});
  ASSERT_EQ(several.program.loops.size(), 1u);
  const program::Loop& loop = several.program.loops.front();
  EXPECT_EQ(loop.iterations, 8u);
  EXPECT_LE(loop.last - loop.first + 1, one.plan.levels + 4) << listOf(several);
  for (const program::Command& command : several.program.commands) {
    const auto* copy = std::get_if<program::Copy>(&command.action);
    if (copy != nullptr) {
      EXPECT_LE(copy->source.size, 64u) << command.label;
    }
  }
}

/// Copies of the weights in f32 outside of the loop would take more memory than the weights, and twice the time to read.
TEST(DecodePlans, several_tokens_read_weights_as_they_are_stored) {
  for (const char* format : {"bf16", "f16", "int8", "int4"}) {
    LanguageConfig config = qwen(2);
    config.weights = nn::WeightFormat::parse(format).orThrow();
    for (const int64_t sequences : {1, 32}) {
      GeneratorOptions options{.sequences = sequences, .positions = 1024, .chunk = 1, .cache = graph::DType::BF16};
      const uint64_t one = compiled(config, options).plan.workspace_bytes;
      options.tokens_per_submission = 8;
      const passes::Compiled several = compiled(config, options);
      EXPECT_LE(several.plan.workspace_bytes, 2 * one + 65536) << format << " by " << sequences << '\n' << listOf(several);
    }
  }
}

TEST(DecodePlans, windows_and_soft_caps_take_the_template) {
  LanguageConfig config = configOf(tinyJson("gemma2", R"("sliding_window": 3, "attn_logit_softcapping": 20.0)"));
  config.logit_cap = 0;
  ASSERT_GT(config.attention.soft_cap, 0);
  ASSERT_GT(config.layers[0].window, 0);
  const passes::Compiled made = compiled(config, {.positions = 64, .chunk = 1});
  EXPECT_EQ(labelled(made, "attend_cache"), std::ssize(config.layers)) << listOf(made);
  EXPECT_EQ(labelled(made, "tanh"), labelled(made, "gelu_tanh")) << listOf(made);
}

/// Of each head, how the tokens of a chunk look at the positions of the cache.
TEST(DecodePlans, a_chunk_of_a_prompt_keeps_no_scores) {
  LanguageConfig config = configOf(tinyJson("gemma2", R"("sliding_window": 300, "attn_logit_softcapping": 20.0)"));
  config.logit_cap = 0;
  const GeneratorOptions options{.positions = 2048, .chunk = 64};
  const int64_t scores = config.attention.heads * options.chunk * (options.positions + options.chunk);
  const auto planned = [&](std::vector<std::string> disabled) {
    passes::CompileOptions how = onGpu();
    how.disabled = std::move(disabled);
    how.disabled.emplace_back("chainRows");  // so small a model's products would be in few kernels either way
    return passes::compile(detail::withoutCaptures(traced(config, options, options.chunk)), how).orThrow();
  };
  const auto largest = [](const passes::Compiled& compiled) {
    int64_t most = 0;
    for (const program::Buffer& buffer : compiled.program.buffers) {
      if (buffer.role == program::ArenaRole::Workspace) most = std::max(most, buffer.type.shape.elementCount());
    }
    return most;
  };
  const passes::Compiled made = planned({}), products = planned({"template:chunk_attention"});
  EXPECT_EQ(labelled(made, "attend_chunk"), std::ssize(config.layers)) << listOf(made);
  EXPECT_LT(largest(made), scores / 8);
  EXPECT_GE(largest(products), scores);
  EXPECT_GE(products.plan.dispatches, made.plan.dispatches + 3 * config.layers.size()) << listOf(products);
  EXPECT_GE(products.plan.levels, made.plan.levels + 3 * config.layers.size()) << listOf(products);
  EXPECT_GE(movedBytes(products), 2 * movedBytes(made));
}

/// Wide enough that its products are sums by columns, with norms beside them and in the order of rotary positions.
std::vector<LanguageConfig> wideConfigs() {
  std::vector<LanguageConfig> all;
  for (const char* family : {"qwen2", "gemma2"}) {
    all.push_back(configOf(fmt::format(R"({{"model_type": "{}", "vocab_size": 300, "hidden_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 320, "max_position_embeddings": 32,
        "sliding_window": 3}})",
                                       family)));
  }
  return all;
}

/// Its limits are those of CPU drivers, too.
program::DeviceProfile largeProfile() {
  program::DeviceProfile profile = program::findProfile("portable").orThrow();
  profile.name = "large";
  profile.max_workgroup_invocations = profile.max_workgroup_size_x = 1024;
  profile.max_storage_buffers = 32;
  profile.parallel_units = 132;
  return profile;
}

/// Of runs of so many tokens, one after the other.
std::vector<std::vector<double>> logitsOf(GraphRunner& runner, int64_t runs, int64_t tokens) {
  std::vector<std::vector<double>> all;
  for (int64_t run = 0; run < runs; ++run) {
    std::vector<double> ids;
    for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<double>((7 + 40 * (run * tokens + i)) % 300));
    const ValueMap inputs{{"ids", ids}, {"at", {static_cast<double>(run * tokens)}}, {"count", {static_cast<double>(tokens)}}};
    all.push_back(runner.step(inputs).orThrow().at({OutputKind::Capture, "logits"}));
  }
  return all;
}

/// Weights in fewer bits, which are no parameters, by name: numbers that bf16 has, or words of any bits and their scales.
ValueMap packedWeights(const graph::Graph& graph) {
  ValueMap values;
  for (const graph::NodeId id : graph.body().nodes) {
    if (graph::leafKind(graph[id]) != graph::LeafKind::State) continue;
    const graph::TensorType& type = graph.typeOf(graph[id].results[0]);
    const auto name = graph[id].attributes.get<std::string>("name");
    const bool is_scale = name.ends_with("_scales"), is_word = name.ends_with("_words");
    if (!graph::isPacked(type.dtype) && !is_scale && !is_word) continue;
    std::vector<double>& one = values[name];
    for (int64_t i = 0; i < type.shape.elementCount(); ++i) {
      const auto drawn = static_cast<uint32_t>(i * 7919 + std::ssize(values));
      const double word = drawn * 2654435761U, number = drawn % 129;
      // Scales in f32 are of integers of 8 bits, which are 16 times as large as those of 4.
      const double scale = (number + 1) / (type.dtype == graph::DType::F32 ? 262144 : 16384);
      one.push_back(is_word ? word : is_scale ? scale : (number - 64) / 512);
    }
  }
  return values;
}

/// Logits of a model with random weights on devices beside those of the evaluator.
void expectRight(const LanguageConfig& config, const GeneratorOptions& options, const program::DeviceProfile& profile,
                 const std::vector<std::string>& devices, const std::vector<std::string>& disabled = {}) {
  passes::CompileOptions how;
  how.templates = detail::templateSource();
  how.disabled = disabled;
  const graph::Graph graph = traced(config, options, options.chunk);
  ValueMap values;
  for (const auto& [name, its] : testing::randomValues(config)) {
    std::vector<double>& one = values["model." + name];
    for (const float x : its) one.push_back(static_cast<double>(x) * (its.size() > 2048 ? 0.2F : 1.0F));
  }
  const graph::ParameterLayout layout = graph::layoutParameters(graph.parameters);
  const auto evaluator = makeEvaluatingRunner(graph, how).orThrow();
  ASSERT_TRUE(writeParameters(*evaluator, layout, values));
  const ValueMap packed = packedWeights(graph);
  ASSERT_EQ(packed.empty(), config.weights.isF32());
  for (const auto& [name, its] : packed) ASSERT_TRUE(evaluator->writeState(name, its));
  const int64_t runs = options.positions / options.chunk / 4;
  const std::vector<std::vector<double>> want = logitsOf(*evaluator, runs, options.chunk);
  for (const std::string& device : devices) {
    const auto runner = makeDeviceRunner(graph, how, profiledDevice(device, profile)).orThrow();
    ASSERT_TRUE(writeParameters(*runner, layout, values));
    for (const auto& [name, its] : packed) ASSERT_TRUE(runner->writeState(name, its));
    const std::vector<std::vector<double>> got = logitsOf(*runner, runs, options.chunk);
    for (size_t at = 0; at < want.size(); ++at) {
      double most = 0, error = 0;
      for (size_t i = 0; i < want[at].size(); ++i) {
        most = std::max(most, std::abs(want[at][i]));
        error = std::max(error, std::abs(got[at].at(i) - want[at][i]));
      }
      EXPECT_LT(error, 1e-5 * most) << config.family << " on " << device << " at " << at;
    }
  }
}

TEST(DecodePlans, tokens_are_right_as_gpus_compute_them) {
  for (const LanguageConfig& config : wideConfigs()) expectRight(config, {.positions = 16, .chunk = 1}, largeProfile(), testing::devices());
}

/// Sums by rows, with norms and rotary positions beside them. With few units, lanes have several rows.
TEST(DecodePlans, tokens_of_weights_in_16_bits_are_right_as_gpus_compute_them) {
  for (LanguageConfig config : wideConfigs()) {
    config.weights = nn::WeightFormat::parse("bf16").orThrow();
    expectRight(config, {.positions = 16, .chunk = 1}, largeProfile(), testing::devices());
    program::DeviceProfile few = largeProfile();
    few.parallel_units = 4;
    few.subgroup_size = 32;
    few.subgroups = few.fixed_subgroups = true;
    expectRight(config, {.positions = 16, .chunk = 1}, few, {"reference"});
  }
}

/// Sums by rows that unpack integers where they read them.
TEST(DecodePlans, tokens_of_quantised_weights_are_right_as_gpus_compute_them) {
  program::DeviceProfile profile = largeProfile(), few = largeProfile();
  profile.packed_dot = few.packed_dot = true;
  few.parallel_units = 4;
  few.subgroup_size = 32;
  few.subgroups = few.fixed_subgroups = true;
  for (LanguageConfig config : wideConfigs()) {
    for (const char* format : {"int8", "int4"}) {
      config.weights = nn::WeightFormat::parse(format).orThrow();
      expectRight(config, {.positions = 16, .chunk = 1}, profile, testing::devices());
      expectRight(config, {.positions = 16, .chunk = 1}, few, {"reference"});
      expectRight(config, {.positions = 16, .chunk = 1}, few, {"reference"}, {"thinProducts"});
    }
  }
}

TEST(DecodePlans, tokens_are_right_where_attention_turns_its_queries) {
  expectRight(wideConfigs().front(), {.positions = 16, .chunk = 1}, largeProfile(), {"reference"}, {"reorderSums"});
}

/// The reference has any subgroups.
TEST(DecodePlans, chunks_are_right_as_gpus_compute_them) {
  program::DeviceProfile profile = largeProfile();
  profile.subgroup_size = 32;
  profile.subgroups = profile.fixed_subgroups = true;
  for (const LanguageConfig& config : wideConfigs()) {
    const GeneratorOptions options{.positions = 144, .chunk = 18};
    passes::CompileOptions how = onGpu();
    how.profile = profile;
    EXPECT_EQ(labelled(passes::compile(traced(config, options, options.chunk), how).orThrow(), "attend_chunk"), std::ssize(config.layers));
    expectRight(config, options, profile, {"reference"});
  }
}

/// Dispatches of the kernels by matrix units that take bf16 as it is.
int64_t dispatchesInBf16(const GeneratorOptions& options, nn::WeightFormat format, std::optional<DType> low) {
  LanguageConfig config = qwen(2);
  config.weights = format;
  passes::CompileOptions gpu = onGpu();
  gpu.profile.f16 = gpu.profile.packed_dot = true;
  gpu.profile.matrix_f16 = gpu.profile.matrix_bf16 = {.m = 16, .n = 16, .k = 16};
  gpu.low = low;
  const passes::Form form = passes::compileTo(passes::Stage::Planned, detail::withoutCaptures(traced(config, options)), gpu).orThrow();
  const auto& program = std::get<program::Program>(form);
  return std::ranges::count_if(program.commands, [&](const program::Command& command) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) return false;
    const auto& code = program.kernels[dispatch->kernel.index()].code;
    const auto* symbolic = std::get_if<program::SymbolicKernel>(&code);
    const auto* plan = symbolic == nullptr ? nullptr : std::get_if<program::TemplatePlan>(&symbolic->plan);
    return plan != nullptr && plan->name == "matrix_tiled" && plan->overrides.at("brain") == 1;
  });
}

// Gate, up and down of each layer, and the head; the others are too small.
TEST(DecodePlans, batches_in_bf16_go_over_matrix_units) {
  const GeneratorOptions batch{.sequences = 32, .positions = 1024, .chunk = 1};
  for (const char* format : {"bf16", "int8", "int4"}) {
    const nn::WeightFormat weights = nn::WeightFormat::parse(format).orThrow();
    EXPECT_EQ(dispatchesInBf16(batch, weights, DType::BF16), 2 * 3 + 1) << format;
    EXPECT_EQ(dispatchesInBf16(batch, weights, {}), 0) << format;
  }
}

}  // namespace
}  // namespace lockstep::llm
