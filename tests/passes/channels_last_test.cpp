// SPDX-License-Identifier: Apache-2.0
// The order of channels on GPUs: which products are turned, what follows them in that order, and that all their operands are read by quads.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/module.h"
#include "passes/pipeline.h"
#include "passes/schedule/group_body.h"
#include "passes/schedule/quad_operands.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/graph_input.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::Shape;
using graph::ValueId;

ValueId conv(graph::Builder& b, ValueId x, ValueId w, int64_t stride = 1) {
  const int64_t reach = b.shapeOf(w).extent(2) / 2;
  return b.make("conv", {x, w},
                {{"stride", std::vector{stride, stride}},
                 {"padding", std::vector{reach, reach}},
                 {"dilation", std::vector<int64_t>{1, 1}},
                 {"groups", int64_t{1}}});
}

/// A residual block of `channels` with norms over its convolutions.
ValueId block(graph::Builder& b, ValueId x, int64_t channels, const std::string& name) {
  const auto normed = [&](ValueId value, const std::string& norm) {
    const ValueId gain = f32Input(b, norm + ".g", {channels}), bias = f32Input(b, norm + ".b", {channels});
    return b.makeAll("batch_norm", std::vector{value, gain, bias}, {{"eps", 1e-5}})[0];
  };
  const ValueId w1 = f32Input(b, name + ".w1", {channels, channels, 3, 3}), w2 = f32Input(b, name + ".w2", {channels, channels, 3, 3});
  const ValueId first = b.make("relu", {normed(conv(b, x, w1), name + ".n1")});
  return b.make("relu", {b.add(normed(conv(b, first, w2), name + ".n2"), x)});
}

graph::Graph residual(int64_t channels) {
  graph::Builder b;
  const ValueId x = f32Input(b, "x", {8, 4, 16, 16}), stem = f32Input(b, "stem", {channels, 4, 3, 3});
  const ValueId y = block(b, block(b, b.make("relu", {conv(b, x, stem)}), channels, "a"), channels, "b");
  b.output(graph::OutputKind::Loss, "loss",
           b.make("sum", {b.mul(y, y)}, {{"axes", std::vector<int64_t>{0, 1, 2, 3}}, {"keep_dims", false}}));
  return b.take();
}

passes::CompileOptions gpuOptions(std::vector<std::string> disabled = {}) {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 16;
  options.templates = detail::templateSource();
  options.disabled = std::move(disabled);
  options.wrt = {"a.w1", "a.w2", "b.w1", "b.w2", "a.n1.g", "b.n2.b"};
  options.keep_gradients = true;
  return options;
}

/// Of the products between images and of the rest.
struct Found {
  size_t products = 0, by_quads = 0, groups = 0, images_first = 0;
};

Found found(const graph::Graph& grouped) {
  Found result;
  for (const graph::NodeId id : grouped.body().nodes) {
    const graph::Node& node = grouped[id];
    if (!std::holds_alternative<graph::RegionLowering>(*node.op->lower)) continue;
    ++result.groups;
    const graph::Graph body = passes::groupBody(grouped, node);
    for (const graph::NodeId inner : body.body().nodes) {
      if (!std::holds_alternative<graph::ContractLowering>(*body[inner].op->lower)) continue;
      const auto [left, right] = passes::quadOperands(body, passes::findContract(body));
      ++result.products;
      result.by_quads += left.by_quads && right.by_quads ? 1 : 0;
    }
    for (const ValueId value : node.results) {
      const Shape& shape = grouped.shapeOf(value);
      result.images_first += shape.rank() == 4 && shape.extent(1) == 32 && shape.extent(3) == 16 ? 1 : 0;
    }
  }
  return result;
}

TEST(ChannelsLast, products_of_a_residual_network_read_quads) {
  const auto grouped = [&](std::vector<std::string> disabled) {
    disabled.emplace_back("chainRows");  // so that each product is a group of its own
    return std::get<graph::Graph>(passes::compileTo(passes::Stage::Grouped, residual(32), gpuOptions(std::move(disabled))).orThrow());
  };
  const Found last = found(grouped({})), first = found(grouped({"channelsLast"}));
  // Five convolutions; gradients of four by their weights, and of three by their images.
  EXPECT_EQ(last.products, 12u);
  EXPECT_EQ(last.by_quads, 11u) << "all but the stem's, whose image comes from outside";
  EXPECT_EQ(last.images_first, 0u) << "no kernel stores an image by channels";
  EXPECT_EQ(first.products, 12u);
  EXPECT_EQ(first.by_quads, 0u);
  EXPECT_GT(first.images_first, 0u);
}

passes::CompileOptions forwardOptions() {
  passes::CompileOptions options = gpuOptions();
  options.keep_gradients = false;
  options.wrt.clear();
  return options;
}

/// The first node of an op that there is.
const graph::Node& nodeOf(const graph::Graph& graph, std::string_view op) {
  const auto found = std::ranges::find_if(graph.body().nodes, [&](graph::NodeId id) { return *graph[id].op->name == op; });
  if (found == graph.body().nodes.end()) throw std::runtime_error("there is no " + std::string(op));
  return graph[*found];
}

/// Scores of queries that all texts share, [B, queries, keys], lie by keys: the mask is about the last two axes and may not be turned.
TEST(ChannelsLast, what_depends_on_its_position_stays) {
  graph::Builder b;
  const ValueId queries = f32Input(b, "q", {16, 8}), keys = f32Input(b, "k", {4, 8, 16});
  b.output(graph::OutputKind::Result, "y", b.make("where_causal", {b.make("matmul", {queries, keys})}, {{"fill", -1.0}}));
  const auto graph = std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, b.take(), forwardOptions()).orThrow());
  EXPECT_EQ(graph.shapeOf(nodeOf(graph, "matmul").results[0]), (Shape{64, 16})) << "the product is turned";
  const graph::Node& mask = nodeOf(graph, "where_causal");
  const ValueId scores = mask.operands[0];
  EXPECT_EQ(*graph.definition(scores).op->name, "permute") << "back in the order of the API";
  EXPECT_EQ(graph.outputs[0].value, mask.results[0]);
}

/// Parameters are views of one buffer, and most models have more of them than an image has elements.
TEST(ChannelsLast, offsets_in_a_large_buffer_have_no_order) {
  graph::Builder b;
  const ValueId all = f32Input(b, "all", {1 << 22});
  const ValueId offset = b.make("narrow", {all}, {{"axis", int64_t{0}}, {"start", int64_t{5}}, {"length", int64_t{32}}});
  const ValueId image = conv(b, f32Input(b, "x", {8, 32, 16, 16}), f32Input(b, "w", {32, 32, 3, 3}));
  b.output(graph::OutputKind::Result, "y", b.make("relu", {b.add(image, b.reshape(offset, Shape{1, 32, 1, 1}))}));
  const auto graph = std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, b.take(), forwardOptions()).orThrow());
  EXPECT_EQ(graph.shapeOf(nodeOf(graph, "relu").results[0]), (Shape{8, 16, 16, 32}));
}

/// The product of a convolution's gradient by its image of 16 x 16, with stride 2 and a kernel of k x k.
Shape stridedGradient(int64_t k) {
  graph::Builder b;
  const std::vector<int64_t> two{2, 2}, padding{k / 2, k / 2}, one{1, 1};
  b.output(graph::OutputKind::Result, "y",
           b.make("conv_transpose", {f32Input(b, "x", {64, 256, 8, 8}), f32Input(b, "w", {256, 128, k, k})},
                  {{"stride", two}, {"padding", padding}, {"dilation", one}, {"output_padding", one}, {"groups", int64_t{1}}}));
  const auto graph = std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, b.take(), forwardOptions()).orThrow());
  return graph.shapeOf(nodeOf(graph, "matmul").results[0]);
}

TEST(ChannelsLast, gradients_of_strided_convolutions_have_no_more_positions_and_phases_than_they_need) {
  EXPECT_EQ(stridedGradient(3), (Shape{64 * 8 * 8, 4 * 128})) << "four phases";
  EXPECT_EQ(stridedGradient(1), (Shape{64 * 8 * 8, 128})) << "the other three phases are zeros";
}

/// The first convolution of ResNet-50: its gradient by the image has windows of 4 x 4 phases, and 7 x 7 would be too many elements.
TEST(ChannelsLast, large_strided_convolutions_are_within_the_limit) {
  graph::Builder b;
  const std::vector<int64_t> two{2, 2}, three{3, 3}, one{1, 1};
  const ValueId y = b.make("conv", {f32Input(b, "x", {32, 3, 224, 224}), f32Input(b, "w", {64, 3, 7, 7})},
                           {{"stride", two}, {"padding", three}, {"dilation", one}, {"groups", int64_t{1}}});
  EXPECT_EQ(b.shapeOf(y), (Shape{32, 64, 112, 112}));
}

TEST(ChannelsLast, windows_of_pooling_follow_their_image) {
  graph::Builder b;
  const ValueId y = b.make("relu", {conv(b, f32Input(b, "x", {8, 32, 16, 16}), f32Input(b, "w", {32, 32, 3, 3}))});
  const std::vector<int64_t> three{3, 3}, two{2, 2}, one{1, 1};
  b.output(graph::OutputKind::Result, "y",
           b.makeAll("max_pool", std::vector{y}, {{"kernel", three}, {"stride", two}, {"padding", one}})[0]);
  const auto graph = std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, b.take(), forwardOptions()).orThrow());
  EXPECT_EQ(graph.shapeOf(nodeOf(graph, "reduce_max").results[0]), (Shape{8, 8, 8, 32})) << "overlapping windows are larger than the image";
}

/// An image that was computed by channels, as after a norm of groups, is better off with the old orientation, which reads it along rows.
TEST(ChannelsLast, products_of_computed_images_by_channels_are_not_turned) {
  graph::Builder b;
  const ValueId x = b.mul(f32Input(b, "x", {8, 32, 16, 16}), f32Input(b, "z", {8, 32, 16, 16}));
  b.output(graph::OutputKind::Result, "x", x);
  b.output(graph::OutputKind::Result, "y", conv(b, x, f32Input(b, "w", {32, 32, 3, 3})));
  const auto graph = std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, b.take(), forwardOptions()).orThrow());
  EXPECT_EQ(graph.shapeOf(nodeOf(graph, "matmul").results[0]), (Shape{8, 32, 256}));
}

/// What quads promise, the kernels do: both operands are bound as vectors.
TEST(ChannelsLast, kernels_load_vectors) {
  const passes::Compiled compiled = passes::compile(residual(32), gpuOptions()).orThrow();
  size_t products = 0, vectors = 0;
  for (const program::Kernel& kernel : compiled.program.kernels) {
    const auto& module = std::get<kernel::Module>(kernel.code);
    if (module.name != "quad_tiled") continue;
    ++products;
    size_t bound = 0;
    for (const kernel::GlobalVariable& global : module.globals) {
      const kernel::Type& type = module.types[global.type];
      if (global.space != kernel::AddressSpace::Storage || global.access != kernel::Access::Read) continue;
      bound += module.types[type.element].kind == kernel::TypeKind::Vector ? 1 : 0;
    }
    vectors += bound >= 2 ? 1 : 0;
  }
  // One kernel for images and their gradients, whose weights are in the same order, and one for the gradients by weights. The stem is
  // small.
  EXPECT_EQ(products, 2u);
  EXPECT_EQ(vectors, products);
}

/// In mixed precision the user's image is rounded before the first convolution: what follows has the order all the same.
TEST(ChannelsLast, of_a_rounded_image) {
  passes::CompileOptions options = gpuOptions();
  options.low = DType::BF16;
  const Found last = found(std::get<graph::Graph>(passes::compileTo(passes::Stage::Grouped, residual(32), options).orThrow()));
  EXPECT_EQ(last.products, 12u);
  EXPECT_EQ(last.by_quads, 11u);
  EXPECT_EQ(last.images_first, 0u);
}

TEST(ChannelsLast, few_results_stay_rows_of_a_product) {
  graph::Builder b;
  b.output(graph::OutputKind::Result, "y", conv(b, f32Input(b, "x", {8, 32, 16, 16}), f32Input(b, "w", {4, 32, 3, 3})));
  const auto graph = std::get<graph::Graph>(passes::compileTo(passes::Stage::Primitive, b.take(), forwardOptions()).orThrow());
  EXPECT_EQ(graph.shapeOf(nodeOf(graph, "matmul").results[0]), (Shape{8, 4, 256})) << "4 columns would leave most of a tile empty";
}

}  // namespace
}  // namespace lockstep
