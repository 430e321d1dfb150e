// SPDX-License-Identifier: Apache-2.0
// Loops: that what is compiled does not grow with the number of iterations, and neither do temporaries.
#include <gtest/gtest.h>

#include <algorithm>

#include "examples/models/deep_models.h"
#include "frontend/lockstep.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"

namespace lockstep {
namespace {

passes::CompileOptions optionsFor(const graph::Graph& graph, std::string_view profile) {
  passes::CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.optimizer = detail::optimizerConfig(adam({.lr = 0.001}), graph.parameters);
  options.templates = detail::templateSource();
  return options;
}

/// Training of a GRU over so many steps.
graph::Graph gru(int64_t steps) {
  const examples::DeepCase one = examples::deepCase("gru", steps);
  return detail::traceFunction(one.model.get(), one.inputs, one.loss, graph::OutputKind::Loss, Where::current());
}

struct Counts {
  size_t traced = 0, commands = 0, kernels = 0, in_loops = 0;
  uint32_t levels = 0;
};

Counts countsOf(int64_t steps, std::string_view profile) {
  const graph::Graph graph = gru(steps);
  const passes::Compiled compiled = passes::compile(graph, optionsFor(graph, profile)).orThrow();
  Counts counts{.traced = graph.nodes.size(),
                .commands = compiled.program.commands.size(),
                .kernels = compiled.program.kernels.size(),
                .levels = compiled.program.levelCount()};
  counts.in_loops = static_cast<size_t>(std::ranges::count_if(
      compiled.program.commands, [&](const program::Command& command) { return compiled.program.loopOf(command.level) != nullptr; }));
  EXPECT_EQ(compiled.program.loops.size(), 2U);  // forward and backward
  for (const program::Loop& loop : compiled.program.loops) EXPECT_EQ(loop.iterations, steps);
  return counts;
}

/// The product, then the gates; on the way back the gates, then the product. Where a kernel binds 8 tensors, the gates on the way back are
/// several kernels. Chains of rows do each way in one level.
TEST(Loops, a_step_of_a_gru_takes_two_levels_each_way) {
  const graph::Graph graph = gru(512);
  struct Case {
    uint32_t bindings;
    std::vector<std::string> disabled;
    uint32_t forward, backward;
  };
  for (const Case& one : {Case{256, {"chainRows"}, 2, 2}, Case{8, {}, 2, 5}, Case{256, {}, 1, 1}}) {
    passes::CompileOptions options = optionsFor(graph, "portable");
    options.profile.max_storage_buffers = one.bindings;
    options.disabled = one.disabled;
    const std::vector<program::Loop> loops = passes::compile(graph, options).orThrow().program.loops;
    ASSERT_EQ(loops.size(), 2U);
    EXPECT_EQ(loops[0].last - loops[0].first + 1, one.forward) << one.bindings;
    EXPECT_EQ(loops[1].last - loops[1].first + 1, one.backward) << one.bindings;
  }
}

TEST(Loops, what_is_compiled_does_not_grow_with_the_steps) {
  for (const std::string_view profile : {"portable", "cpu", "webgpu_default"}) {
    const Counts few = countsOf(32, profile), many = countsOf(4096, profile);
    EXPECT_EQ(few.traced, many.traced) << profile;
    EXPECT_EQ(few.in_loops, many.in_loops) << profile;
    // The gradients of the parameters are sums over all steps, and a long sum is split.
    EXPECT_LE(many.kernels, few.kernels + 3) << profile;
    EXPECT_LE(many.commands, few.commands + 4) << profile;
    EXPECT_LE(many.levels, few.levels + 2) << profile;
  }
}

/// Per step, what is kept is rows of stacks: no gradient of a matrix, and no temporaries.
TEST(Loops, temporaries_live_within_an_iteration) {
  const auto bytesFor = [](int64_t steps) {
    const graph::Graph graph = gru(steps);
    return passes::compile(graph, optionsFor(graph, "portable")).orThrow().plan.workspace_bytes;
  };
  const uint64_t per_step = (bytesFor(1024) - bytesFor(512)) / 512;
  const uint64_t row = 32 * 64 * sizeof(float), gates = 3 * row;
  // The shares of x and of h forward and backward, their two gradients, the states, their gradients and the cotangents of the states.
  EXPECT_LE(per_step, 4 * gates + 3 * row);
  EXPECT_LT(row, per_step);
}

TEST(Loops, unrolled_where_that_is_asked_for) {
  const graph::Graph graph = gru(5);
  passes::CompileOptions options = optionsFor(graph, "portable");
  options.disabled = {"loops"};
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  EXPECT_TRUE(compiled.program.loops.empty());
  EXPECT_GT(compiled.program.commands.size(), countsOf(5, "portable").commands);
}

/// A buffer of rows that a loop goes on with: what it is, and another value made of what it was.
graph::Graph keptRows(bool reads_before) {
  struct Kept : Module {
    Buffer rows{*this, "rows", {64, 256}};
  };
  const Kept kept;
  const auto body = [&](const Module&, const Inputs& in) -> Outputs {
    const auto step = [](const std::vector<Tensor>& now, const std::vector<Tensor>& slices) -> LoopStep {
      return {.carry = {write_rows(now[0], slices[0], slices[1], 0)}, .results = {sum(now[0], 0)}};
    };
    Tensor first = kept.rows;
    if (reads_before) first = write_rows(first, narrow(in["x"], 0, 0, 1) * 2.0, squeeze(narrow(in["at"], 0, 0, 1), 0), 0);
    const LoopResult made = scan(step, {first}, {expand_dims(in["x"], 1), in["at"]});
    kept.rows.update(made.carry[0]);
    if (!reads_before) return made.results[0];
    return {{"sums", made.results[0]}, {"before", sum(first, 1)}};
  };
  return detail::traceFunction(&kept, {{"x", f32(8, 256)}, {"at", i32(8)}}, body, graph::OutputKind::Result, Where::current(), true);
}

/// Copies that move the whole state.
int64_t largeCopies(const passes::Compiled& compiled) {
  return std::ranges::count_if(compiled.program.commands, [](const program::Command& command) {
    const auto* copy = std::get_if<program::Copy>(&command.action);
    return copy != nullptr && copy->source.size == 64 * 256 * sizeof(float);
  });
}

TEST(Loops, a_buffer_that_a_loop_writes_rows_of_stays_in_its_place) {
  for (const std::string_view profile : {"portable", "cpu", "webgpu_default"}) {
    passes::CompileOptions options;
    options.profile = program::findProfile(profile).orThrow();
    options.templates = detail::templateSource();
    EXPECT_EQ(largeCopies(passes::compile(keptRows(false), options).orThrow()), 0) << profile;
    // Another version of it is read beside the loop, which has to wait for that or work on a copy.
    EXPECT_GT(largeCopies(passes::compile(keptRows(true), options).orThrow()), 0) << profile;
  }
}

/// Above the limit there is no other order to try, and the error says what it would take.
TEST(Loops, memory_limit_is_an_error) {
  const graph::Graph graph = gru(64);
  passes::CompileOptions options = optionsFor(graph, "portable");
  options.memory_limit = 1 << 20;
  const auto compiled = passes::compile(graph, options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics().front().code, "planBuffers.memory");
}

}  // namespace
}  // namespace lockstep
