// SPDX-License-Identifier: Apache-2.0
// What the layers of state-space models keep in memory on a GPU, and what they do not write there.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/lockstep.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/graph/grad.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using Body = std::function<Tensor(const Inputs&)>;

passes::CompileOptions onGpu() {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 132;
  options.templates = detail::templateSource();
  return options;
}

/// The sum of the results times weights of their own, with the gradients towards all inputs.
passes::Compiled withGradients(const std::vector<InputSpec>& inputs, const Body& body) {
  const Module none;
  std::vector<std::string> names;
  for (const InputSpec& input : inputs) names.push_back(input.name);
  graph::Graph graph = detail::traceFunction(
      &none, inputs, [&](const Module&, const Inputs& in) -> Outputs { return sum(sin(body(in))); }, graph::OutputKind::Loss,
      Where::current());
  return passes::compile(passes::grad(graph, {.wrt = names}).orThrow(), onGpu()).orThrow();
}

/// Values of at least so many bytes that kernels leave for others.
int64_t largeTemporaries(const passes::Compiled& compiled, int64_t bytes) {
  return std::ranges::count_if(compiled.program.buffers, [&](const program::Buffer& buffer) {
    return buffer.role == program::ArenaRole::Workspace && static_cast<int64_t>(buffer.type.byteSize()) >= bytes;
  });
}

int64_t dispatchesOf(const passes::Compiled& compiled, std::string_view label) {
  return std::ranges::count(compiled.program.commands, label, &program::Command::label);
}

/// Four products of what flows back with the shifted input would be as many large values. There are the sine of y, what flows back
/// to y, and what flows back to x with its padding.
TEST(StateSpacePlans, gradients_of_taps_are_summed_as_they_are_read) {
  const int64_t batch = 2, length = 512, channels = 256, taps = 4;
  const passes::Compiled compiled =
      withGradients({{"x", f32(batch, length, channels)}, {"w", f32(channels, taps)}, {"bias", f32(channels)}},
                    [](const Inputs& in) { return causal_conv1d(in["x"], in["w"], {.bias = in["bias"]}).y; });
  EXPECT_EQ(largeTemporaries(compiled, 4 * batch * length * channels), 3);
}

/// x, b and c are parts of what a convolution makes, as in Mamba-2: the gradient reads them where they are.
TEST(StateSpacePlans, gradients_of_scans_read_parts_in_their_place) {
  const int64_t batch = 2, length = 512, heads = 8, width = 64, states = 64, inner = heads * width;
  const passes::Compiled compiled =
      withGradients({{"x", f32(batch, length, inner + 2 * states)}, {"dt", f32(batch, length, heads)}}, [&](const Inputs& in) {
        const Tensor all = sin(in["x"]);
        const auto part = [&](int64_t start, int64_t extent) { return narrow(all, 2, start, extent); };
        const auto vectors = [&](int64_t start) { return reshape(part(start, states), {batch, length, 1, states}); };
        return ssd(reshape(part(0, inner), {batch, length, heads, width}), in["dt"], -ones({heads}), vectors(inner),
                   vectors(inner + states))
            .y;
      });
  EXPECT_EQ(dispatchesOf(compiled, "copy"), 0);
  // x times its scale is made of a part of wider rows that are in memory, and is computed where it is read.
  const int64_t of_x = 4 * batch * length * inner;
  EXPECT_EQ(largeTemporaries(compiled, of_x), 15) << "16 with it; states and squares are as large";
}

graph::Graph dual(int64_t batch, int64_t length, int64_t heads, int64_t width, int64_t states, int64_t chunk) {
  const Module none;
  const std::vector<InputSpec> inputs{{"x", f32(batch, length, heads, width)},
                                      {"dt", f32(batch, length, heads)},
                                      {"b", f32(batch, length, 1, states)},
                                      {"c", f32(batch, length, 1, states)}};
  return detail::traceFunction(
      &none, inputs,
      [&](const Module&, const Inputs& in) -> Outputs {
        return sum(sin(ssd(in["x"], in["dt"], -ones({heads}), in["b"], in["c"], {.chunk = chunk}).y));
      },
      graph::OutputKind::Loss, Where::current());
}

/// What is read inside of chunks and what is read of the states before them is one product. Its reader adds up nothing.
TEST(StateSpacePlans, one_product_makes_what_a_scan_gives) {
  const int64_t batch = 2, length = 512, heads = 8, width = 64, states = 64, chunk = 64;
  const passes::Compiled compiled = passes::compile(dual(batch, length, heads, width, states, chunk), onGpu()).orThrow();
  EXPECT_EQ(dispatchesOf(compiled, "sin"), 1);
  // What chunks add to states, the states, y, and its sine.
  const int64_t most = 4 * batch * heads * width * std::min(length, length / chunk * states);
  EXPECT_EQ(largeTemporaries(compiled, most), 4);
}

/// Decays between any two steps would be a square for each chunk and head. They are kept within blocks of 16 steps only.
TEST(StateSpacePlans, scans_keep_no_squares) {
  const int64_t batch = 2, length = 512, heads = 8, width = 16, states = 16, chunk = 128;
  const passes::Compiled compiled = passes::compile(dual(batch, length, heads, width, states, chunk), onGpu()).orThrow();
  EXPECT_EQ(largeTemporaries(compiled, 4 * batch * length * heads * chunk), 0);
}

/// On a GPU with matrix units, where a training step of Mamba-2 with 130 million parameters takes most of its time. x has 101 MB, as have y
/// and the states of chunks; the forward pass reads or writes seven such tensors besides small ones, and the sine of y and its sum three.
/// With decays as squares, and with the gradient of what the forward pass is made of, it was 0.9 and 2.3 GB more.
TEST(StateSpacePlans, scans_move_few_bytes) {
  passes::CompileOptions options = onGpu();
  options.profile.f16 = options.profile.matrix_rows = true;
  options.profile.matrix_f16 = {.m = 16, .n = 8, .k = 16};
  const graph::Graph forward = dual(8, 2048, 24, 64, 128, 128);
  const graph::Graph with_gradients = passes::grad(forward, {.wrt = {"x", "dt", "b", "c"}}).orThrow();
  const auto megabytesOf = [&](const graph::Graph& graph) {
    const passes::Compiled compiled = passes::compile(graph, options).orThrow();
    uint64_t sum = 0;
    for (const passes::CommandWork& work : compiled.work) sum += work.bytes;
    return sum / 1000000;
  };
  EXPECT_LE(megabytesOf(forward), 1200u);
  EXPECT_LE(megabytesOf(with_gradients), 5600u);
}

}  // namespace
}  // namespace lockstep
