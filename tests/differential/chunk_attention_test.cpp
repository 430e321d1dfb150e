// SPDX-License-Identifier: Apache-2.0
// Many queries against a cache, with windows and soft caps: the template, by tiles and alone, and the products that it replaces, beside
// f64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

struct Chunk {
  std::string name;
  int64_t heads = 2, kv_heads = 2, queries = 17, keys = 61, width = 8, value_width = 8;
  int64_t window = 0;
  double cap = 0;
  std::vector<double> lengths{61};  ///< of the sequences
};

const std::vector<Chunk> kChunks{
    {.name = "plain"},
    {.name = "window", .heads = 6, .queries = 33, .keys = 129, .width = 5, .value_width = 3, .window = 7, .lengths = {33, 129, 70}},
    {.name = "capped", .heads = 4, .queries = 19, .cap = 2.5, .lengths = {40, 61}},
    {.name = "both",
     .kv_heads = 1,
     .queries = 64,
     .keys = 300,
     .width = 64,
     .value_width = 64,
     .window = 100,
     .cap = 20,
     .lengths = {64, 211}},
    {.name = "long",
     .heads = 3,
     .kv_heads = 3,
     .queries = 37,
     .keys = 1061,
     .width = 12,
     .value_width = 20,
     .window = 531,
     .cap = 1.5,
     .lengths = {1003}},
    {.name = "long_plain", .queries = 40, .keys = 1030, .width = 16, .value_width = 16, .lengths = {1030, 41}},
    {.name = "window_of_one", .queries = 18, .keys = 23, .window = 1, .lengths = {20}},
    {.name = "many_queries", .queries = 300, .keys = 310, .width = 4, .value_width = 4, .window = 290, .lengths = {301}},
    {.name = "window_beyond_all", .queries = 31, .keys = 64, .window = 1 << 20, .lengths = {50}},
};

struct Made {
  graph::Graph graph;
  graph::LeafValues leaves;
};

/// Rows of the cache past the length are NaN: nobody may see them.
Made make(const Chunk& c, bool hidden_are_numbers = false) {
  std::mt19937 random(3);
  graph::Builder b;
  Made made;
  std::vector<graph::ValueId> operands;
  const auto add = [&](const char* name, const graph::Tensor& tensor) {
    made.leaves.emplace(name, tensor);
    operands.push_back(graph::testing::addInput(b, name, tensor.type));
  };
  const auto sequences = static_cast<int64_t>(c.lengths.size());
  add("q", graph::testing::randomTensor({graph::DType::F32, {sequences, c.heads, c.queries, c.width}}, -1.5, 1.5, random));
  for (const auto& [name, width] : {std::pair("k", c.width), std::pair("v", c.value_width)}) {
    graph::Tensor cache = graph::testing::randomTensor({graph::DType::F32, {sequences, c.kv_heads, c.keys, width}}, -1.5, 1.5, random);
    for (int64_t i = 0; i < cache.type.shape.elementCount() && !hidden_are_numbers; ++i) {
      const auto key = static_cast<double>(i / width % c.keys);
      if (key >= c.lengths[static_cast<size_t>(i / width / c.keys / c.kv_heads)])
        cache.data[static_cast<size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
    }
    add(name, cache);
  }
  add("length", {{graph::DType::I32, {sequences}}, c.lengths});
  graph::Attributes attributes{{"scale", 0.35}};
  if (c.window > 0) attributes.set("window", c.window);
  if (c.cap > 0) attributes.set("soft_cap", c.cap);
  b.output(graph::OutputKind::Result, "y", b.make("cached_attention", operands, attributes));
  made.graph = b.graph();
  return made;
}

/// Commands by the template.
int64_t chunksIn(const graph::Graph& graph, const program::DeviceProfile& profile, std::vector<std::string> disabled = {}) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  options.disabled = std::move(disabled);
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  return std::ranges::count_if(compiled.program.commands,
                               [](const program::Command& command) { return command.label.find("attend_chunk") != std::string::npos; });
}

constexpr double kTolerance = 4e-6;

class ChunkAttention : public ::testing::TestWithParam<Chunk> {};

TEST_P(ChunkAttention, agrees_with_the_evaluator_and_with_products) {
  const Made made = make(GetParam()), numbers = make(GetParam(), true);
  const std::vector<graph::Tensor> want = runGraph(numbers.graph, numbers.leaves);
  for (const std::string& device : devicesUnderTest()) {
    const detail::Device gpu = asGpu(*openedDevice(device));
    if (gpu.chosen.info.profile.fixed_subgroups) {
      EXPECT_EQ(chunksIn(made.graph, gpu.chosen.info.profile), 1) << device;
      EXPECT_EQ(chunksIn(made.graph, gpu.chosen.info.profile, {"template:chunk_attention"}), 0) << device;
    }
    expectClose(runGraph(made.graph, made.leaves, {.device = device, .opened = &gpu}), want, kTolerance, device + " as a GPU");
    expectClose(runGraph(made.graph, made.leaves, {.device = device, .opened = openedDevice(device), .prefer = {"chunk_attention"}}), want,
                kTolerance, device + " by streams");
    expectClose(runGraph(numbers.graph, numbers.leaves, {.device = device, .opened = &gpu, .disable = {"template:chunk_attention"}}), want,
                kTolerance, device + " by products");
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, ChunkAttention, ::testing::ValuesIn(kChunks), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
