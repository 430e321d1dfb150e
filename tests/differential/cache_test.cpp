// SPDX-License-Identifier: Apache-2.0
// Rows written where a value says, and decoding with a cache of keys and values beside the same without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "examples/models/transformer.h"
#include "frontend/lockstep.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "tests/differential/compare.h"
#include "tests/differential/leaf_values.h"
#include "tests/differential/matrix_devices.h"

namespace lockstep {
namespace {

graph::Graph traced(const Module* model, const std::vector<InputSpec>& inputs, const std::function<Outputs(const Inputs&)>& function) {
  return detail::traceFunction(
      model, inputs, [&](const Module&, const Inputs& in) { return function(in); }, graph::OutputKind::Result, Where::current());
}

std::vector<std::string> everywhere() {
  std::vector<std::string> devices = devicesUnderTest();
  devices.insert(devices.begin(), "evaluate");
  return devices;
}

/// A model of characters with rotary positions: logits of all positions at once, or of one after the other with a cache.
struct Decoder : Module {
  static constexpr int64_t kWords = 11, kWidth = 16, kLayers = 2;
  nn::Embedding tokens{*this, "tokens", kWords, kWidth};
  std::vector<std::unique_ptr<nn::TransformerBlock>> blocks;
  nn::Linear head{*this, "head", kWidth, kWords};
  DType kept = DType::F32;  ///< of the caches

  Decoder() {
    const nn::TransformerBlockOptions options{.attention = {.kv_heads = 2, .causal = true, .rope = RopeOptions{}}};
    for (int64_t i = 0; i < kLayers; ++i)
      blocks.push_back(std::make_unique<nn::TransformerBlock>(*this, "b" + std::to_string(i), kWidth, 4, options));
  }
  Tensor operator()(Tensor x) const {
    x = tokens(x);
    for (const auto& block : blocks) x = (*block)(x);
    return head(x);
  }
  Tensor step(Tensor x, std::vector<nn::KvCache>& caches, Tensor at) const {
    x = tokens(x);
    for (size_t i = 0; i < blocks.size(); ++i) x = (*blocks[i])(x, caches[i], at);
    return head(x);
  }
  /// `count` tokens after the prompt [B, P], the likeliest each; [B, count].
  Tensor generate(Tensor prompt, int64_t count) const {
    const int64_t last = prompt.extent(1) - 1;
    return generateFrom(prompt, narrow(prompt, 1, last, 1), zeros({}, DType::I32) + last, count);
  }
  /// The same after the first lengths[b] tokens of each prompt; what comes after them is not seen.
  Tensor generate(Tensor prompt, Tensor lengths, int64_t count) const {
    return generateFrom(prompt, gather(prompt, 1, expand_dims(lengths - 1, 1)), lengths - 1, count);
  }
  /// The prompts `known` [B, K] go in at once, then the tokens `last` [B, 1] of them again, at the positions `at`, i32[] or i32[B].
  Tensor generateFrom(Tensor known, Tensor last, Tensor at, int64_t count) const {
    std::vector<nn::KvCache> caches;
    for (const auto& block : blocks) caches.push_back(block->attn.cache({known.extent(0)}, known.extent(1) + count, kept));
    step(known, caches, zeros({}, DType::I32));
    std::vector<Tensor> carry{last};
    for (const nn::KvCache& cache : caches) carry.insert(carry.end(), {cache.keys, cache.values});
    const auto body = [&](const std::vector<Tensor>& now, const std::vector<Tensor>& place) -> LoopStep {
      std::vector<nn::KvCache> inside;
      for (size_t i = 1; i < now.size(); i += 2) inside.push_back({now[i], now[i + 1]});
      const Tensor next = expand_dims(argmax(squeeze(step(now[0], inside, at + place[0]), 1), -1), 1);
      LoopStep made{{next}, {next}};
      for (const nn::KvCache& cache : inside) made.carry.insert(made.carry.end(), {cache.keys, cache.values});
      return made;
    };
    const Tensor made = scan(body, carry, {arange(count)}).results[0];
    return permute(squeeze(made, 2), {1, 0});
  }
};

/// What writes as much as a cache are so many updates of rows, each of which reads no more than the rows and their places, and so writes no
/// more. Of a program with loops, in these: before them a cache is made.
void expectRowUpdates(const program::Program& made, uint64_t cache, uint64_t most_read, size_t count, const std::string& what) {
  size_t updates = 0;
  for (const program::Command& command : made.commands) {
    if (!made.loops.empty() && made.loopOf(command.level) == nullptr) continue;
    uint64_t read = 0;
    bool writes_cache = false;
    for (const program::Range& range : accesses(command)) {
      if (range.access == kernel::Access::Read) read += range.size;
      writes_cache = writes_cache || (range.access != kernel::Access::Read && range.size >= cache);
    }
    if (!writes_cache) continue;
    ++updates;
    EXPECT_EQ(command.label, "update_rows") << what;
    EXPECT_LE(read, most_read) << what;
  }
  EXPECT_EQ(updates, count) << what;
}

/// What decoding with a cache gives is what the model says of all tokens so far.
TEST(Cache, decoding_equals_the_model_without_a_cache) {
  Decoder model;
  constexpr int64_t kRows = 3, kPrompt = 4, kCount = 9;
  const graph::Graph cached =
      traced(&model, {{"prompt", i32(kRows, kPrompt)}}, [&](const Inputs& in) { return Outputs(model.generate(in["prompt"], kCount)); });
  const graph::Graph whole =
      traced(&model, {{"x", i32(kRows, kPrompt + kCount - 1)}}, [&](const Inputs& in) { return Outputs(argmax(model(in["x"]), -1)); });
  graph::LeafValues values = leafValues(cached, 0.5);
  values["prompt"].data = {1, 2, 3, 4, 9, 8, 7, 6, 0, 0, 10, 5};
  for (const std::string& device : everywhere()) {
    const std::vector<double> made = runGraph(cached, values, {.device = device, .opened = openedDevice(device)})[0].data;
    graph::LeafValues of_whole = values;
    std::vector<double> x;
    for (int64_t row = 0; row < kRows; ++row) {
      x.insert(x.end(), values["prompt"].data.begin() + row * kPrompt, values["prompt"].data.begin() + (row + 1) * kPrompt);
      x.insert(x.end(), made.begin() + row * kCount, made.begin() + (row + 1) * kCount - 1);
    }
    of_whole["x"] = {i32(kRows, kPrompt + kCount - 1), x};
    of_whole.erase("prompt");
    const std::vector<double> said = runGraph(whole, of_whole, {.device = device, .opened = openedDevice(device)})[0].data;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(made[static_cast<size_t>(row * kCount + i)], said[static_cast<size_t>(row * (kPrompt + kCount - 1) + kPrompt - 1 + i)])
            << device << ": token " << i << " of row " << row;
      }
    }
  }
}

/// Caches of 16 bits are read as they are: no command of the loop writes all of one, and each takes half the memory.
TEST(Cache, of_16_bits_takes_half_the_memory) {
  constexpr int64_t kRows = 3, kCount = 256;
  for (const DType low : {DType::BF16, DType::F16}) {
    Decoder model;
    model.kept = low;
    const graph::Graph graph =
        traced(&model, {{"prompt", i32(kRows, 1)}}, [&](const Inputs& in) { return Outputs(model.generate(in["prompt"], kCount)); });
    passes::CompileOptions options;
    options.profile = program::findProfile("portable").orThrow();
    options.templates = detail::templateSource();
    options.disabled = {"mergeDispatches"};
    const program::Program made = passes::compile(graph, options).orThrow().program;
    const uint64_t cache = kRows * 2 * (kCount + 1) * 4 * sizeof(uint16_t), row = kRows * 2 * 4 * sizeof(uint16_t);
    expectRowUpdates(made, cache, row + 4, 2U * Decoder::kLayers, std::string(toString(low)));
    for (const program::Command& command : made.commands) {
      if (made.loopOf(command.level) == nullptr) continue;
      for (const program::Range& range : accesses(command)) EXPECT_LE(range.size, cache) << command.label;
    }
  }
}

/// Rounded keys and values move a logit by about their rounding.
TEST(Cache, of_16_bits_gives_the_logits_to_its_rounding) {
  constexpr int64_t kRows = 2, kLength = 40;
  Decoder model;
  const auto graphOf = [&](DType kept) {
    return traced(&model, {{"x", i32(kRows, kLength)}}, [&](const Inputs& in) {
      std::vector<nn::KvCache> caches;
      for (const auto& block : model.blocks) caches.push_back(block->attn.cache({kRows}, 64, kept));
      model.step(narrow(in["x"], 1, 0, kLength - 1), caches, zeros({}, DType::I32));
      return Outputs(model.step(narrow(in["x"], 1, kLength - 1, 1), caches, zeros({}, DType::I32) + (kLength - 1)));
    });
  };
  const graph::Graph wide = graphOf(DType::F32), narrow_cache = graphOf(DType::BF16);
  graph::LeafValues values = leafValues(wide, 0.5);
  for (size_t i = 0; i < values["x"].data.size(); ++i) values["x"].data[i] = static_cast<double>(i * 7 % 11);
  const std::vector<graph::Tensor> exact = runGraph(wide, values);
  const std::vector<graph::Tensor> rounded = runGraph(narrow_cache, values);
  expectClose(rounded, exact, 2e-2, "rounded");
  EXPECT_NE(rounded[0].data, exact[0].data);
  for (const std::string& device : devicesUnderTest())
    expectClose(runGraph(narrow_cache, values, {.device = device, .opened = openedDevice(device)}), rounded, 4e-3, device);
}

/// In a batch of prompts of different lengths, each sequence is what it is alone.
TEST(Cache, prompts_of_different_lengths_go_on_where_each_ends) {
  Decoder model;
  constexpr int64_t kRows = 3, kPrompt = 5, kCount = 6;
  const std::vector<double> lengths{2, 5, 3};
  const graph::Graph cached = traced(&model, {{"prompt", i32(kRows, kPrompt)}, {"lengths", i32(kRows)}},
                                     [&](const Inputs& in) { return Outputs(model.generate(in["prompt"], in["lengths"], kCount)); });
  graph::LeafValues values = leafValues(cached, 0.5);
  values["prompt"].data = {1, 2, 9, 9, 9, 9, 8, 7, 6, 5, 0, 0, 10, 3, 3};
  values["lengths"].data = lengths;
  for (const std::string& device : everywhere()) {
    const std::vector<double> made = runGraph(cached, values, {.device = device, .opened = openedDevice(device)})[0].data;
    for (size_t row = 0; row < lengths.size(); ++row) {
      const auto length = static_cast<int64_t>(lengths[row]);
      const graph::Graph whole =
          traced(&model, {{"x", i32(1, length + kCount - 1)}}, [&](const Inputs& in) { return Outputs(argmax(model(in["x"]), -1)); });
      graph::LeafValues alone = values;
      const auto prompt = values["prompt"].data.begin() + static_cast<int64_t>(row) * kPrompt;
      const auto after = made.begin() + static_cast<int64_t>(row) * kCount;
      std::vector<double> x(prompt, prompt + length);
      x.insert(x.end(), after, after + kCount - 1);
      alone.erase("prompt");
      alone.erase("lengths");
      alone["x"] = {i32(1, length + kCount - 1), x};
      const std::vector<double> said = runGraph(whole, alone, {.device = device, .opened = openedDevice(device)})[0].data;
      for (int64_t i = 0; i < kCount; ++i)
        EXPECT_EQ(after[i], said[static_cast<size_t>(length - 1 + i)]) << device << ": token " << i << " of row " << row;
    }
  }
}

/// The networks of the addition and makemore samples, a token at a time and all at once: the same logits.
TEST(Cache, logits_of_the_samples_are_those_without_a_cache) {
  constexpr int64_t kRows = 3;
  for (const examples::TransformerShape& shape : {examples::TransformerShape{}, {.vocabulary = 27, .layers = 2, .sequence = 17}}) {
    const examples::Transformer model(shape);
    const int64_t length = shape.sequence - 1;
    const std::vector<InputSpec> inputs{{"tokens", i32(kRows, length)}};
    const graph::Graph whole = traced(&model, inputs, [&](const Inputs& in) { return Outputs(model(in["tokens"])); });
    const graph::Graph cached = traced(&model, inputs, [&](const Inputs& in) {
      std::vector<Tensor> carry;
      for (const nn::KvCache& cache : model.caches(kRows, length)) carry.insert(carry.end(), {cache.keys, cache.values});
      const auto step = [&](const std::vector<Tensor>& now, const std::vector<Tensor>& row) -> LoopStep {
        examples::Transformer::Caches inside;
        for (size_t i = 0; i < now.size(); i += 2) inside.push_back({now[i], now[i + 1]});
        LoopStep made{{}, {squeeze(model(expand_dims(row[0], 1), inside, row[1]), 1)}};
        for (const nn::KvCache& cache : inside) made.carry.insert(made.carry.end(), {cache.keys, cache.values});
        return made;
      };
      const Tensor by_step = scan(step, carry, {permute(in["tokens"], {1, 0}), arange(length)}).results[0];
      return Outputs(permute(by_step, {1, 0, 2}));
    });
    graph::LeafValues values = leafValues(whole, 0.5);
    for (size_t i = 0; i < values["tokens"].data.size(); ++i)
      values["tokens"].data[i] = static_cast<double>(i * 7 % static_cast<size_t>(shape.vocabulary));
    const std::vector<graph::Tensor> want = runGraph(whole, values);
    for (const std::string& device : everywhere()) {
      expectClose(runGraph(cached, values, {.device = device, .opened = openedDevice(device)}), want, 1e-5, device);
    }
  }
}

/// Of the caches a step writes one row per head, by a command that is there for it alone.
TEST(Cache, a_step_writes_the_rows_of_one_token) {
  Decoder model;
  constexpr int64_t kRows = 3, kCount = 64;
  const graph::Graph graph =
      traced(&model, {{"prompt", i32(kRows, 1)}}, [&](const Inputs& in) { return Outputs(model.generate(in["prompt"], kCount)); });
  for (const std::string_view profile : {"portable", "cpu", "webgpu_default"}) {
    passes::CompileOptions options;
    options.profile = program::findProfile(profile).orThrow();
    options.templates = detail::templateSource();
    options.disabled = {"mergeDispatches"};
    const program::Program made = passes::compile(graph, options).orThrow().program;
    ASSERT_EQ(made.loops.size(), 1U) << profile;
    const uint64_t cache = kRows * 2 * kCount * 4 * sizeof(float), row = kRows * 2 * 4 * sizeof(float);
    expectRowUpdates(made, cache, row + 4, 2U * Decoder::kLayers, std::string(profile));
    // The host gets the tokens, and which one of the prompt is none, with its place.
    uint64_t out = 0;
    for (const program::OutputPort& port : made.outputs) out += made[port.buffer].type.shape.elementCount() * sizeof(int32_t);
    EXPECT_EQ(out, (kRows * kCount + 2) * sizeof(int32_t)) << profile;
  }
}

/// A cache that a forward keeps in buffers is written in its place, too: a run writes the rows of its tokens and the output.
TEST(Cache, in_buffers_is_written_in_its_place) {
  Decoder model;
  constexpr int64_t kRows = 3, kPositions = 256;
  std::vector<std::unique_ptr<Buffer>> kept;
  for (int64_t i = 0; i < 2 * Decoder::kLayers; ++i)
    kept.push_back(std::make_unique<Buffer>(model, "cache" + std::to_string(i), std::vector<int64_t>{kRows, 2, kPositions, 4}));
  const auto step = [&](const Module&, const Inputs& in) {
    std::vector<nn::KvCache> caches;
    for (size_t i = 0; i < kept.size(); i += 2) caches.push_back({*kept[i], *kept[i + 1]});
    const Tensor next = argmax(model.step(in["tokens"], caches, in["at"]), -1);
    for (size_t i = 0; i < caches.size(); ++i) {
      kept[2 * i]->update(caches[i].keys);
      kept[2 * i + 1]->update(caches[i].values);
    }
    return Outputs(next);
  };
  const graph::Graph graph = detail::traceFunction(&model, {{"tokens", i32(kRows, 1)}, {"at", i32(kRows)}}, step, graph::OutputKind::Result,
                                                   Where::current(), true);
  for (const std::string_view profile : {"portable", "cpu", "webgpu_default"}) {
    passes::CompileOptions options;
    options.profile = program::findProfile(profile).orThrow();
    options.templates = detail::templateSource();
    options.disabled = {"mergeDispatches"};
    const program::Program made = passes::compile(graph, options).orThrow().program;
    const uint64_t cache = kRows * 2 * kPositions * 4 * sizeof(float), rows = kRows * 2 * 4 * sizeof(float);
    expectRowUpdates(made, cache, rows + kRows * sizeof(int32_t), 2U * Decoder::kLayers, std::string(profile));
    uint64_t out = 0;
    for (const program::OutputPort& port : made.outputs) out += made[port.buffer].type.shape.elementCount() * sizeof(int32_t);
    EXPECT_EQ(out, kRows * sizeof(int32_t)) << profile << ": the tokens, and no check of places, which are given";
  }
}

/// Mixed precision leaves the caches as they are: no step writes as much as one of them but in its place.
TEST(Cache, no_step_rounds_all_of_it) {
  Decoder model;
  constexpr int64_t kRows = 3, kCount = 256;
  const graph::Graph graph =
      traced(&model, {{"prompt", i32(kRows, 2)}}, [&](const Inputs& in) { return Outputs(model.generate(in["prompt"], kCount)); });
  for (const DType low : {DType::BF16, DType::F16}) {
    passes::CompileOptions options;
    options.profile = program::findProfile("portable").orThrow();
    options.templates = detail::templateSource();
    options.low = low;
    const program::Program made = passes::compile(graph, options).orThrow().program;
    const uint64_t packed_cache = kRows * 2 * kCount * 4 * sizeof(uint16_t);
    size_t in_loop = 0;
    for (const program::Command& command : made.commands) {
      if (made.loopOf(command.level) == nullptr) continue;
      ++in_loop;
      for (const program::Range& range : accesses(command)) {
        if (range.access == kernel::Access::Read || command.label.find("update_rows") != std::string::npos) continue;
        EXPECT_LT(range.size, packed_cache) << command.label;
      }
    }
    EXPECT_GT(in_loop, 0U);
  }
}

/// One program for all lengths; what lies behind them in the cache is not read.
TEST(Cache, attention_sees_the_positions_that_are_there) {
  struct Empty : Module {
  } model;
  constexpr int64_t kRows = 3, kPositions = 4096;
  const graph::Graph graph =
      traced(&model,
             {{"q", f32(kRows, 4, 2, 8)}, {"k", f32(kRows, 2, kPositions, 8)}, {"v", f32(kRows, 2, kPositions, 8)}, {"length", i32(kRows)}},
             [](const Inputs& in) { return Outputs(scaled_dot_product_attention(in["q"], in["k"], in["v"], {.length = in["length"]})); });
  graph::LeafValues values = leafValues(graph, 0.5);
  const graph::LeafValues given = values;
  std::vector<std::pair<std::string, CompiledGraph>> compiled;
  for (const std::string& device : devicesUnderTest()) {
    const detail::Device gpu = asGpu(*openedDevice(device));
    compiled.emplace_back(device, CompiledGraph(graph, {.device = device, .opened = openedDevice(device)}));
    compiled.emplace_back(device + " as a GPU", CompiledGraph(graph, {.device = device, .opened = &gpu}));
  }
  for (const std::vector<double>& lengths : {std::vector<double>{2, 3, 64}, {4096, 17, 5000}, {1009, 4095, 255}}) {
    values = given;
    values["length"].data = lengths;
    for (const char* name : {"k", "v"}) {
      std::vector<double>& data = values[name].data;
      for (size_t i = 0; i < data.size(); ++i) {
        const auto place = static_cast<double>(i / 8 % kPositions);
        if (place >= lengths[i / (2 * kPositions * 8)]) data[i] = std::numeric_limits<double>::quiet_NaN();
      }
    }
    const std::vector<graph::Tensor> want = runGraph(graph, values);
    EXPECT_TRUE(std::ranges::none_of(want[0].data, [](double x) { return std::isnan(x); }));
    for (auto& [device, on_device] : compiled) expectClose(on_device.run(values), want, 4e-6, device);
  }
}

/// Workgroups of matrix units end with the last key that their queries see.
TEST(Cache, many_queries_by_matrix_units) {
  struct Empty : Module {
  } model;
  constexpr int64_t kRows = 2, kQueries = 259, kPositions = 403;
  const graph::Graph graph =
      traced(&model,
             {{"q", f32(kRows, 4, kQueries, 16)},
              {"k", f32(kRows, 2, kPositions, 16)},
              {"v", f32(kRows, 2, kPositions, 16)},
              {"length", i32(kRows)}},
             [](const Inputs& in) { return Outputs(scaled_dot_product_attention(in["q"], in["k"], in["v"], {.length = in["length"]})); });
  const graph::LeafValues given = leafValues(graph, 0.5);
  std::vector<std::pair<std::string, CompiledGraph>> compiled;
  for (const std::string& device : devicesWithMatrices()) {
    const detail::Device units = withUnits(*openedDevice(device), 8);
    compiled.emplace_back(device, CompiledGraph(graph, {.device = device, .opened = &units}));
  }
  for (const bool has_rest : {false, true}) {
    for (const std::vector<double>& lengths : {std::vector<double>{259, 300}, {403, 321}}) {
      graph::LeafValues values = given;
      values["length"].data = lengths;
      for (const char* name : {"k", "v"}) {
        std::vector<double>& data = values[name].data;
        for (size_t i = 0; has_rest && i < data.size(); ++i) {
          const auto place = static_cast<double>(i / 16 % kPositions);
          if (place >= lengths[i / (2 * kPositions * 16)]) data[i] = std::numeric_limits<double>::quiet_NaN();
        }
      }
      const std::vector<graph::Tensor> want = runGraph(graph, values);
      for (auto& [device, on_device] : compiled) expectClose(on_device.run(values), want, 4e-6, device);
    }
  }
}

/// Without its template, and with more queries than it is for, it is attention with a mask.
TEST(Cache, attention_by_length_is_attention_with_a_mask) {
  struct Empty : Module {
  } model;
  for (const int64_t queries : {1, 5, 33}) {
    const auto specs = [&] {
      return std::vector<InputSpec>{{"q", f32(2, 4, queries, 8)}, {"k", f32(2, 2, 70, 8)}, {"v", f32(2, 2, 70, 6)}, {"length", i32(2)}};
    };
    const auto masked = [&](const Inputs& in) {
      const Tensor first = reshape(in["length"] - queries, {2, 1, 1, 1}), query = reshape(arange(queries), {queries, 1});
      const Tensor mask = where(less_equal(arange(70), first + query), 0.0, -1e30);
      return Outputs(scaled_dot_product_attention(in["q"], in["k"], in["v"], {.mask = mask}));
    };
    const auto bounded = [](const Inputs& in) {
      return Outputs(scaled_dot_product_attention(in["q"], in["k"], in["v"], {.length = in["length"]}));
    };
    const graph::Graph by_mask = traced(&model, specs(), masked), by_length = traced(&model, specs(), bounded);
    graph::LeafValues values = leafValues(by_mask, 0.5);
    values["length"].data = {50, 33};
    const std::vector<graph::Tensor> want = runGraph(by_mask, values);
    for (const std::string& device : everywhere()) {
      for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"template:cached_attention"}})
        expectClose(runGraph(by_length, values, {.device = device, .opened = openedDevice(device), .disable = disabled}), want, 4e-6,
                    device);
    }
  }
}

/// Each version is read before the next one is written.
TEST(Cache, versions_of_a_carry_in_their_order) {
  struct Empty : Module {
  } model;
  const auto function = [](const Inputs& in) {
    const auto body = [](const std::vector<Tensor>& carry, const std::vector<Tensor>& slices) -> LoopStep {
      const Tensor before = sum(carry[0]);
      const Tensor once = write_rows(carry[0], expand_dims(slices[0], 0), slices[1], 0);
      const Tensor between = sum(once * once);
      const Tensor twice = write_rows(once, expand_dims(slices[0] * 3.0, 0), 6 - slices[1], 0);
      return {{twice}, {before, between, sum(twice)}};
    };
    const LoopResult made = scan(body, {in["x"]}, {in["rows"], arange(9)});
    return Outputs{{"x", made.carry[0]}, {"before", made.results[0]}, {"between", made.results[1]}, {"after", made.results[2]}};
  };
  const graph::Graph graph = traced(&model, {{"x", f32(7, 5)}, {"rows", f32(9, 5)}}, function);
  const graph::LeafValues values = leafValues(graph, 0.5);
  const std::vector<graph::Tensor> want = runGraph(graph, values);
  for (const std::string& device : devicesUnderTest()) {
    for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"loops"}, {"fuse", "planBuffers"}})
      expectClose(runGraph(graph, values, {.device = device, .opened = openedDevice(device), .disable = disabled}), want, 1e-6, device);
  }
}

}  // namespace
}  // namespace lockstep
