// SPDX-License-Identifier: Apache-2.0
// Scans whose states turn, by chunks, beside their recurrences as the papers write them: in f64 with all gradients, and on each device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "frontend/lockstep.h"
#include "tests/differential/traced_inputs.h"

namespace lockstep {
namespace {

using graph::OutputKind;
using graph::Shape;

using Built = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
struct Named {
  std::string name;
  Shape shape;
  double lo = -1, hi = 1;
};

/// Two ways to the same results, with all their gradients: in f64, and the first way on each device.
void expectSameFunctions(const std::vector<Named>& inputs, const Built& scan, const Built& steps) {
  const auto run = [&](const Built& build, const std::string& device) {
    TracedInputs input;
    std::vector<Tensor> tensors;
    for (const Named& one : inputs) tensors.push_back(input(one.name, one.shape, one.lo, one.hi));
    std::vector<Tensor> made = build(tensors);
    Tensor loss = zeros({});
    for (size_t i = 0; i < made.size(); ++i) {
      input.trace.output(OutputKind::Result, fmt::format("y{}", i), made[i]);
      loss = loss + sum(made[i] * input(fmt::format("weight{}", i), made[i].shape()));
    }
    input.trace.output(OutputKind::Loss, "loss", loss);
    GraphRunOptions options{.device = device, .opened = openedDevice(device), .gradients = true, .wrt = input.names};
    std::vector<graph::Tensor> all = runGraph(input.trace.take(), input.leaves, options);
    std::erase_if(all, [](const graph::Tensor& tensor) { return tensor.type.shape.rank() == 0; });  // the loss, a sum that cancels
    return all;
  };
  const std::vector<graph::Tensor> want = run(steps, "evaluate");
  expectClose(run(scan, "evaluate"), want, 1e-12, "in f64");
  for (const std::string& device : devicesUnderTest()) expectClose(run(scan, device), want, 1e-5, device);
}

Tensor stepOf(const Tensor& x, int64_t t) { return squeeze(narrow(x, 1, t, 1), 1); }

/// Mamba-3 as its paper writes it, one step after the other.
TEST(TrapezoidalScans, equal_their_recurrence) {
  struct Case {
    int64_t length, rank, chunk;
    bool goes_on;
  };
  for (const Case& c : {Case{1, 1, 64, true}, {7, 1, 3, false}, {7, 1, 3, true}, {10, 2, 4, true}, {5, 3, 64, false}}) {
    const int64_t batch = 2, heads = 4, groups = 2, width = 3, states = 4;
    const Shape of_steps{batch, c.length, heads}, of_groups{batch, c.length, groups, c.rank, states};
    std::vector<Named> inputs{{"x", {batch, c.length, heads, c.rank, width}},
                              {"dt", of_steps, 0.05, 0.9},
                              {"a", of_steps, -2, -0.1},
                              {"mix", of_steps, 0.1, 0.9},
                              {"theta", {batch, c.length, heads, states / 2}, -3, 3},
                              {"b", of_groups},
                              {"c", of_groups},
                              {"skip", {heads}}};
    if (c.goes_on) {
      inputs.insert(inputs.end(), {{"state", {batch, heads, width, states}},
                                   {"last_x", {batch, heads, c.rank, width}},
                                   {"last_b", {batch, heads, c.rank, states}},
                                   {"angle", {batch, heads, states / 2}}});
    }
    const auto scan = [&](const std::vector<Tensor>& in) {
      TrapezoidalOptions options{.skip = in[7], .chunk = c.chunk};
      if (c.goes_on) options.initial = TrapezoidalState{in[8], in[9], in[10], in[11]};
      const TrapezoidalScan made = trapezoidal_scan(in[0], in[1], in[2], in[3], in[4], in[5], in[6], options);
      return std::vector{made.y, made.last.state, made.last.b, made.last.angle};
    };
    const auto steps = [&](const std::vector<Tensor>& in) {
      Tensor state = c.goes_on ? in[8] : zeros({batch, heads, width, states}),
             angle = c.goes_on ? in[11] : zeros({batch, heads, states / 2});
      Tensor last_x = c.goes_on ? in[9] : zeros({batch, heads, c.rank, width}),
             last_b = c.goes_on ? in[10] : zeros({batch, heads, c.rank, states});
      std::vector<Tensor> results;
      for (int64_t t = 0; t < c.length; ++t) {
        const Tensor dt = stepOf(in[1], t), mix = stepOf(in[3], t), x = stepOf(in[0], t);
        angle = angle + stepOf(in[4], t) * reshape(dt, {batch, heads, 1});
        const Tensor co = reshape(cos(angle), {batch, heads, 1, states / 2}), si = reshape(sin(angle), {batch, heads, 1, states / 2});
        const auto turn = [&](const Tensor& v) {
          const Tensor of_heads = reshape(repeat(v, heads / groups, 1), {batch, heads, c.rank, states / 2, 2});
          const Tensor v0 = squeeze(narrow(of_heads, 4, 0, 1), 4), v1 = squeeze(narrow(of_heads, 4, 1, 1), 4);
          return reshape(stack({v0 * co + v1 * si, v1 * co - v0 * si}, 4), {batch, heads, c.rank, states});
        };
        const Tensor b = turn(stepOf(in[5], t)), out = turn(stepOf(in[6], t)), alpha = exp(dt * stepOf(in[2], t));
        const auto wide = [&](const Tensor& v) { return reshape(v, {batch, heads, 1, 1}); };
        state = wide(alpha) * state + wide((1 - mix) * dt * alpha) * matmul(swap_axes(last_x, 2, 3), last_b) +
                wide(mix * dt) * matmul(swap_axes(x, 2, 3), b);
        results.push_back(matmul(out, swap_axes(state, 2, 3)) + x * reshape(in[7], {heads, 1, 1}));
        last_x = x;
        last_b = b;
      }
      return std::vector{stack(results, 1), state, last_b, angle};
    };
    expectSameFunctions(inputs, scan, steps);
  }
}

/// Complex numbers by their parts, one step after the other.
TEST(ComplexScans, equal_their_recurrence) {
  for (const auto& [length, chunk, goes_on] : {std::tuple{int64_t{1}, int64_t{8}, true}, {9, 4, false}, {9, 4, true}, {6, 64, true}}) {
    const int64_t batch = 2, heads = 4, groups = 2, width = 3, states = 3;
    const int64_t steps_of = length, chunk_of = chunk;
    const bool has_initial = goes_on;
    const Shape of_groups{batch, length, groups, states, 2};
    std::vector<Named> inputs{{"x", {batch, length, heads, width}},
                              {"dt", {batch, length, heads}, 0.05, 0.9},
                              {"log_rate", {heads}},
                              {"frequency", {heads}, -4, 4},
                              {"b", of_groups},
                              {"c", of_groups},
                              {"skip", {heads}}};
    if (goes_on) inputs.push_back({"initial", {batch, heads, width, states, 2}});
    const auto scan = [&](const std::vector<Tensor>& in) {
      ComplexScanOptions options{.skip = in[6], .chunk = chunk_of};
      if (has_initial) options.initial = in[7];
      const ComplexScan made = complex_scan(in[0], in[1], in[2], in[3], in[4], in[5], options);
      return std::vector{made.y, made.state};
    };
    const auto steps = [&](const std::vector<Tensor>& in) {
      struct Complex {
        Tensor re, im;
        Complex operator*(const Complex& o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
      };
      const auto parts = [](const Tensor& z) {
        const int64_t axis = z.rank() - 1;
        return Complex{squeeze(narrow(z, axis, 0, 1), axis), squeeze(narrow(z, axis, 1, 1), axis)};
      };
      const Shape state{batch, heads, width, states};
      Complex h = has_initial ? parts(in[7]) : Complex{zeros(state.extents()), zeros(state.extents())};
      std::vector<Tensor> results;
      for (int64_t t = 0; t < steps_of; ++t) {
        const Tensor dt = stepOf(in[1], t), rate = -exp(in[2]), size = exp(dt * rate);
        const Complex decay{size * cos(dt * in[3]), size * sin(dt * in[3])};
        const Tensor square = rate * rate + in[3] * in[3];
        const Complex gain = Complex{decay.re - 1, decay.im} * Complex{rate / square, -in[3] / square};
        const auto of_heads = [&](const Complex& z) {
          return Complex{reshape(repeat(z.re, heads / groups, 1), {batch, heads, 1, states}),
                         reshape(repeat(z.im, heads / groups, 1), {batch, heads, 1, states})};
        };
        const auto wide = [&](const Complex& z) {
          return Complex{reshape(z.re, {batch, heads, 1, 1}), reshape(z.im, {batch, heads, 1, 1})};
        };
        const Tensor x = stepOf(in[0], t), column = reshape(x, {batch, heads, width, 1});
        const Complex kept = wide(decay) * h, added = wide(gain) * of_heads(parts(stepOf(in[4], t)));
        h = {kept.re + added.re * column, kept.im + added.im * column};
        const Complex read = of_heads(parts(stepOf(in[5], t))) * h;
        results.push_back(sum(read.re, 3) + x * reshape(in[6], {heads, 1}));
      }
      return std::vector{stack(results, 1), stack({h.re, h.im}, 4)};
    };
    expectSameFunctions(inputs, scan, steps);
  }
}

/// One declaration for all lengths gives what one for each gives.
TEST(ScansOfAnyLength, are_those_of_each_length) {
  const auto functionOf = [](int64_t length, int64_t which) {
    return ls::function({.inputs = {{"u", f32(2, length, 4)}, {"b", f32(2, length, 3)}},
                         .body =
                             [which](const Inputs& in) {
                               const Tensor u = in["u"], b = in["b"], weights = sin(arange(4, DType::F32));
                               if (which == 0) return sum(causal_conv1d(u, ones({4, 3}) * 0.5).y * weights);
                               if (which == 1)
                                 return sum(selective_scan(u, u, -ones({4, 3}), b, b, {.softplus = true, .chunk = 4}).y * weights);
                               const int64_t length_now = u.extent(1);
                               const Tensor x = reshape(u, {2, length_now, 2, 2}), vectors = expand_dims(b, 2);
                               return sum(ssd(x, sum(x, 3), -ones({2}), vectors, vectors, {.softplus = true, .chunk = 4}).y *
                                          reshape(weights, {2, 2}));
                             },
                         .gradients = {"u", "b"},
                         .device = "reference"});
  };
  for (const int64_t which : {0, 1, 2}) {
    Function any = functionOf(dynamic, which);
    for (const int64_t length : {20, 7, 33, 1, 19}) {
      std::vector<float> u, b;
      for (int64_t i = 0; i < 2 * length * 4; ++i) u.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i))));
      for (int64_t i = 0; i < 2 * length * 3; ++i) b.push_back(static_cast<float>(std::cos(0.3 * static_cast<double>(i))));
      const Batch batch{{"u", u}, {"b", b}};
      const FunctionResult got = any(batch), want = functionOf(length, which)(batch);
      EXPECT_NEAR(got.value.floats()[0], want.value.floats()[0], 1e-4) << which << " of " << length;
      for (const auto& [name, gradient] : want.gradients) {
        const auto g = got.gradients.at(name).floats(), w = gradient.floats();
        ASSERT_EQ(g.size(), w.size());
        for (size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(g[i], w[i], 1e-5) << name << ' ' << i << ", " << which << " of " << length;
      }
    }
  }
}

/// Rates and frequencies down to none, whose squares f32 does not have, and steps from tiny to large: no gradient is a difference of
/// neighbours.
TEST(ComplexScans, have_all_digits_where_nothing_decays_or_turns) {
  TracedInputs input;
  const int64_t heads = 8;
  const Tensor x = input("x", {1, 12, heads, 2}), dt = input("dt", {1, 12, heads}), rate = input("log_rate", {heads}),
               frequency = input("frequency", {heads}), b = input("b", {1, 12, 1, 3, 2}), c = input("c", {1, 12, 1, 3, 2});
  input.set("dt", {1e-6, 1e-3, 0.1, 1, 5});
  input.leaves.at("log_rate").data = {-200, -60, -200, -45, -7, 0, 1, 2};
  input.leaves.at("frequency").data = {0, 0, 1e-25, -1e-12, 1e-3, 0, 0.1, 3};
  const ComplexScan made = complex_scan(x, dt, rate, frequency, b, c, {.chunk = 5});
  input.check(made.y, x);
}

}  // namespace
}  // namespace lockstep
