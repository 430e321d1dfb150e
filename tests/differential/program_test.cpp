// SPDX-License-Identifier: Apache-2.0
// Whole models with gradients: the evaluator against each device, with every optional pass on, and with each left out.
#include <gtest/gtest.h>

#include <random>

#include "examples/models/mlp.h"
#include "examples/models/transformer.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "frontend/train/graph_runner.h"
#include "passes/kernel/kernel_pipeline.h"
#include "tests/differential/compare.h"

namespace lockstep {
namespace {

struct Program {
  graph::Graph graph;
  graph::LeafValues leaves;
};

/// Random values for every parameter and input; integers are token numbers below `tokens`.
graph::LeafValues randomLeaves(const graph::Graph& graph, int64_t tokens) {
  std::mt19937 random(3);
  graph::LeafValues leaves;
  for (graph::NodeId id : graph.body().nodes) {
    const graph::Node& node = graph[id];
    if (*node.op->name != "input" && *node.op->name != "parameter") continue;
    graph::Tensor value{graph.typeOf(node.results[0]), {}};
    for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) {
      double unit = static_cast<double>(random()) / 0x1p32;
      value.data.push_back(value.type.dtype == DType::F32 ? static_cast<double>(static_cast<float>(unit - 0.5))
                                                          : static_cast<double>(static_cast<int64_t>(unit * static_cast<double>(tokens))));
    }
    leaves.emplace(node.attributes.get<std::string>("name"), std::move(value));
  }
  return leaves;
}

Program mlp() {
  examples::Mlp model({3, 17, 5});
  detail::Trace trace;
  trace.addParameters(model);
  Tensor x = trace.addInput("x", f32(9, 3)), y = trace.addInput("y", f32(9, 5));
  trace.output(graph::OutputKind::Loss, "loss", mean(square(model(x) - y)));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 0);
  return program;
}

Program transformer() {
  examples::Transformer model({.vocabulary = 11, .width = 8, .layers = 2, .heads = 2, .sequence = 6});
  detail::Trace trace;
  trace.addParameters(model);
  Tensor tokens = trace.addInput("tokens", i32(3, 5)), targets = trace.addInput("targets", i32(3, 5));
  trace.output(graph::OutputKind::Loss, "loss", cross_entropy(model(tokens, true), targets));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 11);
  return program;
}

/// Values used by several chains, reductions over rows and columns, views in between, a scalar that everything needs.
Program chains() {
  detail::Trace trace;
  Tensor a = trace.addInput("a", f32(6, 33)), b = trace.addInput("b", f32(33)), c = trace.addInput("c", f32(33, 4));
  Tensor rows = softmax(a * b), centred = a - mean(a, 0, {.keep_dims = true});
  Tensor scale = rsqrt(sum(square(a)) + 1);
  Tensor wide = broadcast_to(reshape(swap_axes(matmul(centred * scale, c), 0, 1), {4, 6, 1}), {4, 6, 33});
  Tensor mixed = where(wide > 0, wide * rows, max(centred, -0.25)) / (exp(b) + 1);
  trace.output(graph::OutputKind::Loss, "loss", mean(log(square(sum(mixed, 0)) + 0.5)) + sum(narrow(rows, -1, 3, 7)));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 0);
  return program;
}

/// A residual block with strides, batch norm, overlapping and tiling pools.
Program residual() {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(3, 2, 13, 12)), first = trace.addInput("first", f32(6, 2, 3, 3));
  Tensor second = trace.addInput("second", f32(6, 6, 3, 3)), skip = trace.addInput("skip", f32(6, 2, 1, 1));
  Tensor gain = trace.addInput("gain", f32(6)), bias = trace.addInput("bias", f32(6)), head = trace.addInput("head", f32(6, 5));
  Tensor labels = trace.addInput("labels", i32(3));
  BatchNormResult norm = batch_norm(conv2d(x, first, {.stride = 2, .padding = 1}), gain, bias);
  Tensor inner = conv2d(relu(norm.y), second, {.padding = 1});
  Tensor y = relu(inner + conv2d(x, skip, {.stride = 2}));
  y = max_pool2d(y, 3, {.stride = 2, .padding = 1}) + avg_pool2d(y, 3, {.stride = 2, .padding = 1, .count_include_pad = false});
  y = max_pool2d(pad(y, {{0, 0}, {0, 0}, {0, 0}, {0, 1}}, -9), 2) * 2;
  Tensor logits = matmul(flatten(global_avg_pool2d(y), 1), head);
  trace.output(graph::OutputKind::Result, "mean", norm.mean);
  trace.output(graph::OutputKind::Loss, "loss", cross_entropy(logits, labels));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 5);
  return program;
}

/// Down and up again: depthwise, dilated and transposed convolutions, group norm, joining, cutting, resampling.
Program hourglass() {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(2, 4, 10, 8)), down = trace.addInput("down", f32(4, 1, 3, 3));
  Tensor mix = trace.addInput("mix", f32(6, 2, 3, 3)), up = trace.addInput("up", f32(6, 2, 4, 4)), gain = trace.addInput("gain", f32(6));
  Tensor small = conv2d(x, down, {.stride = 2, .padding = 1, .groups = 4});
  Tensor mixed = group_norm(conv2d(small, mix, {.padding = 2, .dilation = 2, .groups = 2}), gain, gain, 3);
  Tensor large = conv_transpose2d(relu(mixed), up, {.stride = 2, .padding = 1});
  Tensor smooth = bilinear_upsample2d(small, {10, 8});
  Tensor joined = concat({large, roll(flip(x, {-1}), 3, 2), nearest_upsample2d(small, 2)}, 1);
  std::vector<Tensor> parts = split(joined, {2, 4, 4}, 1);
  Tensor stacked = stack({parts[1], parts[2], smooth}, 0);
  trace.output(graph::OutputKind::Loss, "loss", mean(square(stacked)) + mean(tril(parts[0], -1) * triu(parts[0], -2)));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 0);
  return program;
}

/// Grouped causal queries with rotary positions behind an RMS norm, and an einsum of three.
Program rotary() {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(2, 5, 12)), gain = trace.addInput("gain", f32(12));
  Tensor wq = trace.addInput("wq", f32(12, 16)), wk = trace.addInput("wk", f32(12, 8)), wv = trace.addInput("wv", f32(12, 8));
  Tensor wo = trace.addInput("wo", f32(4, 4, 12));
  Tensor h = rms_norm(x, gain);
  Tensor q = rope(split_heads(matmul(h, wq), 4)), k = rope(split_heads(matmul(h, wk), 2)), v = split_heads(matmul(h, wv), 2);
  Tensor y = scaled_dot_product_attention(q, k, v, {.causal = true});
  Tensor out = einsum("bhtd,hde,e->bte", {y, wo, gain});
  trace.output(graph::OutputKind::Loss, "loss", mean(square(x + out)));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 0);
  return program;
}

/// A critic whose loss holds the norm of its own gradient (as in Wasserstein training with a gradient penalty).
Program gradientPenalty() {
  examples::Mlp critic({4, 16, 1});
  detail::Trace trace;
  trace.addParameters(critic);
  Tensor real = trace.addInput("real", f32(7, 4)), fake = trace.addInput("fake", f32(7, 4)), mix = trace.addInput("mix", f32(7, 1));
  Tensor between = mix * real + (1 - mix) * fake;
  Tensor slope = grad(sum(critic(between)), {between})[0];
  Tensor norm = sqrt(sum(square(slope), -1) + 1e-6);
  trace.output(graph::OutputKind::Loss, "loss", mean(critic(fake)) - mean(critic(real)) + 10 * mean(square(norm - 1)));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 0);
  return program;
}

/// Layers that are computed again in the backward pass, with dropout, whose mask must then be the same.
Program recomputed() {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(12, 20)), w = trace.addInput("w", f32(20, 20)), v = trace.addInput("v", f32(20, 20));
  Tensor y = x;
  for (int i = 0; i < 3; ++i) y = checkpoint([&] { return dropout(exp(-square(matmul(y, w))), 0.3) + matmul(y, v); });
  trace.output(graph::OutputKind::Loss, "loss", mean(square(y)));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 1000);
  return program;
}

/// A value of rows of ten elements that is also read in rows of two, so that an axis crosses the ends of rows.
Program crossing() {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(4, 5)), y = trace.addInput("y", f32(4, 10));
  Tensor apart = repeat(x, 2, 1) - y;
  trace.output(graph::OutputKind::Result, "flipped", flip(apart, {1}));
  trace.output(graph::OutputKind::Loss, "loss", mean(square(tanh(apart))) + mean(square(tanh(flip(apart, {1})))) + mean(tanh(mean(x, 0))));
  Program program{trace.take(), {}};
  program.leaves = randomLeaves(program.graph, 0);
  return program;
}

struct Case {
  const char* name;
  Program (*make)();
  std::vector<std::string> wrt;
};

class Programs : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Models, Programs,
                         testing::Values(Case{"mlp", mlp, {}}, Case{"transformer", transformer, {}},
                                         Case{"chains", chains, {"a", "b", "c"}}, Case{"gradient_penalty", gradientPenalty, {}},
                                         Case{"recomputed", recomputed, {"x", "w", "v"}}, Case{"crossing", crossing, {"x", "y"}},
                                         Case{"residual", residual, {"x", "first", "second", "skip", "gain", "bias", "head"}},
                                         Case{"hourglass", hourglass, {"x", "down", "mix", "up", "gain"}},
                                         Case{"rotary", rotary, {"x", "gain", "wq", "wk", "wv", "wo"}}),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr double kTolerance = 2e-5;  // a few layers of f32 roundings

TEST_P(Programs, devices_agree_with_the_evaluator) {
  Program program = GetParam().make();
  GraphRunOptions options{.gradients = true, .wrt = GetParam().wrt};
  std::vector<graph::Tensor> want = runGraph(program.graph, program.leaves, options);
  for (const std::string& device : devicesUnderTest()) {
    options.device = device;
    options.opened = openedDevice(device);
    expectClose(runGraph(program.graph, program.leaves, options), want, kTolerance, device);
  }
}

TEST_P(Programs, passes_can_be_left_out) {
  Program program = GetParam().make();
  GraphRunOptions options{.gradients = true, .wrt = GetParam().wrt};
  std::vector<graph::Tensor> want = runGraph(program.graph, program.leaves, options);
  for (const std::string& device : devicesUnderTest()) {
    for (const char* pass : {"simplify", "splitReductions", "fuse", "planBuffers", "mergeDispatches", "kernels"}) {
      options.device = device;
      options.opened = openedDevice(device);
      options.disable = {pass};
      expectClose(runGraph(program.graph, program.leaves, options), want, kTolerance, device + " without " + pass);
    }
  }
}

TEST_P(Programs, planned_and_unplanned_are_equal_bit_for_bit) {
  Program program = GetParam().make();
  GraphRunOptions options{.device = "reference", .opened = openedDevice("reference"), .gradients = true, .wrt = GetParam().wrt};
  std::vector<graph::Tensor> planned = runGraph(program.graph, program.leaves, options);
  options.disable = {"planBuffers"};
  std::vector<graph::Tensor> unplanned = runGraph(program.graph, program.leaves, options);
  expectEqualBits(unplanned, planned, "unplanned");
}

TEST_P(Programs, merged_and_single_dispatches_are_equal_bit_for_bit) {
  Program program = GetParam().make();
  GraphRunOptions options{.gradients = true, .wrt = GetParam().wrt};
  for (const std::string& device : devicesUnderTest()) {
    options.device = device;
    options.opened = openedDevice(device);
    options.disable = {};
    std::vector<graph::Tensor> merged = runGraph(program.graph, program.leaves, options);
    options.disable = {"mergeDispatches"};
    std::vector<graph::Tensor> single = runGraph(program.graph, program.leaves, options);
    expectEqualBits(single, merged, device);
  }
}

TEST_P(Programs, kernel_passes_change_no_bit) {
  Program program = GetParam().make();
  GraphRunOptions options{
      .device = "reference", .opened = openedDevice("reference"), .gradients = true, .wrt = GetParam().wrt, .disable = {"kernels"}};
  std::vector<graph::Tensor> plain = runGraph(program.graph, program.leaves, options);
  options.disable = {};
  expectEqualBits(runGraph(program.graph, program.leaves, options), plain, "all");
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) {
    options.disable = {std::string(pass.name)};
    expectEqualBits(runGraph(program.graph, program.leaves, options), plain, "without " + options.disable[0]);
  }
}

}  // namespace
}  // namespace lockstep
