// SPDX-License-Identifier: Apache-2.0
// Attention by its templates and by products and a softmax, forward, backward and twice backward, beside the f64 evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "frontend/train/graph_runner.h"
#include "passes/graph/grad.h"
#include "tests/differential/compare.h"
#include "tests/differential/matrix_devices.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::Builder;
using graph::OutputKind;
using graph::Shape;
using graph::ValueId;
using graph::testing::addInput;
using graph::testing::weightedSum;

struct AttentionCase {
  std::string name;
  std::vector<int64_t> leading;
  int64_t heads = 1, kv_heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
  bool causal = true;
  int64_t offset = 0;
  std::optional<Shape> mask = {};
  graph::DType low = graph::DType::F32;  ///< of q, k and v, and of products in mixed precision
};
void PrintTo(const AttentionCase& one, std::ostream* out) { *out << one.name; }

/// q, k and v are inputs, and the mask a constant of a gradient. The loss weighs both results at random.
struct Model {
  explicit Model(const AttentionCase& c) {
    const auto shaped = [&](int64_t heads, int64_t rows, int64_t width) {
      std::vector<int64_t> extents = c.leading;
      extents.insert(extents.end(), {heads, rows, width});
      return graph::TensorType{graph::DType::F32, Shape(extents)};
    };
    std::vector<ValueId> operands{add("q", shaped(c.heads, c.queries, c.width)), add("k", shaped(c.kv_heads, c.keys, c.width)),
                                  add("v", shaped(c.kv_heads, c.keys, c.value_width))};
    graph::Attributes attributes{{"causal", c.causal}, {"offset", c.offset}, {"scale", 1 / std::sqrt(static_cast<double>(c.width))}};
    if (c.low != graph::DType::F32) {
      attributes.set(std::string(graph::kLowAttribute), c.low);
      for (ValueId& operand : operands) {
        const ValueId rounded = builder.make("cast", {operand}, {{"dtype", c.low}});
        operand = builder.make("cast", {rounded}, {{"dtype", graph::DType::F32}});
      }
    }
    if (c.mask) operands.push_back(add("mask", {graph::DType::F32, *c.mask}));
    results = builder.makeAll("scaled_dot_product_attention", operands, attributes);
  }
  ValueId add(const std::string& name, const graph::TensorType& type) {
    leaves.emplace(name, graph::testing::randomTensor(type, -1.5, 1.5, random));
    return addInput(builder, name, type);
  }
  /// With the loss and without gradients.
  graph::Graph lossOnly() {
    Builder copy(builder.graph());
    const ValueId loss =
        copy.add(weightedSum(copy, results[0], "weight_out", leaves, random), weightedSum(copy, results[1], "weight_lse", leaves, random));
    copy.output(OutputKind::Loss, "loss", loss);
    return copy.take();
  }
  std::mt19937 random{7};
  Builder builder;
  graph::LeafValues leaves;
  std::vector<ValueId> results;
};

const std::vector<std::string> kWrt{"q", "k", "v"};

detail::Device withManyUnits(detail::Device device) {
  device.chosen.info.profile.parallel_units = 4096;
  return device;
}

class Attention : public ::testing::TestWithParam<AttentionCase> {
 protected:
  /// Both ways on each device beside the evaluator.
  static void check(const graph::Graph& graph, const graph::LeafValues& leaves, GraphRunOptions options, size_t skipped, double tolerance) {
    std::vector<graph::Tensor> want = runGraph(graph, leaves, options);
    want.erase(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(skipped));
    const auto expect = [&](const char* what) {
      std::vector<graph::Tensor> got = runGraph(graph, leaves, options);
      got.erase(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(skipped));
      expectClose(got, want, tolerance, fmt::format("{} on {}", what, options.device));
    };
    for (const std::string& device : devicesUnderTest()) {
      options.device = device;
      options.opened = openedDevice(device);
      options.disable = {"template:attention"};
      expect("products");
      options.disable = {};
      options.prefer = {"short_attention"};
      expect("template of short sequences");
      options.prefer = {"attention"};
      expect("template");
      detail::Device gpu = asGpu(*openedDevice(device));
      gpu.chosen.info.profile.matrix_f16 = gpu.chosen.info.profile.matrix_bf16 = {};
      options.opened = &gpu;
      if (gpu.chosen.info.profile.fixed_subgroups) expect("tiles");
      // With more units than there is work for, a workgroup takes fewer rows, and its invocations share out the other side.
      const detail::Device wide = withManyUnits(gpu);
      options.opened = &wide;
      if (gpu.chosen.info.profile.fixed_subgroups) expect("tiles in shares");
      options.prefer = {};
    }
  }
};

/// By matrix units, in two parts of f16 or, in mixed precision, as it is.
class AttentionByUnits : public ::testing::TestWithParam<AttentionCase> {
 protected:
  static void check(const graph::Graph& graph, const graph::LeafValues& leaves, GraphRunOptions options, size_t skipped, double tolerance) {
    std::vector<graph::Tensor> want = runGraph(graph, leaves, options);
    want.erase(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(skipped));
    options.prefer = {"attention"};
    for (const std::string& device : devicesWithMatrices()) {
      const detail::Device gpu = withUnits(*openedDevice(device), 6);
      options.device = device;
      options.opened = &gpu;
      std::vector<graph::Tensor> got = runGraph(graph, leaves, options);
      got.erase(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(skipped));
      expectClose(got, want, tolerance, fmt::format("on {}", device));
    }
  }
};

TEST_P(AttentionByUnits, results_agree_with_the_evaluator) {
  Model model(GetParam());
  for (const ValueId result : model.results) model.builder.output(OutputKind::Result, fmt::format("y{}", result.value), result);
  check(model.builder.graph(), model.leaves, {}, 0, GetParam().low == graph::DType::F32 ? 2e-6 : 6e-3);
}

TEST_P(AttentionByUnits, gradients_agree_with_the_evaluator) {
  Model model(GetParam());
  const graph::Graph graph = model.lossOnly();
  check(graph, model.leaves, {.gradients = true, .wrt = kWrt}, 1, GetParam().low == graph::DType::F32 ? 6e-6 : 2e-2);
}

/// An element that is not finite, or too large for parts of f16, changes the rows that see it and no others.
TEST_P(AttentionByUnits, what_is_hidden_does_not_count) {
  const AttentionCase& c = GetParam();
  if (!c.causal || c.mask || c.offset >= 40) GTEST_SKIP() << "all queries see key 40";
  for (const double special : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 3e30}) {
    for (const char* name : {"k", "v"}) {
      Model model(c);
      for (const ValueId result : model.results) model.builder.output(OutputKind::Result, fmt::format("y{}", result.value), result);
      // Key 40 of the first head is seen from query 40 - offset on.
      model.leaves.at(name).data[static_cast<size_t>(40 * (name[0] == 'k' ? c.width : c.value_width) + 1)] = special;
      const std::vector<graph::Tensor> want = runGraph(model.builder.graph(), model.leaves);
      for (const std::string& device : devicesWithMatrices()) {
        const detail::Device gpu = withUnits(*openedDevice(device), 6);
        const std::vector<graph::Tensor> got =
            runGraph(model.builder.graph(), model.leaves, {.device = device, .opened = &gpu, .prefer = {"attention"}});
        for (int64_t i = 0; i < (40 - c.offset) * c.value_width; ++i) {
          const auto at = static_cast<size_t>(i);
          ASSERT_NEAR(got[0].data[at], want[0].data[at], 6e-3) << device << ' ' << name << " of " << special << ", element " << i;
        }
        for (int64_t i = (40 - c.offset) * c.value_width; i < c.queries * c.value_width; ++i) {
          const auto at = static_cast<size_t>(i);
          if (!std::isnan(special)) continue;
          ASSERT_EQ(std::isnan(got[0].data[at]), std::isnan(want[0].data[at])) << device << ' ' << name << ", element " << i;
        }
      }
    }
  }
}

/// A query whose only score is below f32 has NaN or the value that it sees, but nothing of the values that it does not.
TEST(AttentionByUnitsAlone, scores_below_f32_show_no_hidden_values) {
  AttentionCase c{.name = "", .leading = {}, .queries = 65, .keys = 65, .width = 64, .value_width = 64, .low = graph::DType::BF16};
  c.causal = true;
  Model model(c);
  model.builder.output(OutputKind::Result, "y", model.results[0]);
  model.leaves.at("q").data[1] = 1e25;
  model.leaves.at("k").data[1] = -1e25;
  const std::vector<double> values = model.leaves.at("v").data;
  for (const std::string& device : devicesWithMatrices()) {
    const detail::Device gpu = withUnits(*openedDevice(device), 6);
    const std::vector<graph::Tensor> got =
        runGraph(model.builder.graph(), model.leaves, {.device = device, .opened = &gpu, .prefer = {"attention"}});
    for (size_t i = 0; i < 64; ++i) {
      const double element = got[0].data[i];
      EXPECT_TRUE(std::isnan(element) || std::abs(element - values[i]) < 6e-3) << device << ": element " << i << " is " << element;
    }
  }
}

/// The same of gradients: those of queries that do not see the key are as they were.
TEST_P(AttentionByUnits, gradients_of_what_does_not_see_it_stay) {
  const AttentionCase& c = GetParam();
  if (!c.causal || c.mask || c.offset >= 40) GTEST_SKIP() << "all queries see key 40";
  for (const char* name : {"k", "v"}) {
    Model model(c);
    const graph::Graph graph = model.lossOnly();
    model.leaves.at(name).data[static_cast<size_t>(40 * (name[0] == 'k' ? c.width : c.value_width) + 1)] =
        std::numeric_limits<double>::quiet_NaN();
    GraphRunOptions options{.gradients = true, .wrt = kWrt};
    const std::vector<graph::Tensor> want = runGraph(graph, model.leaves, options);
    options.prefer = {"attention"};
    for (const std::string& device : devicesWithMatrices()) {
      const detail::Device gpu = withUnits(*openedDevice(device), 6);
      options.device = device;
      options.opened = &gpu;
      const std::vector<graph::Tensor> got = runGraph(graph, model.leaves, options);
      const int64_t seeing = (40 - c.offset) * c.width;
      for (int64_t i = 0; i < c.queries * c.width; ++i) {
        const auto at = static_cast<size_t>(i);
        if (i < seeing) {
          ASSERT_NEAR(got[1].data[at], want[1].data[at], 2e-2) << device << ' ' << name << ", element " << i;
        } else {
          ASSERT_EQ(std::isnan(got[1].data[at]), std::isnan(want[1].data[at])) << device << ' ' << name << ", element " << i;
        }
      }
    }
  }
}

std::vector<AttentionCase> unitCases() {
  const AttentionCase odd{
      .name = "odd", .leading = {1}, .heads = 2, .queries = 50, .keys = 70, .width = 37, .value_width = 43, .offset = 20};
  AttentionCase odd_low = odd;
  odd_low.name = "odd_bf16";
  odd_low.low = graph::DType::BF16;
  const AttentionCase masked{.name = "masked",
                             .leading = {2},
                             .heads = 2,
                             .kv_heads = 2,
                             .queries = 33,
                             .keys = 40,
                             .width = 8,
                             .value_width = 24,
                             .causal = false,
                             .mask = Shape{33, 40}};
  AttentionCase masked_low = masked;
  masked_low.name = "masked_f16";
  masked_low.low = graph::DType::F16;
  AttentionCase grouped{
      .name = "grouped", .leading = {}, .heads = 4, .kv_heads = 2, .queries = 130, .keys = 130, .width = 64, .value_width = 64};
  AttentionCase grouped_low = grouped;
  grouped_low.name = "grouped_bf16";
  grouped_low.low = graph::DType::BF16;
  AttentionCase wide{
      .name = "wide_bf16", .leading = {}, .queries = 70, .keys = 65, .width = 128, .value_width = 96, .low = graph::DType::BF16};
  AttentionCase wide_f32 = wide;
  wide_f32.name = "wide";
  wide_f32.low = graph::DType::F32;
  AttentionCase long_low{.name = "long_bf16",
                         .leading = {},
                         .queries = 150,
                         .keys = 1040,
                         .width = 64,
                         .value_width = 64,
                         .offset = 880,
                         .low = graph::DType::BF16};
  AttentionCase wide_values = wide_f32;
  wide_values.name = "wide_values";
  wide_values.width = 64;
  wide_values.value_width = 128;
  AttentionCase short_values = wide;
  short_values.name = "short_values_bf16";
  short_values.width = 64;
  short_values.value_width = 32;
  return {odd, odd_low, masked, masked_low, grouped, grouped_low, wide, wide_f32, wide_values, short_values, long_low};
}
INSTANTIATE_TEST_SUITE_P(Cases, AttentionByUnits, ::testing::ValuesIn(unitCases()), [](const auto& info) { return info.param.name; });

TEST_P(Attention, results_agree_with_the_evaluator) {
  Model model(GetParam());
  for (const ValueId result : model.results) model.builder.output(OutputKind::Result, fmt::format("y{}", result.value), result);
  check(model.builder.graph(), model.leaves, {}, 0, 4e-6);
}

TEST_P(Attention, gradients_agree_with_the_evaluator) {
  Model model(GetParam());
  const graph::Graph graph = model.lossOnly();
  check(graph, model.leaves, {.gradients = true, .wrt = kWrt}, 1, 1e-5);  // the loss is a sum that cancels
}

TEST_P(Attention, second_gradients_agree_with_the_evaluator) {
  if (GetParam().queries * GetParam().keys > 10'000) GTEST_SKIP() << "long ones are checked once";
  Model model(GetParam());
  Result<graph::Graph> first = passes::grad(model.lossOnly(), {.wrt = kWrt});
  ASSERT_TRUE(first.ok()) << toString(first.diagnostics());
  Builder builder(*first);
  std::vector<ValueId> terms;
  for (const graph::Output& output : first->outputs) {
    if (output.kind != OutputKind::Gradient) continue;
    terms.push_back(weightedSum(builder, output.value, "weight_" + output.name, model.leaves, model.random));
  }
  builder.mutableGraph().outputs.clear();
  builder.output(OutputKind::Loss, "loss", builder.add(builder.add(terms[0], terms[1]), terms[2]));
  check(builder.graph(), model.leaves, {.gradients = true, .wrt = kWrt}, 1, 2e-5);
}

std::vector<AttentionCase> attentionCases() {
  return {{.name = "one", .leading = {1}},
          {.name = "two", .leading = {2}, .queries = 2, .keys = 2, .width = 3, .value_width = 5},
          {.name = "three", .leading = {}, .heads = 3, .kv_heads = 3, .queries = 3, .keys = 3, .width = 4, .value_width = 4},
          {.name = "sixteen", .leading = {2}, .heads = 2, .kv_heads = 2, .queries = 16, .keys = 16, .width = 8, .value_width = 8},
          {.name = "full",
           .leading = {2},
           .heads = 3,
           .kv_heads = 3,
           .queries = 33,
           .keys = 65,
           .width = 16,
           .value_width = 16,
           .causal = false},
          {.name = "grouped", .leading = {2}, .heads = 6, .kv_heads = 2, .queries = 65, .keys = 65, .width = 8, .value_width = 12},
          {.name = "cached",
           .leading = {2},
           .heads = 4,
           .kv_heads = 1,
           .queries = 5,
           .keys = 261,
           .width = 32,
           .value_width = 32,
           .offset = 255},
          {.name = "more_queries", .leading = {1}, .queries = 129, .keys = 31, .width = 7, .value_width = 9, .offset = 3},
          {.name = "widest", .leading = {1}, .queries = 17, .keys = 19, .width = 256, .value_width = 256, .causal = false},
          {.name = "uneven_widths", .leading = {1}, .queries = 9, .keys = 21, .width = 1, .value_width = 131, .causal = false},
          {.name = "masked",
           .leading = {2},
           .heads = 2,
           .kv_heads = 2,
           .queries = 33,
           .keys = 40,
           .width = 8,
           .value_width = 8,
           .causal = false,
           .mask = Shape{33, 40}},
          {.name = "masked_heads",
           .leading = {2},
           .heads = 4,
           .kv_heads = 2,
           .queries = 9,
           .keys = 11,
           .width = 8,
           .value_width = 8,
           .offset = 2,
           .mask = Shape{4, 1, 11}},
          {.name = "masked_batch",
           .leading = {3, 2},
           .heads = 2,
           .kv_heads = 1,
           .queries = 9,
           .keys = 11,
           .width = 8,
           .value_width = 8,
           .causal = false,
           .mask = Shape{3, 1, 1, 1, 11}},
          {.name = "long", .leading = {1}, .heads = 2, .kv_heads = 1, .queries = 257, .keys = 257, .width = 64, .value_width = 64}};
}
INSTANTIATE_TEST_SUITE_P(Cases, Attention, ::testing::ValuesIn(attentionCases()), [](const auto& info) { return info.param.name; });

/// Rows of the mask that hide all keys give NaN, as a softmax of nothing does; keys that are hidden by -inf for a while do not.
TEST(AttentionMask, of_minus_infinity) {
  constexpr int64_t kQueries = 4, kKeys = 293;
  Model model({.name = "",
               .leading = {1},
               .queries = kQueries,
               .keys = kKeys,
               .width = 8,
               .value_width = 8,
               .causal = false,
               .mask = Shape{kQueries, kKeys}});
  for (int64_t query = 0; query < kQueries; ++query) {
    for (int64_t key = 0; key < kKeys; ++key) {
      const bool hidden = query == 0 || (query == 1 && key < 286) || (query == 2 && key > 5);
      model.leaves.at("mask").data[static_cast<size_t>(query * kKeys + key)] = hidden ? -std::numeric_limits<double>::infinity() : 0;
    }
  }
  model.builder.output(OutputKind::Result, "out", model.results[0]);
  const std::vector<graph::Tensor> want = runGraph(model.builder.graph(), model.leaves);
  for (const std::string& device : devicesUnderTest()) {
    const detail::Device wide = withManyUnits(asGpu(*openedDevice(device)));
    for (const detail::Device* opened : {openedDevice(device), &wide}) {
      const graph::Tensor got =
          runGraph(model.builder.graph(), model.leaves, {.device = device, .opened = opened, .prefer = {"attention"}}).front();
      for (size_t i = 0; i < got.data.size(); ++i) {
        if (i < 8) {
          EXPECT_TRUE(std::isnan(got.data[i])) << device << " element " << i;
        } else {
          EXPECT_NEAR(got.data[i], want.front().data[i], 1e-5) << device << " element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
