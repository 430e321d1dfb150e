// SPDX-License-Identifier: Apache-2.0
// Scans of state-space models at all kinds of lengths and chunks: gradients of every operand beside central differences, decompositions and
// templates on each device beside the f64 evaluator, and what they keep in memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/graph/decompose.h"
#include "passes/graph/grad.h"
#include "passes/pipeline.h"
#include "tests/differential/compare.h"
#include "tests/differential/matrix_devices.h"
#include "tests/differential/traced_inputs.h"
#include "tests/ir/ops/op_case.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using graph::Builder;
using graph::OutputKind;
using graph::Shape;
using graph::ValueId;
using graph::testing::addInput;
using graph::testing::randomTensor;
using graph::testing::weightedSum;

enum class Kind : uint8_t { Euler, Hold, Dual };
struct ScanCase {
  Kind kind = Kind::Euler;
  int64_t length = 1, chunk = 1;
  [[nodiscard]] std::string name() const {
    constexpr std::string_view kNames[] = {"euler", "hold", "dual"};
    return fmt::format("{}_{}_in_{}", kNames[static_cast<size_t>(kind)], length, chunk);
  }
};
void PrintTo(const ScanCase& one, std::ostream* out) { *out << one.name(); }

/// All operands are inputs, the initial state too. The loss weighs both results at random.
struct Model {
  explicit Model(const ScanCase& c, int64_t batch = 2, int64_t channels = 3, int64_t states = 2) {
    std::vector<ValueId> operands;
    graph::Attributes attributes{{"chunk", c.chunk}};
    if (c.kind == Kind::Dual) {
      const int64_t heads = 4, groups = 2;
      const Shape of_groups{batch, c.length, groups, 1, states};
      operands = {add("x", {batch, c.length, heads, 1, channels}, -1, 1),
                  add("scale", {batch, c.length, heads}, 0.1, 1),
                  add("log_decay", {batch, c.length, heads}, -1, -0.01),
                  add("b", of_groups, -1, 1),
                  add("c", of_groups, -1, 1),
                  add("initial", {batch, heads, channels, states}, -1, 1)};
      results = builder.makeAll("ssd", operands, attributes);
    } else {
      attributes.set("zero_order_hold", c.kind == Kind::Hold);
      const Shape of_channels{batch, c.length, channels}, of_states{batch, c.length, states};
      operands = {add("u", of_channels, -1, 1), add("delta", of_channels, 0.01, 0.6), add("a", {channels, states}, -2, -0.05),
                  add("b", of_states, -1, 1),   add("c", of_states, -1, 1),           add("initial", {batch, channels, states}, -1, 1)};
      results = builder.makeAll("selective_scan", operands, attributes);
    }
    const ValueId loss = builder.add(weightedSum(builder, results[0], "weight_y", leaves, random),
                                     weightedSum(builder, results[1], "weight_state", leaves, random));
    builder.output(OutputKind::Loss, "loss", loss);
    builder.output(OutputKind::Result, "y", results[0]);
    builder.output(OutputKind::Result, "state", results[1]);
  }
  ValueId add(const std::string& name, const Shape& shape, double lo, double hi) {
    const graph::TensorType type{graph::DType::F32, shape};
    leaves.emplace(name, randomTensor(type, lo, hi, random));
    names.push_back(name);
    return addInput(builder, name, type);
  }
  std::mt19937 random{7};
  Builder builder;
  graph::LeafValues leaves;
  std::vector<std::string> names;
  std::vector<ValueId> results;
};

class Scans : public testing::TestWithParam<ScanCase> {};

TEST_P(Scans, gradients_match_central_differences) {
  Model model(GetParam());
  const graph::Graph& graph = model.builder.graph();
  const std::vector<graph::Tensor> outputs = runGraph(graph, model.leaves, {.gradients = true, .wrt = model.names});
  for (size_t n = 0; n < model.names.size(); ++n) {
    const graph::Tensor& gradient = outputs[outputs.size() - model.names.size() + n];
    const graph::Tensor direction = randomTensor(gradient.type, -1, 1, model.random);
    const auto lossAt = [&](double step) {
      graph::LeafValues moved = model.leaves;
      std::vector<double>& data = moved.at(model.names[n]).data;
      for (size_t i = 0; i < data.size(); ++i) data[i] += step * direction.data[i];
      return runGraph(graph, moved).front().data.front();
    };
    constexpr double kStep = 1e-5;
    const double expected = (lossAt(kStep) - lossAt(-kStep)) / (2 * kStep);
    double actual = 0, magnitude = 1;
    for (size_t i = 0; i < direction.data.size(); ++i) {
      actual += direction.data[i] * gradient.data[i];
      magnitude += std::abs(direction.data[i] * gradient.data[i]);
    }
    EXPECT_NEAR(actual, expected, 2e-7 * magnitude) << model.names[n];
  }
}

/// In f64, so that what chunks do wrong is not taken for rounding.
TEST_P(Scans, chunks_give_what_single_steps_give) {
  Model model(GetParam());
  const graph::Graph differentiated = passes::grad(model.builder.graph(), {.wrt = model.names}).orThrow();
  const graph::Graph chunked = passes::decompose(differentiated).orThrow();
  const std::vector<graph::Tensor> want = graph::testing::run(differentiated, model.leaves),
                                   got = graph::testing::run(chunked, model.leaves);
  ASSERT_EQ(got.size(), want.size());
  for (size_t output = 0; output < want.size(); ++output) {
    for (size_t i = 0; i < want[output].data.size(); ++i) {
      const double wanted = want[output].data[i];
      ASSERT_NEAR(got[output].data[i], wanted, 1e-10 * std::max(1.0, std::abs(wanted))) << "output " << output << ", element " << i;
    }
  }
}

TEST_P(Scans, devices_agree_with_the_evaluator) {
  Model model(GetParam());
  const graph::Graph& graph = model.builder.graph();
  GraphRunOptions options{.gradients = true, .wrt = model.names};
  const auto results = [&] {
    std::vector<graph::Tensor> all = runGraph(graph, model.leaves, options);
    all.erase(all.begin());  // the loss: a sum that cancels
    return all;
  };
  const std::vector<graph::Tensor> want = results();
  for (const std::string& device : devicesUnderTest()) {
    const detail::Device gpu = asGpu(*openedDevice(device));
    for (const bool is_gpu : {false, true}) {
      options.device = device;
      options.opened = is_gpu ? &gpu : openedDevice(device);
      for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"template:selective_scan"}}) {
        if (!disabled.empty() && (GetParam().kind == Kind::Dual || is_gpu)) continue;
        options.disable = disabled;
        const std::string what = fmt::format("{}{} without {}", device, is_gpu ? " as a GPU" : "", fmt::join(disabled, ", "));
        std::vector<graph::Tensor> got = results();
        // WGSL's exp may be off by 3 units in the last place at every step, always to one side, and gradients see that twice.
        expectClose({got.begin() + 2, got.end()}, {want.begin() + 2, want.end()}, 1e-5, what);
        got.resize(2);
        expectClose(got, {want.begin(), want.begin() + 2}, 4e-6, what);
      }
    }
  }
}

std::vector<ScanCase> scanCases() {
  std::vector<ScanCase> cases;
  for (const Kind kind : {Kind::Euler, Kind::Hold, Kind::Dual}) {
    for (const int64_t length : {1, 2, 7, 64, 300}) {
      for (const int64_t chunk : {1, 3, 16, 64, 1000}) cases.push_back({kind, length, chunk});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, Scans, testing::ValuesIn(scanCases()), [](const auto& info) { return info.param.name(); });

TEST(LongScans, a_hundred_thousand_steps) {
  for (const Kind kind : {Kind::Euler, Kind::Dual}) {
    Model model({kind, 100003, kind == Kind::Dual ? 64 : 16}, 1, 2, 2);
    GraphRunOptions options{.gradients = true, .wrt = model.names};
    std::vector<graph::Tensor> want = runGraph(model.builder.graph(), model.leaves, options);
    for (const std::string& device : devicesUnderTest()) {
      options.device = device;
      options.opened = openedDevice(device);
      std::vector<graph::Tensor> got = runGraph(model.builder.graph(), model.leaves, options);
      got[0] = want[0];
      expectClose(got, want, 1e-5, device);
    }
  }
}

/// Steps from e^-100 to 100 with rates from almost nothing to large: nothing overflows, and no digits are lost.
TEST(ScansAtTheEnds, selective_scan) {
  for (const Discretisation rule : {Discretisation::Euler, Discretisation::ZeroOrderHold}) {
    TracedInputs input;
    const Tensor u = input("u", {1, 40, 5}), delta = input("delta", {1, 40, 5}), a = input("a", {5, 4}), b = input("b", {1, 40, 4}),
                 c = input("c", {1, 40, 4});
    input.set("delta", {-100, -20, -3, 20, 100});
    input.set("a", {0, -1e-7, -0.3, -50});
    input.check(selective_scan(u, delta, a, b, c, {.softplus = true, .discretisation = rule, .chunk = 8}).y, u);
  }
}

/// A difference of two sums of logarithms would have three digits here, after the large step.
TEST(ScansAtTheEnds, ssd_with_a_large_step_before_small_ones) {
  TracedInputs input;
  const Tensor x = input("x", {1, 64, 2, 3}), dt = input("dt", {1, 64, 2}, 0.001, 0.01), a = input("a", {2}, -16, -1),
               b = input("b", {1, 64, 1, 4}), c = input("c", {1, 64, 1, 4});
  input.leaves.at("dt").data[4] = input.leaves.at("dt").data[5] = 1000;
  input.check(ssd(x, dt, a, b, c, {.chunk = 64}).y, x);
}

/// Next to nothing flows over the large steps, and the gradient of a has it times a large step: sums of what flows elsewhere must not get
/// into it.
TEST(ScansAtTheEnds, ssd_with_steps_that_nearly_nothing_crosses) {
  for (const double step : {2.0, 12.0, 16.0, 17.0, 80.0}) {
    TracedInputs input;
    const Tensor x = input("x", {1, 150, 2, 3}), dt = input("dt", {1, 150, 2}, 0.001, 0.01), a = input("a", {2}, -1.1, -0.9),
                 b = input("b", {1, 150, 1, 4}), c = input("c", {1, 150, 1, 4});
    for (const size_t t : {3, 40, 63, 64, 65, 100}) input.leaves.at("dt").data[2 * t] = input.leaves.at("dt").data[2 * t + 1] = step;
    input.check(ssd(x, dt, a, b, c, {.chunk = 64}).y, x);
  }
}

/// The scan of ssd as a line of ordinary ops.
Tensor stepByStep(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c) {
  const int64_t heads = x.extent(2), width = x.extent(3), states = b.extent(3);
  const auto at = [](Tensor all, int64_t t) { return narrow(all, 1, t, 1); };
  Tensor state = zeros({1, heads, width, states});
  std::vector<Tensor> y;
  for (int64_t t = 0; t < x.extent(1); ++t) {
    const Tensor step = reshape(at(dt, t), {heads}), decay = reshape(exp(step * a), {1, heads, 1, 1});
    const Tensor input = reshape(at(x, t), {1, heads, width, 1}) * reshape(step, {1, heads, 1, 1});
    state = state * decay + input * reshape(at(b, t), {1, 1, 1, states});
    y.push_back(sum(state * reshape(at(c, t), {1, 1, 1, states}), 3));
  }
  return stack(y, 1);
}

/// In f64, beside an implementation that has no chunks. Where all other steps are near 0 the gradient of a is what little flows over the
/// large ones.
TEST(ScansAtTheEnds, gradients_of_ssd_are_exact_where_next_to_nothing_is_left) {
  for (const double other : {1e-6, 0.01, 1.0}) {
    const auto gradients = [&](bool in_chunks) {
      TracedInputs input;
      const Tensor x = input("x", {1, 45, 2, 3}), dt = input("dt", {1, 45, 2}), a = input("a", {2}, -1.1, -0.9),
                   b = input("b", {1, 45, 1, 4}), c = input("c", {1, 45, 1, 4});
      std::vector<double>& steps = input.leaves.at("dt").data;
      std::ranges::fill(steps, other);
      for (const size_t t : {2, 5, 15, 16, 17, 31, 40}) steps[2 * t] = steps[2 * t + 1] = 12.0 + static_cast<double>(t);
      const Tensor y = in_chunks ? ssd(x, dt, a, b, c, {.chunk = 16}).y : stepByStep(x, dt, a, b, c);
      input.trace.output(OutputKind::Loss, "loss", sum(y * sin(x)));
      return runGraph(input.trace.take(), input.leaves, {.gradients = true, .wrt = input.names});
    };
    expectClose(gradients(true), gradients(false), 1e-10, fmt::format("other steps {}", other));
  }
}

/// All that is left is what a step reads of the one before it: the gradients of a and dt have all their digits.
TEST(ScansAtTheEnds, ssd_with_large_steps_alone) {
  TracedInputs input;
  const Tensor x = input("x", {1, 70, 2, 3}), dt = input("dt", {1, 70, 2}, 18, 22), a = input("a", {2}, -1.1, -0.9),
               b = input("b", {1, 70, 1, 4}), c = input("c", {1, 70, 1, 4});
  input.check(ssd(x, dt, a, b, c, {.chunk = 64}).y, x);
}

/// Without its template a scan is a loop, which has to be unrolled inside of another one.
TEST(ScansInLoops, are_right) {
  TracedInputs input;
  const Tensor u = input("u", {3, 1, 12, 2}), delta = input("delta", {1, 12, 2}, 0.01, 1), a = input("a", {2, 2}, -2, -0.1),
               b = input("b", {1, 12, 2}), c = input("c", {1, 12, 2});
  const auto body = [&](const std::vector<Tensor>& carry, const std::vector<Tensor>& row) -> LoopStep {
    const SelectiveScan one = selective_scan(row[0], delta, a, b, c, {.initial = carry[0], .chunk = 4});
    return {.carry = {one.state}, .results = {one.y}};
  };
  input.check(scan(body, {zeros({1, 2, 2})}, {u}).results[0], u);
}

TEST(ScansInLoops, ssd_is_right) {
  TracedInputs input;
  const Tensor x = input("x", {3, 1, 36, 2, 2}), dt = input("dt", {1, 36, 2}, 0.01, 1), a = input("a", {2}, -2, -0.1),
               b = input("b", {1, 36, 1, 2}), c = input("c", {1, 36, 1, 2});
  const auto body = [&](const std::vector<Tensor>& carry, const std::vector<Tensor>& row) -> LoopStep {
    const Ssd one = ssd(row[0], dt, a, b, c, {.initial = carry[0], .chunk = 32});
    return {.carry = {one.state}, .results = {one.y}};
  };
  input.check(scan(body, {zeros({1, 2, 2, 2})}, {x}).results[0], x);
}

TEST(ScansTwice, give_the_same_bits) {
  for (const Kind kind : {Kind::Euler, Kind::Hold, Kind::Dual}) {
    Model model({kind, 77, 16}, 2, 40, 8);
    for (const std::string& device : devicesUnderTest()) {
      const GraphRunOptions options{.device = device, .opened = openedDevice(device), .gradients = true, .wrt = model.names};
      const std::vector<graph::Tensor> first = runGraph(model.builder.graph(), model.leaves, options);
      expectEqualBits(runGraph(model.builder.graph(), model.leaves, options), first, device);
    }
  }
}

/// Whether the product that makes y runs by a template.
bool readsBy(std::string_view name, const graph::Graph& graph, const program::DeviceProfile& profile) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  return std::ranges::any_of(compiled.program.commands, [&](const program::Command& command) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr || command.label.find("where") == std::string::npos) return false;
    return std::get<kernel::Module>(compiled.program[dispatch->kernel].code).name == name;
  });
}

/// Large enough for tiles of quads, and for matrix units: the rows of steps and of states after them are loaded by four.
TEST(LargeScans, products_by_quads_and_by_matrix_units) {
  Model model({Kind::Dual, 250, 64}, 1, 32, 64);
  const graph::Graph& graph = model.builder.graph();
  GraphRunOptions options{.gradients = true, .wrt = model.names};
  std::vector<graph::Tensor> want = runGraph(graph, model.leaves, options);
  want.erase(want.begin());
  const auto check = [&](const std::string& name, const detail::Device& device, const std::string& what) {
    EXPECT_TRUE(readsBy(what, graph, device.chosen.info.profile)) << name;
    options.device = name;
    options.opened = &device;
    std::vector<graph::Tensor> got = runGraph(graph, model.leaves, options);
    got.erase(got.begin());  // the loss: a sum that cancels
    expectClose(got, want, 2e-5, name + " by " + what);
  };
  for (const std::string& device : devicesUnderTest()) {
    detail::Device gpu = asGpu(*openedDevice(device));
    gpu.chosen.info.profile.matrix_f16 = gpu.chosen.info.profile.matrix_bf16 = {};
    gpu.chosen.info.profile.parallel_units = 1;
    check(device, gpu, "quad_tiled");
  }
  for (const std::string& device : devicesWithMatrices()) check(device, withUnits(*openedDevice(device), 1), "matrix_tiled");
}

/// Bytes of the workspace of so many scans, each of what the one before it gives, with their gradients.
uint64_t bytesOfLayers(Kind kind, int64_t layers, const program::DeviceProfile& profile) {
  TracedInputs input;
  const int64_t length = 512, heads = 4, channels = 16, states = 16;
  const bool dual = kind == Kind::Dual;
  Tensor x = dual ? input("x", {1, length, heads, channels}) : input("x", {1, length, heads * channels});
  for (int64_t i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    const Tensor a = input("a" + number, dual ? Shape{heads} : Shape{heads * channels, states});
    const Tensor b = dual ? reshape(sum(x, {2, 3}), {1, length, 1, 1}) : sum(x, 2, {.keep_dims = true});
    const Tensor b_of_states = broadcast_to(b, dual ? std::vector<int64_t>{1, length, 1, states} : std::vector<int64_t>{1, length, states});
    x = dual ? ssd(x, sum(x, 3), a, b_of_states, b_of_states).y : selective_scan(x, x, a, b_of_states, b_of_states).y;
  }
  input.trace.output(OutputKind::Loss, "loss", sum(x));
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  options.keep_gradients = true;
  options.wrt = input.names;
  return passes::compile(input.trace.take(), options).orThrow().plan.workspace_bytes;
}

/// What a layer computes is computed again for gradients: from the forward pass on no more is kept than its operands.
TEST(ScansInMemory, a_layer_keeps_no_more_than_its_operands) {
  for (const program::DeviceProfile& profile : {program::findProfile("cpu").orThrow(), gpuProfile()}) {
    for (const Kind kind : {Kind::Euler, Kind::Dual}) {
      // The output of the layer before it, and what the test makes for dt, b and c.
      const uint64_t of_x = 4 * 512 * 64, of_others = 4 * 512 * (4 + 4 + 16),
                     growth = bytesOfLayers(kind, 8, profile) - bytesOfLayers(kind, 4, profile);
      EXPECT_LE(growth, 4 * (of_x + of_others)) << profile.name << ' ' << ScanCase{kind, 512, 16}.name();
    }
  }
}

/// The largest tensor of the workspace, in elements.
int64_t largestTensor(const Model& model, const program::DeviceProfile& profile, std::vector<std::string> disabled) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  options.keep_gradients = true;
  options.wrt = model.names;
  options.disabled = std::move(disabled);
  const passes::Compiled compiled = passes::compile(model.builder.graph(), options).orThrow();
  int64_t most = 0;
  for (const program::Buffer& buffer : compiled.program.buffers) {
    if (buffer.role == program::ArenaRole::Workspace) most = std::max(most, buffer.type.shape.elementCount());
  }
  return most;
}

/// Not even one in four of the states of all steps.
TEST(ScansInMemory, states_of_all_steps_are_nowhere) {
  const int64_t batch = 2, length = 512, channels = 32, states = 16;
  for (const program::DeviceProfile& profile :
       {program::findProfile("portable").orThrow(), program::findProfile("cpu").orThrow(), gpuProfile()}) {
    for (const Kind kind : {Kind::Euler, Kind::Hold, Kind::Dual}) {
      const int64_t chunk = 16, heads = kind == Kind::Dual ? 4 : 1;
      const Model model({kind, length, chunk}, batch, channels, states);
      const int64_t all = batch * length * heads * channels * states;
      for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"template:selective_scan"}})
        EXPECT_LE(4 * largestTensor(model, profile, disabled), all) << profile.name << ' ' << ScanCase{kind, length, chunk}.name();
    }
  }
}

}  // namespace
}  // namespace lockstep
