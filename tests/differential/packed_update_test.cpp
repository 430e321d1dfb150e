// SPDX-License-Identifier: Apache-2.0
// update_slice of packed states from any element on: the neighbours in the first and the last word stay.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::Builder;
using graph::DType;
using graph::OutputKind;
using graph::Shape;
using graph::ValueId;
using graph::testing::addInput;

constexpr std::array kPacked{DType::F16, DType::BF16, DType::I8, DType::U8, DType::U16};

ValueId addState(Builder& b, DType dtype, const Shape& shape) {
  return b.make("state", {}, {{"name", "s"}, {"dtype", dtype}, {"shape", shape.extents()}, {"init", 1.0}});
}

ValueId updated(Builder& b, ValueId state, ValueId value, int64_t offset) {
  return b.make("update_slice", {state, value}, {{"offset", offset}});
}

/// Runs the graph twice with random inputs: all outputs and the state are the evaluator's on each device.
void expectSame(const graph::Graph& graph, const std::string& what) {
  std::mt19937 random(3);
  ValueMap inputs;
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node& node = graph[id];
    if (graph::leafKind(node) != graph::LeafKind::Input) continue;
    const graph::TensorType& type = graph.typeOf(node.results.front());
    inputs.emplace(node.attributes.get<std::string>("name"), graph::testing::randomTensor(type, 2, 100, random).data);
  }
  const std::unique_ptr<GraphRunner> evaluator = makeEvaluatingRunner(graph, {}).orThrow();
  std::vector<StepOutputs> want;
  std::vector<std::vector<double>> states;
  for (int step = 0; step < 2; ++step) {
    want.push_back(evaluator->step(inputs).orThrow());
    states.push_back(evaluator->readState("s").orThrow());
  }
  for (const std::string& name : devicesUnderTest()) {
    passes::CompileOptions options;
    const std::unique_ptr<GraphRunner> device = makeDeviceRunner(graph, options, *openedDevice(name)).orThrow();
    for (size_t step = 0; step < want.size(); ++step) {
      EXPECT_EQ(device->step(inputs).orThrow(), want[step]) << what << " on " << name << ", step " << step;
      EXPECT_EQ(device->readState("s").orThrow(), states[step]) << what << " on " << name << ", step " << step;
    }
  }
}

/// One update with a value that a map computes.
graph::Graph oneUpdate(DType dtype, int64_t room, int64_t offset, int64_t size) {
  Builder b;
  const ValueId state = addState(b, dtype, Shape{room});
  b.output(OutputKind::NextState, "s", updated(b, state, addInput(b, "v", {dtype, Shape{size}}), offset));
  return b.take();
}

struct Commands {
  size_t dispatches = 0, copies = 0;
};

Commands commandsOf(const graph::Graph& graph) {
  passes::CompileOptions options;
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  Commands commands;
  for (const program::Command& command : compiled.program.commands) {
    commands.dispatches += std::holds_alternative<program::Dispatch>(command.action) ? 1 : 0;
    commands.copies += std::holds_alternative<program::Copy>(command.action) ? 1 : 0;
  }
  return commands;
}

TEST(PackedUpdate, begins_and_ends_anywhere) {
  for (const DType dtype : kPacked) {
    for (const int64_t room : {1, 3, 65, 257}) {
      for (const int64_t offset : {0, 1, 2, 3, 5, 63, 64}) {
        for (const int64_t size : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{33}, room - offset}) {
          if (size < 1 || offset + size > room) continue;
          expectSame(oneUpdate(dtype, room, offset, size), fmt::format("{} of {} {} from {} on", size, room, toString(dtype), offset));
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(PackedUpdate, of_a_state_of_several_axes) {
  Builder b;
  const ValueId state = addState(b, DType::BF16, Shape{3, 33});
  const ValueId value = b.make("cast", {addInput(b, "v", {DType::F32, Shape{2, 11}})}, {{"dtype", DType::BF16}});
  b.output(OutputKind::NextState, "s", updated(b, state, value, 7));
  expectSame(b.graph(), "rows");
}

TEST(PackedUpdate, of_one_element) {
  Builder b;
  const ValueId state = addState(b, DType::U8, Shape{9});
  b.output(OutputKind::NextState, "s", updated(b, state, addInput(b, "v", {DType::U8, Shape{}}), 6));
  expectSame(b.graph(), "scalar");
}

TEST(PackedUpdate, several_share_words_and_versions_are_read) {
  for (const DType dtype : kPacked) {
    Builder b;
    const ValueId state = addState(b, dtype, Shape{41});
    const ValueId first = updated(b, state, addInput(b, "a", {dtype, Shape{3}}), 1);
    const ValueId second = updated(b, first, addInput(b, "b", {dtype, Shape{5}}), 3);
    const ValueId third = updated(b, second, addInput(b, "c", {dtype, Shape{1}}), 40);
    const ValueId fourth = updated(b, third, addInput(b, "d", {dtype, Shape{8}}), 16);
    b.output(OutputKind::Result, "before", state);
    b.output(OutputKind::Result, "between", second);
    b.output(OutputKind::Result, "after", fourth);
    b.output(OutputKind::NextState, "s", fourth);
    expectSame(b.graph(), std::string(toString(dtype)));
  }
}

TEST(PackedUpdate, of_a_window_leaves_the_rest) {
  Builder b;
  const ValueId state = addState(b, DType::BF16, Shape{1000});
  const ValueId version = updated(b, state, addInput(b, "v", {DType::BF16, Shape{33}}), 501);
  b.output(OutputKind::Result, "after", version);
  b.output(OutputKind::NextState, "s", version);
  expectSame(b.graph(), "window");
}

TEST(PackedUpdate, of_the_own_elements_moved) {
  Builder b;
  const ValueId state = addState(b, DType::I8, Shape{65});
  const ValueId moved = b.make("narrow", {state}, {{"axis", int64_t{0}}, {"start", int64_t{5}}, {"length", int64_t{31}}});
  b.output(OutputKind::NextState, "s", updated(b, state, moved, 2));
  expectSame(b.graph(), "moved");
}

TEST(PackedUpdate, that_shares_words_is_one_dispatch_in_the_states_bytes) {
  for (const auto& [offset, size] : {std::pair<int64_t, int64_t>{1, 256}, {1, 255}}) {
    const Commands commands = commandsOf(oneUpdate(DType::BF16, 257, offset, size));
    EXPECT_EQ(commands.dispatches, 1u) << offset << ", " << size;
    EXPECT_EQ(commands.copies, 0u) << offset << ", " << size;
  }
}

TEST(PackedUpdate, of_whole_words_only_copies) {
  for (const auto& [offset, size] : {std::pair<int64_t, int64_t>{0, 257}, {0, 256}, {256, 1}}) {
    const Commands commands = commandsOf(oneUpdate(DType::BF16, 257, offset, size));
    EXPECT_EQ(commands.dispatches, 0u) << offset << ", " << size;
    EXPECT_EQ(commands.copies, 1u) << offset << ", " << size;
  }
}

}  // namespace
}  // namespace lockstep
