// SPDX-License-Identifier: Apache-2.0
// Products with a vector: that large ones are sums which read memory in its order, and how many parts products of few tiles have.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/graph_input.h"

namespace lockstep {
namespace {

using graph::Shape;
using graph::ValueId;

passes::CompileOptions gpuOptions(std::vector<std::string> disabled = {}) {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 132;
  options.templates = detail::templateSource();
  options.disabled = std::move(disabled);
  return options;
}

/// A picture of one channel to `channels` and back, as a sample for flow matching has them, and the gradients of both kernels.
graph::Graph thereAndBack(int64_t channels) {
  graph::Builder b;
  const ValueId x = f32Input(b, "x", {64, 1, 28, 28});
  const ValueId out = f32Input(b, "out", {channels, 1, 3, 3}), back = f32Input(b, "back", {1, channels, 3, 3});
  const auto conv = [&](ValueId image, ValueId weights) {
    return b.make("conv", {image, weights},
                  {{"stride", std::vector<int64_t>{1, 1}},
                   {"padding", std::vector<int64_t>{1, 1}},
                   {"dilation", std::vector<int64_t>{1, 1}},
                   {"groups", int64_t{1}}});
  };
  const ValueId y = conv(b.make("relu", {conv(x, out)}), back);
  b.output(graph::OutputKind::Loss, "loss",
           b.make("sum", {b.mul(y, y)}, {{"axes", std::vector<int64_t>{0, 1, 2, 3}}, {"keep_dims", false}}));
  return b.take();
}

graph::Graph primitive(graph::Graph graph, const passes::CompileOptions& options) {
  return std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, std::move(graph), options).orThrow());
}

/// The shapes of products, by rows, columns, inner axis and batch.
using Product = std::array<int64_t, 4>;
std::multiset<Product> productsOf(const graph::Graph& graph) {
  std::multiset<Product> products;
  for (const graph::NodeId id : graph.body().nodes) {
    const auto* contract = std::get_if<graph::ContractLowering>(&*graph[id].op->lower);
    if (contract == nullptr) continue;
    const graph::ContractShape shape = contract->shape(graph, graph[id]);
    products.insert({shape.m, shape.n, shape.k, shape.batch});
  }
  return products;
}

TEST(ThinProducts, convolutions_to_one_channel_and_from_one) {
  passes::CompileOptions options = gpuOptions();
  options.wrt = {"out", "back"};
  options.keep_gradients = true;
  // The first convolution again for its gradient's relu is shared; the picture has no gradient. The weights' gradient of the first one is
  // 32 x 9 with 50 176 elements along the inner axis: two tiles of 16 x 16, in 64 parts.
  EXPECT_EQ(productsOf(primitive(thereAndBack(32), options)),
            (std::multiset<Product>{{50176, 32, 9, 1}, {50176, 32, 9, 1}, {32, 9, 784, 64}}));
  options.disabled = {"thinProducts"};
  EXPECT_EQ(productsOf(primitive(thereAndBack(32), options)).count({50176, 1, 288, 1}), 1u);
}

/// The groups of a product of `left` and `right`, which has one row or column, by the kind of their kernels.
std::vector<std::string> kernelsOf(const Shape& left, bool left_turned, const Shape& right, bool right_turned) {
  graph::Builder b;
  const auto operand = [&](const char* name, const Shape& shape, bool turned) {
    if (!turned) return f32Input(b, name, shape.extents());
    return b.swapLastAxes(f32Input(b, name, {shape.extent(1), shape.extent(0)}));
  };
  const ValueId a = operand("a", left, left_turned), c = operand("b", right, right_turned);
  b.output(graph::OutputKind::Result, "y", b.make("matmul", {a, c}));
  const auto program = std::get<program::Program>(passes::compileTo(passes::Stage::Scheduled, b.take(), gpuOptions()).orThrow());
  std::vector<std::string> names;
  for (const program::Kernel& kernel : program.kernels) names.push_back(kernel.name.substr(kernel.name.find('_') + 1));
  return names;
}

TEST(ThinProducts, read_matrices_as_they_lie) {
  using Names = std::vector<std::string>;
  const Names rows = kernelsOf({8192, 1024}, false, {1024, 1}, false);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NE(rows[0].find("rows"), std::string::npos) << rows[0];
  EXPECT_EQ(kernelsOf({1, 1024}, false, {1024, 8192}, true), rows) << "a left vector, and rows seen as columns";
  const Names columns = kernelsOf({1, 1024}, false, {1024, 8192}, false);
  ASSERT_FALSE(columns.empty());
  for (const std::string& name : columns) EXPECT_NE(name.find("columns"), std::string::npos) << name;
  EXPECT_EQ(kernelsOf({8192, 1024}, true, {1024, 1}, false), columns) << "a right vector, and columns seen as rows";
}

TEST(ThinProducts, small_ones_batches_and_processors_keep_products) {
  const auto product = [](std::vector<int64_t> left, std::vector<int64_t> right) {
    graph::Builder b;
    const ValueId a = f32Input(b, "a", std::move(left)), c = f32Input(b, "b", std::move(right));
    b.output(graph::OutputKind::Result, "y", b.make("matmul", {a, c}));
    return b.take();
  };
  EXPECT_EQ(productsOf(primitive(product({256, 255}, {255, 1}), gpuOptions())).size(), 1u) << "below 2^16";
  EXPECT_EQ(productsOf(primitive(product({1024, 1024}, {1024, 1}), gpuOptions())).size(), 0u);
  EXPECT_EQ(productsOf(primitive(product({1024, 1024}, {1024, 2}), gpuOptions())).size(), 1u);
  EXPECT_EQ(productsOf(primitive(product({17, 65536}, {65536, 1}), gpuOptions())), (std::multiset<Product>{{17, 1, 1024, 64}}))
      << "few rows, and an inner axis that is cut";
  EXPECT_EQ(productsOf(primitive(product({4, 1024, 1024}, {4, 1024, 1}), gpuOptions())).size(), 1u) << "a vector per batch";
  EXPECT_EQ(productsOf(primitive(product({4, 256, 1024}, {1024, 1}), gpuOptions())).size(), 0u) << "all leading axes are rows";
  passes::CompileOptions cpu = gpuOptions();
  cpu.profile.style = program::ExecutionStyle::Cpu;
  EXPECT_EQ(productsOf(primitive(product({1024, 1024}, {1024, 1}), cpu)).size(), 1u);
}

}  // namespace
}  // namespace lockstep
