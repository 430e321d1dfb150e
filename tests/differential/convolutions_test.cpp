// SPDX-License-Identifier: Apache-2.0
// Convolutions between elements, a norm and pooling, with gradients, as GPUs run them: channels side by side, products by quads and by
// matrix units. Beside the f64 evaluator, and beside the same program without that order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/differential/matrix_devices.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::OutputKind;
using graph::Shape;
using graph::ValueId;

struct ConvolutionCase {
  std::string name;
  int64_t batch = 2, channels = 16, inner = 16, out = 16;
  std::vector<int64_t> image{9, 10}, kernel{3, 3}, stride{1, 1}, padding{1, 1}, dilation{1, 1};
  int64_t groups = 1;
  DType low = DType::F32;  ///< of both operands of each convolution
  bool normed = true, transposed = false;
  std::vector<int64_t> pool = {}, pool_stride = {};
};
void PrintTo(const ConvolutionCase& one, std::ostream* out) { *out << one.name; }

/// x -> conv -> (norm) -> relu -> (pool) -> conv (or its transpose), whose result the loss weighs at random.
struct Model {
  explicit Model(const ConvolutionCase& c) : low(c.low) {
    const ValueId x = add("x", of({c.batch, c.channels}, c.image));
    ValueId y = convolved("conv", c, x, add("w1", of({c.inner, c.channels / c.groups}, c.kernel)));
    const std::vector<int64_t> channels{c.inner};
    if (c.normed) {
      y = b.makeAll("batch_norm", std::vector{y, add("gain", Shape(channels)), add("bias", Shape(channels))}, {{"eps", 1e-3}})[0];
    } else {
      std::vector<int64_t> wide(c.image.size(), 1);
      y = b.add(y, b.reshape(add("bias", Shape(channels)), of({1, c.inner}, wide)));
    }
    y = b.make("relu", {y});
    const std::vector<int64_t> zeros(c.image.size(), 0);
    if (!c.pool.empty()) y = b.makeAll("max_pool", std::vector{y}, {{"kernel", c.pool}, {"stride", c.pool_stride}, {"padding", zeros}})[0];
    const std::string_view op = c.transposed ? "conv_transpose" : "conv";
    const std::vector<int64_t> second{c.transposed ? c.inner : c.out, (c.transposed ? c.out : c.inner) / c.groups};
    result = convolved(op, c, y, add("w2", of(second, c.kernel)));
    wrt.emplace_back("x");
  }

  static Shape of(std::vector<int64_t> leading, const std::vector<int64_t>& rest) {
    leading.insert(leading.end(), rest.begin(), rest.end());
    return Shape(leading);
  }
  ValueId add(const std::string& name, const Shape& shape) {
    leaves.emplace(name, graph::testing::randomTensor({DType::F32, shape}, -1, 1, random));
    if (name != "x") wrt.push_back(name);
    return graph::testing::addInput(b, name, {DType::F32, shape});
  }
  ValueId rounded(ValueId value) {
    if (low == DType::F32) return value;
    return b.make("cast", {b.make("cast", {value}, {{"dtype", low}})}, {{"dtype", DType::F32}});
  }
  ValueId convolved(std::string_view op, const ConvolutionCase& c, ValueId x, ValueId w) {
    graph::Attributes attributes{{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}};
    if (op == "conv_transpose") {
      std::vector<int64_t> rest;
      for (const int64_t stride : c.stride) rest.push_back(stride - 1);
      attributes.set("output_padding", rest);
    }
    return b.make(op, {rounded(x), rounded(w)}, attributes);
  }

  DType low;
  std::mt19937 random{5};
  graph::Builder b;
  graph::LeafValues leaves;
  std::vector<std::string> wrt;
  ValueId result;
};

class Convolutions : public ::testing::TestWithParam<ConvolutionCase> {
 protected:
  static void check(const graph::Graph& graph, const graph::LeafValues& leaves, GraphRunOptions options, size_t skipped, double tolerance) {
    std::vector<graph::Tensor> want = runGraph(graph, leaves, options);
    want.erase(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(skipped));
    const auto expect = [&](const std::string& device, const detail::Device& opened, const char* what) {
      options.device = device;
      options.opened = &opened;
      std::vector<graph::Tensor> got = runGraph(graph, leaves, options);
      got.erase(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(skipped));
      expectClose(got, want, tolerance, fmt::format("{} on {}", what, device));
    };
    for (const std::string& device : devicesUnderTest()) {
      expect(device, *openedDevice(device), "as it is");
      detail::Device gpu = asGpu(*openedDevice(device));
      gpu.chosen.info.profile.matrix_f16 = gpu.chosen.info.profile.matrix_bf16 = {};
      gpu.chosen.info.profile.parallel_units = 2;
      expect(device, gpu, "by quads");
      if (device != "reference") continue;
      options.disable = {"channelsLast"};
      expect(device, gpu, "channels first");
      options.disable = {};
    }
    for (const std::string& device : devicesWithMatrices()) expect(device, withUnits(*openedDevice(device), 1), "by units");
  }
};

TEST_P(Convolutions, agree_with_the_evaluator) {
  Model model(GetParam());
  model.b.output(OutputKind::Result, "y", model.result);
  check(model.b.graph(), model.leaves, {}, 0, model.low == DType::F32 ? 2e-6 : 6e-3);
}

TEST_P(Convolutions, gradients_agree_with_the_evaluator) {
  Model model(GetParam());
  const ValueId loss = graph::testing::weightedSum(model.b, model.result, "weight", model.leaves, model.random);
  model.b.output(OutputKind::Loss, "loss", loss);
  // The loss is a sum that cancels.
  check(model.b.graph(), model.leaves, {.gradients = true, .wrt = model.wrt}, 1, model.low == DType::F32 ? 1e-5 : 3e-2);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Convolutions,
    ::testing::Values(
        ConvolutionCase{.name = "plain"}, ConvolutionCase{.name = "large", .batch = 5, .channels = 32, .inner = 64, .out = 32},
        ConvolutionCase{.name = "strided", .stride = {2, 2}}, ConvolutionCase{.name = "dilated", .padding = {2, 3}, .dilation = {2, 3}},
        ConvolutionCase{.name = "pointwise", .inner = 64, .kernel = {1, 1}, .padding = {0, 0}, .normed = false},
        ConvolutionCase{.name = "pooled", .image = {12, 8}, .normed = false, .pool = {2, 2}, .pool_stride = {2, 2}},
        ConvolutionCase{.name = "pooled_over", .image = {11, 9}, .pool = {3, 3}, .pool_stride = {2, 2}},
        ConvolutionCase{.name = "depthwise", .channels = 16, .inner = 16, .out = 16, .groups = 16},
        ConvolutionCase{.name = "grouped_transposed", .inner = 24, .stride = {2, 1}, .groups = 2, .transposed = true},
        ConvolutionCase{.name = "volume",
                        .channels = 4,
                        .inner = 8,
                        .out = 8,
                        .image = {4, 5, 6},
                        .kernel = {2, 3, 3},
                        .stride = {1, 1, 1},
                        .padding = {0, 1, 1},
                        .dilation = {1, 1, 1}},
        ConvolutionCase{.name = "bf16_odd", .channels = 5, .inner = 9, .out = 11, .low = DType::BF16, .normed = false},
        ConvolutionCase{.name = "grouped", .channels = 24, .inner = 48, .out = 48, .groups = 3},
        ConvolutionCase{.name = "odd_channels", .channels = 3, .inner = 15, .out = 17, .image = {7, 11}, .kernel = {3, 2}},
        ConvolutionCase{.name = "one_result", .channels = 1, .inner = 20, .out = 1, .normed = false},
        ConvolutionCase{.name = "one_result_large", .batch = 7, .channels = 1, .inner = 64, .out = 1, .image = {17, 16}, .normed = false},
        ConvolutionCase{.name = "transposed", .stride = {2, 2}, .transposed = true},
        ConvolutionCase{.name = "line", .image = {41}, .kernel = {5}, .stride = {1}, .padding = {2}, .dilation = {1}},
        ConvolutionCase{.name = "bf16", .channels = 32, .inner = 32, .low = DType::BF16, .normed = false}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
