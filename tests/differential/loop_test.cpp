// SPDX-License-Identifier: Apache-2.0
// Loops beside the same steps without one, and beside the f64 evaluator: values and gradients, on each device.
#include <gtest/gtest.h>

#include "frontend/lockstep.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/differential/leaf_values.h"

namespace lockstep {
namespace {

struct Case {
  std::string name;
  std::vector<InputSpec> inputs;
  std::function<Tensor(const Inputs&)> loss;
};

graph::Graph traced(const Module* model, const Case& one) {
  const auto loss = [&](const Module&, const Inputs& in) -> Outputs { return one.loss(in); };
  return detail::traceFunction(model, one.inputs, loss, graph::OutputKind::Loss, Where::current());
}

/// The loss and all gradients beside the evaluator: on every device, and on the reference also without loops.
void check(const Module* model, const Case& one, double tolerance = 1e-5) {
  const graph::Graph graph = traced(model, one);
  const graph::LeafValues values = leafValues(graph, 0.3);
  std::vector<std::string> wrt;
  for (const auto& [name, value] : values) {
    if (isFloat(value.type.dtype)) wrt.push_back(name);
  }
  GraphRunOptions options{.gradients = true, .wrt = wrt};
  const std::vector<graph::Tensor> want = runGraph(graph, values, options);
  for (const std::string& device : devicesUnderTest()) {
    options.device = device;
    options.opened = openedDevice(device);
    options.disable = {};
    expectClose(runGraph(graph, values, options), want, tolerance, one.name + " on " + device);
    if (device != "reference") continue;
    options.disable = {"loops"};
    expectClose(runGraph(graph, values, options), want, tolerance, one.name + " unrolled on " + device);
  }
}

struct Empty : Module {};

TEST(Loop, recurrent_layers_agree_with_the_evaluator) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 5, 7, {.layers = 2, .bidirectional = true}};
    nn::LSTM lstm{*this, "lstm", 14, 16};
  } model;
  check(&model, {.name = "gru and lstm", .inputs = {{"x", f32(3, 6, 5)}}, .loss = [&](const Inputs& in) {
                   const Tensor y = model.gru(in["x"]).y;
                   const Tensor lengths = arange(3) * 2 + 2;  // 2, 4 and 6 of 6
                   return mean(square(model.lstm(y, {}, lengths).y)) + mean(model.lstm(y).state.c);
                 }});
}

TEST(Loop, bodies_read_what_is_around_them) {
  Empty model;
  const Case one{
      .name = "captures", .inputs = {{"x", f32(6, 4, 3)}, {"w", f32(3, 3)}, {"b", f32(3)}, {"h", f32(4, 3)}}, .loss = [](const Inputs& in) {
        const Tensor scale = exp(in["b"]);
        const LoopResult made = scan(
            [&](const std::vector<Tensor>& carry, const std::vector<Tensor>& slices) -> LoopStep {
              const Tensor next = tanh(matmul(carry[0], in["w"]) * scale + matmul(slices[0], in["w"]) + in["b"]);
              return {{next, carry[1] + mean(next)}, {next * slices[0], softmax(next, -1)}};
            },
            {in["h"], zeros({})}, {in["x"]}, {.reverse = true});
        return mean(made.results[0]) + sum(square(made.results[1])) + sum(made.carry[0]) + made.carry[1] + mean(square(made.history[0]));
      }};
  check(&model, one);
}

TEST(Loop, inside_of_a_loop) {
  Empty model;
  const Case one{.name = "nested", .inputs = {{"x", f32(3, 4, 5)}, {"w", f32(5, 5)}}, .loss = [](const Inputs& in) {
                   const LoopResult rows = scan(
                       [&](const std::vector<Tensor>& outer, const std::vector<Tensor>& slices) -> LoopStep {
                         const LoopResult inner = scan(
                             [&](const std::vector<Tensor>& h, const std::vector<Tensor>& step) -> LoopStep {
                               return {{tanh(reshape(matmul(expand_dims(h[0], 0), in["w"]), {5}) + step[0] + outer[0])}};
                             },
                             {zeros({5})}, {slices[0]});
                         return {{inner.carry[0]}, {inner.history[0]}};
                       },
                       {zeros({5})}, {in["x"]});
                   return mean(square(rows.results[0])) + mean(rows.carry[0]);
                 }};
  check(&model, one);
}

TEST(Loop, steps_without_slices) {
  Empty model;
  check(&model, {.name = "no slices", .inputs = {{"h", f32(64)}}, .loss = [](const Inputs& in) {
                   return sum(scan([](const std::vector<Tensor>& h,
                                      const std::vector<Tensor>&) -> LoopStep { return {{h[0] * 1.5 + square(h[0])}}; },
                                   {in["h"]}, {}, {.steps = 5})
                                  .carry[0]);
                 }});
}

TEST(Loop, integers_are_carried_and_sliced) {
  Empty model;
  check(&model, {.name = "integers", .inputs = {{"x", f32(5, 8)}}, .loss = [](const Inputs& in) {
                   const LoopResult made = scan(
                       [&](const std::vector<Tensor>& carry, const std::vector<Tensor>& slices) -> LoopStep {
                         const Tensor even = equal(carry[1] / 2 * 2, carry[1]);
                         const Tensor next = where(even, slices[0], carry[0] * cast(slices[1], f32));
                         return {{next, carry[1] + 1}, {index_select(in["x"], 0, expand_dims(slices[1], 0))}};
                       },
                       {zeros({8}), zeros({}, DType::I32)}, {in["x"], arange(5)});
                   return sum(made.carry[0] * 1.0) + mean(square(made.history[0])) + mean(square(made.results[0])) +
                          cast(made.carry[1], f32);
                 }});
}

/// Gradients of dropout are its masks.
TEST(Loop, random_numbers_differ_from_step_to_step) {
  Empty model;
  const Case one{
      .name = "dropout", .inputs = {{"x", f32(6, 64)}}, .loss = [](const Inputs& in) {
        const Tensor before = dropout(in["x"], 0.5);
        const LoopResult made =
            scan([](const std::vector<Tensor>&, const std::vector<Tensor>& slices) -> LoopStep { return {{}, {dropout(slices[0], 0.5)}}; },
                 {}, {in["x"]});
        return sum(made.results[0]) + sum(before) * 0.0;
      }};
  const graph::Graph graph = traced(&model, one);
  graph::LeafValues values = leafValues(graph, 0.3);
  check(&model, one);
  std::vector<std::vector<double>> masks;
  for (const std::string device : {"evaluate", "reference"}) {
    const auto got = runGraph(graph, values, {.device = device, .opened = openedDevice(device), .gradients = true, .wrt = {"x"}});
    const std::vector<double>& gradient = got.back().data;
    for (size_t step = 0; step < 6; ++step) {
      const std::vector<double> mask(gradient.begin() + static_cast<std::ptrdiff_t>(step * 64),
                                     gradient.begin() + static_cast<std::ptrdiff_t>(step * 64 + 64));
      for (const double factor : mask) EXPECT_TRUE(factor == 0 || factor == 2) << factor;
      for (size_t other = 0; other < step; ++other) EXPECT_NE(mask, masks[masks.size() - 1 - other]);
      masks.push_back(mask);
    }
    values["random.key"].data[2] += 1;  // the next step
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NE(masks[i], masks[i + 6]);
}

/// As many steps as no driver would compile one by one, with rows that can be bound where they lie and with others.
TEST(Loop, many_steps) {
  for (const int64_t width : {16, 5}) {
    struct Model : Module {
      explicit Model(int64_t width) : gru(*this, "gru", 3, width) {}
      nn::GRU gru;
    } model(width);
    const Case one{.name = "gru of " + std::to_string(width), .inputs = {{"x", f32(4, 1031, 3)}}, .loss = [&](const Inputs& in) {
                     return mean(square(model.gru(in["x"]).y));
                   }};
    const graph::Graph graph = traced(&model, one);
    const graph::LeafValues values = leafValues(graph, 0.3);
    GraphRunOptions options{.gradients = true};
    const std::vector<graph::Tensor> want = runGraph(graph, values, options);
    for (const std::string& device : devicesUnderTest()) {
      options.device = device;
      options.opened = openedDevice(device);
      expectClose(runGraph(graph, values, options), want, 2e-5, one.name + " on " + device);
    }
  }
}

}  // namespace
}  // namespace lockstep
