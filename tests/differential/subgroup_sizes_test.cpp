// SPDX-License-Identifier: Apache-2.0
// Every template for GPUs and the kernels of rows, columns and scans, as cards have subgroups and matrix units that are not at hand:
// planned for such a card, run on the reference beside the f64 evaluator, and compiled to SPIR-V.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/differential/compare.h"
#include "tests/differential/product_case.h"
#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/spirv.h"
#endif

namespace lockstep {
namespace {

using graph::Builder;
using graph::DType;
using graph::OutputKind;
using graph::Shape;
using graph::ValueId;

struct Card {
  std::string name;
  uint32_t subgroup_size = 32;
  program::MatrixShape units;
};
void PrintTo(const Card& card, std::ostream* out) { *out << card.name; }

detail::Device asCard(detail::Device device, const Card& card, bool has_units) {
  device = asGpu(std::move(device));
  program::DeviceProfile& profile = device.chosen.info.profile;
  profile.subgroups = profile.fixed_subgroups = true;
  profile.subgroup_size = card.subgroup_size;
  profile.parallel_units = 1;
  profile.packed_dot = true;
  profile.f16 = profile.matrix_rows = has_units;
  profile.matrix_f16 = profile.matrix_bf16 = has_units ? card.units : program::MatrixShape{};
  return device;
}

/// What is planned, run and compared.
struct Work {
  std::string name;
  graph::Graph graph;
  graph::LeafValues leaves;
  GraphRunOptions options;
  double tolerance = 2e-6;
  bool has_units = true;
};

Work product(std::string name, const ProductCase& shape, bool has_units) {
  Product made = makeProduct(shape);
  return {.name = std::move(name),
          .graph = std::move(made.graph),
          .leaves = std::move(made.leaves),
          .options = {},
          .tolerance = shape.stored == DType::F32 ? 2e-6 : 6e-3,
          .has_units = has_units};
}

/// Causal, forward and backward, by a template.
Work attention(std::string name, DType low, bool has_units, int64_t length = 77) {
  Builder b;
  graph::LeafValues leaves;
  std::mt19937 random{3};
  std::vector<ValueId> operands;
  for (const char* operand : {"q", "k", "v"}) {
    const graph::TensorType type{DType::F32, {2, 3, length, 64}};
    leaves.emplace(operand, graph::testing::randomTensor(type, -1.5, 1.5, random));
    ValueId value = graph::testing::addInput(b, operand, type);
    if (low != DType::F32) value = b.make("cast", {b.make("cast", {value}, {{"dtype", low}})}, {{"dtype", DType::F32}});
    operands.push_back(value);
  }
  graph::Attributes attributes{{"causal", true}, {"offset", int64_t{0}}, {"scale", 0.125}};
  if (low != DType::F32) attributes.set(std::string(graph::kLowAttribute), low);
  const ValueId result = b.makeAll("scaled_dot_product_attention", operands, attributes)[0];
  b.output(OutputKind::Loss, "loss", graph::testing::weightedSum(b, result, "weight", leaves, random));
  return {.name = std::move(name),
          .graph = b.graph(),
          .leaves = std::move(leaves),
          .options = {.gradients = true, .wrt = {"q", "k", "v"}, .prefer = {length > 32 ? "attention" : "short_attention"}},
          .tolerance = low == DType::F32 ? 6e-6 : 2e-2,
          .has_units = has_units};
}

/// Of one query, which sees the first keys of a cache.
Work cachedAttention() {
  Builder b;
  graph::LeafValues leaves;
  std::mt19937 random{5};
  const auto input = [&](const char* name, const graph::TensorType& type, double least, double most) {
    leaves.emplace(name, graph::testing::randomTensor(type, least, most, random));
    return graph::testing::addInput(b, name, type);
  };
  const std::vector<ValueId> operands{input("q", {DType::F32, {2, 4, 1, 64}}, -1.5, 1.5),
                                      input("k", {DType::F32, {2, 2, 1031, 64}}, -1.5, 1.5),
                                      input("v", {DType::F32, {2, 2, 1031, 64}}, -1.5, 1.5), input("length", {DType::I32, {2}}, 900, 1031)};
  b.output(OutputKind::Result, "y", b.make("cached_attention", operands, {{"scale", 0.125}}));
  return {.name = "cached_attention",
          .graph = b.graph(),
          .leaves = std::move(leaves),
          .options = {.prefer = {"cached_attention"}},
          .tolerance = 4e-6,
          .has_units = false};
}

/// Rows that one subgroup, some of its lanes and a workgroup share, sums of columns, and a scan, with gradients.
Work rows() {
  Builder b;
  graph::LeafValues leaves;
  std::mt19937 random{4};
  const auto input = [&](const char* name, const Shape& shape) {
    leaves.emplace(name, graph::testing::randomTensor({DType::F32, shape}, -2, 2, random));
    return graph::testing::addInput(b, name, {DType::F32, shape});
  };
  ValueId loss;
  for (const int64_t columns : {3, 17, 64, 300, 1031}) {
    const std::string name = fmt::format("x{}", columns);
    const ValueId x = input(name.c_str(), {70, columns}), gain = input((name + ".g").c_str(), {columns}),
                  bias = input((name + ".b").c_str(), {columns});
    const ValueId normed = b.make("layer_norm", {x, gain, bias}, {{"eps", 1e-5}});
    const ValueId soft = b.make("softmax", {normed});
    const ValueId scanned = b.make("cumsum", {soft}, {{"axis", int64_t{1}}, {"reverse", false}});
    const ValueId part = graph::testing::weightedSum(b, scanned, name + ".w", leaves, random);
    loss = loss.valid() ? b.add(loss, part) : part;
  }
  b.output(OutputKind::Loss, "loss", loss);
  return {.name = "rows",
          .graph = b.graph(),
          .leaves = std::move(leaves),
          .options = {.gradients = true, .wrt = {"x3", "x17", "x64", "x300", "x1031", "x3.g", "x300.b", "x1031.g"}},
          .tolerance = 1e-5};
}

/// Two rows by a weight of few bits, the last word and the last group of which are not full.
Work quantizedProduct(std::string name, int64_t bits) {
  constexpr int64_t kRows = 137, kInner = 1003, kGroup = 64;
  Builder b;
  graph::LeafValues leaves;
  std::mt19937 random{6};
  const auto input = [&](const char* operand, const graph::TensorType& type, double least, double most) {
    leaves.emplace(operand, graph::testing::randomTensor(type, least, most, random));
    return graph::testing::addInput(b, operand, type);
  };
  const auto parts = [](int64_t size) { return (kInner + size - 1) / size; };
  const std::vector<ValueId> operands{input("x", {DType::F32, {2, kInner}}, -1, 1),
                                      input("words", {DType::U32, {kRows, parts(32 / bits)}}, 0, 4294967295.0),
                                      input("scales", {DType::F32, {kRows, parts(kGroup)}}, 0.5, 2)};
  b.output(OutputKind::Result, "y", b.make("quantized_matmul", operands, {{"bits", bits}, {"group", kGroup}}));
  return {.name = std::move(name), .graph = b.graph(), .leaves = std::move(leaves), .options = {}, .has_units = false};
}

std::vector<Work> works() {
  std::vector<Work> all;
  all.push_back(product("units_f32", {.name = "", .m = 130, .n = 136, .k = 140, .fused = true}, true));
  all.push_back(product("units_f32_turned", {.name = "", .m = 136, .n = 136, .k = 132, .order = "tt"}, true));
  all.push_back(product("units_bf16", {.name = "", .m = 130, .n = 136, .k = 140, .order = "nt", .stored = DType::BF16}, true));
  all.push_back(product("quads", {.name = "", .m = 197, .n = 192, .k = 132}, false));
  all.push_back(product("shared", {.name = "", .m = 61, .n = 53, .k = 77}, false));
  all.push_back(attention("attention_units_f32", DType::F32, true));
  all.push_back(attention("attention_units_bf16", DType::BF16, true));
  all.push_back(attention("attention_tiles", DType::F32, false));
  all.push_back(attention("attention_short", DType::F32, false, 29));
  all.push_back(cachedAttention());
  all.push_back(quantizedProduct("four_bits", 4));
  all.push_back(quantizedProduct("eight_bits", 8));
  all.push_back(rows());
  return all;
}

#ifdef LOCKSTEP_VULKAN
/// Some order of a matrix's elements in a subgroup, row by row: real ones are not known here.
vulkan::MatrixLayout someLayout(const kernel::Type& type, uint32_t lanes, uint32_t elements) {
  std::vector<uint32_t> numbers(elements);
  for (uint32_t i = 0; i < elements; ++i) numbers[i] = i;
  const std::optional<vulkan::MatrixLayout> layout = vulkan::fitLayout(type, lanes, numbers);
  if (!layout) throw std::runtime_error("no such layout");
  return *layout;
}

void expectSpirv(const kernel::Module& module, uint32_t lanes) {
  vulkan::SpirvOptions options;
  for (size_t i = 0; i < module.types.size(); ++i) {
    const kernel::Type& type = module.types[kernel::TypeId(i)];
    if (type.kind == kernel::TypeKind::SubgroupMatrix) options.matrix_layouts.push_back(someLayout(type, lanes, type.rows * type.columns));
  }
  const auto words = vulkan::emitSpirv(kernel::validate(module).orThrow(), options);
  EXPECT_TRUE(words.ok()) << module.name << ": " << (words.ok() ? "" : words.failure().diagnostics.front().message);
}
#endif

class SubgroupSizes : public ::testing::TestWithParam<Card> {};

TEST_P(SubgroupSizes, every_template_gives_what_the_evaluator_gives) {
  const Card& card = GetParam();
  std::set<std::string> kernels;
  for (const Work& work : works()) {
    SCOPED_TRACE(work.name);
    const detail::Device device = asCard(*openedDevice("reference"), card, work.has_units);
    GraphRunOptions options = work.options;
    std::vector<graph::Tensor> want = runGraph(work.graph, work.leaves, options);
    options.device = "reference";
    options.opened = &device;
    std::vector<graph::Tensor> got = runGraph(work.graph, work.leaves, options);
    if (options.gradients) {  // the loss is a sum that cancels
      want.erase(want.begin());
      got.erase(got.begin());
    }
    expectClose(got, want, work.tolerance, work.name);

    passes::CompileOptions compiling;
    compiling.profile = device.chosen.info.profile;
    compiling.templates = detail::templateSource();
    compiling.keep_gradients = options.gradients;
    compiling.wrt = options.wrt;
    compiling.preferred_templates = options.prefer;
    const passes::Compiled compiled = passes::compile(work.graph, compiling).orThrow();
    std::set<std::string> names;
    for (const program::Kernel& kernel : compiled.program.kernels) {
      [[maybe_unused]] const auto& module = std::get<kernel::Module>(kernel.code);
      names.insert(kernel.name.substr(kernel.name.find('_') + 1));
#ifdef LOCKSTEP_VULKAN
      expectSpirv(module, card.subgroup_size);
#endif
    }
    fmt::print("{}, {}: {}\n", card.name, work.name, fmt::join(names, ", "));
    kernels.insert(names.begin(), names.end());
  }
  std::set<std::string> wanted{"columns", "digits",       "held_rows", "matrix_tiled", "quad_tiled", "rows",
                               "scan",    "shared_tiled", "split",     "tiled",        "whole"};
  // Attention wants units whose results can be operands.
  if (card.units.n == card.units.k) wanted.insert("matrix");
  for (const std::string& kernel : wanted) EXPECT_TRUE(kernels.contains(kernel)) << kernel << " was not chosen";
}

INSTANTIATE_TEST_SUITE_P(Cards, SubgroupSizes,
                         ::testing::Values(Card{"intel_8", 8, {8, 8, 16}}, Card{"intel_16", 16, {8, 16, 16}},
                                           Card{"amd_32", 32, {16, 16, 16}}, Card{"amd_64", 64, {16, 16, 16}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
