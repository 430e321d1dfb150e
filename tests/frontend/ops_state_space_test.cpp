// SPDX-License-Identifier: Apache-2.0
// State-space functions in the front end: going on from a state, options, types of 16 bits, what is refused. Values are those of the f64
// evaluator.
#include <algorithm>
#include <cmath>

#include "frontend/nn/nn.h"
#include "frontend/trace/module.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;
using In = std::vector<Tensor>;

std::string refusalOf(const std::vector<TensorType>& types, const std::function<Tensor(const In&)>& function) {
  return caught([&] { traced(types, function); }).code;
}

/// The function of inputs that all differ, between -1 and 1.
Values waves(const std::vector<TensorType>& types, const std::function<Tensor(const In&)>& function) {
  return counted(types,
                 [&](const In& in) {
                   In inputs;
                   for (const Tensor& x : in) inputs.push_back(sin(x * (1.0 + 0.1 * static_cast<double>(inputs.size()))));
                   return function(inputs);
                 })
      .data;
}

void expectEqualNumbers(const Values& got, const Values& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

Tensor step(Tensor x, int64_t t, int64_t count = 1) { return narrow(x, 1, t, count); }

TEST(CausalConv1d, last_tap_meets_the_current_element) {
  const graph::Tensor y = counted({f32(1, 4, 1)}, [](const In& in) {
    const Tensor w = reshape(arange(3, DType::F32) + 1, {1, 3});
    return causal_conv1d(in[0], w).y;
  });
  EXPECT_EQ(y.data, (Values{3, 2 * 1 + 3 * 2, 1 + 2 * 2 + 3 * 3, 2 + 2 * 3 + 3 * 4}));
}

TEST(CausalConv1d, goes_on_from_its_tail) {
  const std::vector<TensorType> types{f32(2, 9, 3), f32(3, 4), f32(3)};
  const Values whole = waves(types, [](const In& in) { return causal_conv1d(in[0], in[1], {.bias = in[2]}).y; });
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 5}, {4, 1, 4}, {9}}) {
    expectEqualNumbers(waves(types,
                             [&](const In& in) {
                               std::vector<Tensor> parts;
                               std::optional<Tensor> tail;
                               int64_t t = 0;
                               for (const int64_t count : cuts) {
                                 const CausalConv one = causal_conv1d(step(in[0], t, count), in[1], {.bias = in[2], .tail = tail});
                                 parts.push_back(one.y);
                                 tail = one.tail;
                                 t += count;
                               }
                               return concat(parts, 1);
                             }),
                       whole);
  }
}

TEST(CausalConv1d, of_one_tap_has_no_tail) {
  traced({f32(2, 3, 4), f32(4, 1)}, [](const In& in) {
    const CausalConv one = causal_conv1d(in[0], in[1]);
    EXPECT_FALSE(one.tail.has_value());
    return one.y;
  });
}

TEST(SelectiveScan, goes_on_from_its_state) {
  const std::vector<TensorType> types{f32(2, 7, 3), f32(2, 7, 3), f32(3, 4), f32(2, 7, 4), f32(2, 7, 4), f32(3), f32(2, 7, 3)};
  for (const Discretisation rule : {Discretisation::Euler, Discretisation::ZeroOrderHold}) {
    const auto scan = [&](const In& in, int64_t t, int64_t count, std::optional<Tensor> initial) {
      return selective_scan(
          step(in[0], t, count), step(in[1], t, count), -exp(in[2]), step(in[3], t, count), step(in[4], t, count),
          {.skip = in[5], .gate = step(in[6], t, count), .softplus = true, .discretisation = rule, .initial = initial, .chunk = 4});
    };
    for (const bool wants_state : {false, true}) {
      const Values whole = waves(types, [&](const In& in) {
        const SelectiveScan all = scan(in, 0, 7, {});
        return wants_state ? all.state : all.y;
      });
      expectEqualNumbers(waves(types,
                               [&](const In& in) {
                                 std::vector<Tensor> parts;
                                 std::optional<Tensor> state;
                                 for (int64_t t = 0; t < 7; ++t) {
                                   const SelectiveScan one = scan(in, t, 1, state);
                                   parts.push_back(one.y);
                                   state = one.state;
                                 }
                                 return wants_state ? *state : concat(parts, 1);
                               }),
                         whole);
    }
  }
}

TEST(SelectiveScan, options_are_what_they_say) {
  const std::vector<TensorType> types{f32(1, 3, 2), f32(1, 3, 2), f32(2, 2), f32(1, 3, 2), f32(1, 3, 2), f32(2), f32(1, 3, 2)};
  const auto scan = [](const In& in, const SelectiveScanOptions& options, bool soft = false) {
    return selective_scan(in[0], soft ? softplus(in[1]) : in[1], -exp(in[2]), in[3], in[4], options).y;
  };
  expectEqualNumbers(waves(types, [&](const In& in) { return scan(in, {.skip = in[5], .gate = in[6], .softplus = true}); }),
                     waves(types, [&](const In& in) { return (scan(in, {}, true) + in[0] * in[5]) * silu(in[6]); }));
}

TEST(Ssd, goes_on_from_its_state) {
  const std::vector<TensorType> types{f32(2, 6, 4, 3), f32(2, 6, 4), f32(4), f32(2, 6, 2, 5), f32(2, 6, 2, 5), f32(4), f32(4)};
  const auto scan = [](const In& in, int64_t t, int64_t count, std::optional<Tensor> initial) {
    return ssd(step(in[0], t, count), step(in[1], t, count), -exp(in[2]), step(in[3], t, count), step(in[4], t, count),
               {.skip = in[5], .dt_bias = in[6], .softplus = true, .initial = initial, .chunk = 4});
  };
  for (const bool wants_state : {false, true}) {
    const Values whole = waves(types, [&](const In& in) {
      const Ssd all = scan(in, 0, 6, {});
      return wants_state ? all.state : all.y;
    });
    expectEqualNumbers(waves(types,
                             [&](const In& in) {
                               const Ssd first = scan(in, 0, 1, {}), second = scan(in, 1, 2, first.state),
                                         third = scan(in, 3, 3, second.state);
                               return wants_state ? third.state : concat({first.y, second.y, third.y}, 1);
                             }),
                       whole);
  }
}

/// With one state per head and one channel the dual is a selective scan.
TEST(Ssd, is_a_selective_scan_of_equal_rates) {
  const std::vector<TensorType> types{f32(2, 5, 3, 1), f32(2, 5, 3), f32(3), f32(2, 5, 1, 4), f32(2, 5, 1, 4)};
  expectEqualNumbers(waves(types, [](const In& in) { return ssd(in[0], in[1], -exp(in[2]), in[3], in[4], {.softplus = true}).y; }),
                     waves(types, [](const In& in) {
                       const Tensor a = broadcast_to(reshape(-exp(in[2]), {3, 1}), {3, 4});
                       return selective_scan(reshape(in[0], {2, 5, 3}), in[1], a, reshape(in[3], {2, 5, 4}), reshape(in[4], {2, 5, 4}),
                                             {.softplus = true})
                           .y;
                     }));
}

TEST(StateSpace, sixteen_bits_are_widened) {
  for (const DType low : {DType::F16, DType::BF16}) {
    traced({{low, {1, 3, 2}}, {low, {2, 4}}}, [](const In& in) {
      const Tensor y = causal_conv1d(in[0], in[1]).y;
      EXPECT_EQ(y.dtype(), DType::F32);
      return y;
    });
    traced({{low, {1, 3, 2}}, {low, {2, 4}}, {low, {1, 3, 4}}, {low, {2}}}, [](const In& in) {
      const Tensor y = selective_scan(in[0], in[0], in[1], in[2], in[2], {.skip = in[3], .gate = in[0], .softplus = true}).y;
      EXPECT_EQ(y.dtype(), DType::F32);
      return y;
    });
    traced({{low, {1, 3, 2, 2}}, {low, {1, 3, 2}}, {low, {2}}, {low, {1, 3, 1, 4}}}, [](const In& in) {
      const Tensor y = ssd(in[0], in[1], in[2], in[3], in[3], {.skip = in[2], .dt_bias = in[2]}).y;
      EXPECT_EQ(y.dtype(), DType::F32);
      return y;
    });
  }
}

TEST(StateSpace, wrong_operands_are_refused_by_name) {
  EXPECT_EQ(refusalOf({i32(1, 3, 2), f32(2, 4)}, [](const In& in) { return causal_conv1d(in[0], in[1]).y; }), "causal_conv1d.C1");
  EXPECT_EQ(refusalOf({f32(3, 2), f32(2, 4)}, [](const In& in) { return causal_conv1d(in[0], in[1]).y; }), "causal_conv1d.C2");
  EXPECT_EQ(refusalOf({f32(1, 3, 2), f32(2, 4), f32(1)}, [](const In& in) { return causal_conv1d(in[0], in[1], {.bias = in[2]}).y; }),
            "causal_conv1d.C3");
  EXPECT_EQ(refusalOf({f32(1, 2, 2), f32(2, 4)}, [](const In& in) { return causal_conv1d(in[0], in[1], {.tail = in[0]}).y; }),
            "causal_conv1d.C4");
  const std::vector<TensorType> scan{f32(1, 3, 2), f32(2, 4), f32(1, 3, 4), f32(1), f32(1, 3, 1)};
  const auto scanned = [&](const std::function<SelectiveScanOptions(const In&)>& options) {
    return refusalOf(scan, [&](const In& in) { return selective_scan(in[0], in[0], in[1], in[2], in[2], options(in)).y; });
  };
  EXPECT_EQ(scanned([](const In& in) { return SelectiveScanOptions{.skip = in[3]}; }), "selective_scan.options");
  EXPECT_EQ(scanned([](const In& in) { return SelectiveScanOptions{.gate = in[4]}; }), "selective_scan.options");
  EXPECT_EQ(scanned([](const In& in) { return SelectiveScanOptions{.initial = in[0]}; }), "selective_scan.C5");
  EXPECT_EQ(scanned([](const In&) { return SelectiveScanOptions{.chunk = 0}; }), "selective_scan.C6");
  const std::vector<TensorType> dual{f32(1, 3, 2, 2), f32(1, 3, 2), f32(2), f32(1, 3, 1, 4), f32(1)};
  const auto of_dual = [&](const std::function<SsdOptions(const In&)>& options) {
    return refusalOf(dual, [&](const In& in) { return ssd(in[0], in[1], in[2], in[3], in[3], options(in)).y; });
  };
  EXPECT_EQ(of_dual([](const In& in) { return SsdOptions{.skip = in[4]}; }), "ssd.options");
  EXPECT_EQ(of_dual([](const In& in) { return SsdOptions{.dt_bias = in[4]}; }), "ssd.options");
  EXPECT_EQ(of_dual([](const In& in) { return SsdOptions{.initial = in[0]}; }), "ssd.C4");
  EXPECT_EQ(of_dual([](const In&) { return SsdOptions{.chunk = -1}; }), "ssd.C5");
  EXPECT_EQ(refusalOf(dual, [](const In& in) { return ssd(in[0], in[1], in[4], in[3], in[3]).y; }), "ssd.operands");
  EXPECT_EQ(refusalOf(dual, [](const In& in) { return ssd(in[0], in[2], in[2], in[3], in[3]).y; }), "ssd.operands");
  EXPECT_EQ(refusalOf(dual, [](const In& in) { return ssd(in[0], in[1], in[2], in[3], in[0]).y; }), "ssd.operands");
}

/// Those of the op that it is made of have other names.
TEST(StateSpace, operands_of_ssd_are_not_called_as_those_of_its_op) {
  const Diagnostic found = caught([] {
    traced({f32(1, 3, 2, 2), f32(1, 3, 2), f32(3), f32(1, 3, 1, 4)}, [](const In& in) { return ssd(in[0], in[1], in[2], in[3], in[3]).y; });
  });
  EXPECT_EQ(found.message, "a is [3], wanted [2]");
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(found.notes[0].message.find("operand x"), std::string::npos) << found.notes[0].message;
}

TEST(StateSpace, wrong_operands_of_turning_scans_are_refused) {
  const std::vector<TensorType> types{f32(1, 3, 4, 2), f32(1, 3, 4),    f32(1, 3, 4, 3), f32(1, 3, 2, 6),
                                      f32(3),          f32(1, 3, 2, 5), f32(1, 3, 3, 6)};
  const auto trapezoidal = [&](size_t dt, size_t mix, size_t theta, size_t b, size_t c, bool has_skip = false) {
    return refusalOf(types, [&](const In& in) {
      TrapezoidalOptions options;
      if (has_skip) options.skip = in[4];
      return trapezoidal_scan(in[0], in[dt], in[1], in[mix], in[theta], in[b], in[c], options).y;
    });
  };
  EXPECT_EQ(trapezoidal(0, 1, 2, 3, 3), "trapezoidal_scan.operands");
  EXPECT_EQ(trapezoidal(1, 0, 2, 3, 3), "trapezoidal_scan.operands");
  EXPECT_EQ(trapezoidal(1, 1, 0, 3, 3), "trapezoidal_scan.operands");
  EXPECT_EQ(trapezoidal(1, 1, 2, 6, 6), "trapezoidal_scan.operands");
  EXPECT_EQ(trapezoidal(1, 1, 2, 3, 5), "trapezoidal_scan.operands");
  EXPECT_EQ(trapezoidal(1, 1, 2, 5, 5), "trapezoidal_scan.operands");
  EXPECT_EQ(trapezoidal(1, 1, 2, 3, 3, true), "trapezoidal_scan.options");
  EXPECT_EQ(refusalOf({f32(1, 3, 4, 3, 2), f32(1, 3, 4), f32(1, 3, 4, 3), f32(1, 3, 2, 2, 6)},
                      [](const In& in) { return trapezoidal_scan(in[0], in[1], in[1], in[1], in[2], in[3], in[3]).y; }),
            "trapezoidal_scan.operands");

  // A part of the state would be broadcast: one sequence would go on from that of another.
  const std::vector<TensorType> going{f32(2, 3, 4, 2), f32(2, 3, 4),    f32(2, 3, 4, 3), f32(2, 3, 2, 6),
                                      f32(2, 4, 2, 6), f32(2, 4, 1, 2), f32(2, 4, 1, 6), f32(2, 4, 3)};
  const auto with_state = [&](size_t wrong, const TensorType& type) {
    std::vector<TensorType> all = going;
    if (wrong > 0) all[wrong] = type;
    traced(all, [](const In& in) {
      return trapezoidal_scan(in[0], in[1], in[1], in[1], in[2], in[3], in[3],
                              {.initial = TrapezoidalState{.state = in[4], .x = in[5], .b = in[6], .angle = in[7]}})
          .y;
    });
  };
  with_state(0, {});
  for (const auto& [wrong, type] : {std::pair<size_t, TensorType>{4, f32(1, 4, 2, 6)},
                                    {4, f32(2, 4, 1, 1)},
                                    {5, f32(2, 1, 1, 2)},
                                    {5, f32(2, 4, 1, 1)},
                                    {6, f32(1, 4, 1, 6)},
                                    {7, f32(2, 1, 3)},
                                    {7, f32(2, 4, 1)}})
    EXPECT_EQ(caught([&] { with_state(wrong, type); }).code, "trapezoidal_scan.options") << wrong << " " << toString(type);
  // Its parts are widened, as operands are.
  with_state(4, {DType::F16, {2, 4, 2, 6}});
  with_state(7, {DType::BF16, {2, 4, 3}});

  const std::vector<TensorType> of_complex{f32(1, 3, 4, 2), f32(1, 3, 4), f32(4), f32(1, 3, 2, 5, 2), f32(3), f32(1, 3, 2, 5)};
  const auto complex = [&](size_t rate, size_t b, size_t c, const std::function<ComplexScanOptions(const In&)>& options) {
    return refusalOf(of_complex, [&](const In& in) { return complex_scan(in[0], in[1], in[rate], in[2], in[b], in[c], options(in)).y; });
  };
  const auto none = [](const In&) { return ComplexScanOptions{}; };
  EXPECT_EQ(complex(4, 3, 3, none), "complex_scan.operands");
  EXPECT_EQ(complex(2, 5, 5, none), "complex_scan.operands");
  EXPECT_EQ(complex(2, 3, 5, none), "complex_scan.operands");
  EXPECT_EQ(complex(2, 3, 3, [](const In& in) { return ComplexScanOptions{.skip = in[4]}; }), "complex_scan.options");
  EXPECT_EQ(complex(2, 3, 3, [](const In& in) { return ComplexScanOptions{.initial = in[0]}; }), "complex_scan.options");
}

/// Values of a model's initial parameters and x; the results of the function in f64.
template <class Model>
std::vector<Values> resultsOf(const Model& model, const TensorType& x,
                              const std::function<std::vector<Tensor>(const Model&, Tensor)>& function) {
  detail::Trace trace;
  trace.addParameters(model);
  const std::vector<Tensor> made = function(model, trace.addInput("x", x));
  for (size_t i = 0; i < made.size(); ++i) trace.output(graph::OutputKind::Result, "y" + std::to_string(i), made[i]);
  graph::LeafValues leaves{{"x", {x, {}}}};
  for (int64_t i = 0; i < x.shape.elementCount(); ++i) leaves.at("x").data.push_back(std::sin(0.7 * static_cast<double>(i)));
  uint32_t index = 0;
  for (const NamedParameter& one : model.parameters()) {
    const std::vector<float> values = one.parameter->initial(3, index++);
    leaves[one.name] = {one.parameter->type(), Values(values.begin(), values.end())};
  }
  std::vector<Values> results;
  for (graph::Tensor& tensor : graph::evaluate(trace.take(), leaves).orThrow()) results.push_back(std::move(tensor.data));
  return results;
}

template <class Mixer>
struct Mixed : Module {
  explicit Mixed(const auto& options) : mixer(*this, "mixer", 16, options) {}
  Mixer mixer;
};

std::vector<Tensor> partsOf(const nn::MixerState& state) { return {state.hidden, state.inputs}; }
std::vector<Tensor> partsOf(const TrapezoidalState& state) { return {state.state, state.b}; }

/// A prompt at once and then token by token, and a sequence that was forked, beside the whole.
template <class Mixer, class State = nn::MixerState>
void expectDecodes(const auto& options) {
  const Mixed<Mixer> model(options);
  const TensorType x = f32(2, 9, 16);
  const std::vector<Values> whole = resultsOf<Mixed<Mixer>>(model, x, [](const auto& m, Tensor in) {
    State state = m.mixer.state(2);
    const Tensor y = m.mixer(in, state);
    return std::vector{m.mixer(in), y, partsOf(state)[0], partsOf(state)[1]};
  });
  expectEqualNumbers(whole[1], whole[0]);
  double size = 0;
  for (const double value : whole[0]) size += std::abs(value);
  EXPECT_GT(size, 0.1);
  const std::vector<Values> parts = resultsOf<Mixed<Mixer>>(model, x, [](const auto& m, Tensor in) {
    State state = m.mixer.state(2), other;
    std::vector<Tensor> ys{m.mixer(step(in, 0, 5), state)};
    other = state;
    m.mixer(step(in, 0, 3), other);  // another way on changes nothing here
    for (int64_t t = 5; t < 9; ++t) ys.push_back(m.mixer(step(in, t), state));
    return std::vector{concat(ys, 1), concat(ys, 1), partsOf(state)[0], partsOf(state)[1]};
  });
  for (size_t i = 0; i < whole.size(); ++i) expectEqualNumbers(parts[i], whole[i]);
}

TEST(Mamba, decodes_as_it_reads) {
  expectDecodes<nn::Mamba1>(nn::Mamba1Options{.states = 4, .chunk = 4, .init = init::randn(0.3)});
  expectDecodes<nn::Mamba1>(
      nn::Mamba1Options{.states = 3, .conv = 2, .bias = true, .discretisation = Discretisation::ZeroOrderHold, .init = init::randn(0.3)});
  expectDecodes<nn::Mamba2>(nn::Mamba2Options{.states = 5, .head_width = 8, .groups = 2, .chunk = 4, .init = init::randn(0.3)});
  expectDecodes<nn::Mamba2>(
      nn::Mamba2Options{.states = 3, .head_width = 8, .gate = false, .activation = false, .chunk = 4, .init = init::randn(0.3)});
  expectDecodes<nn::Mamba2>(
      nn::Mamba2Options{.states = 3, .head_width = 8, .groups = 2, .complex = true, .chunk = 4, .init = init::randn(0.3)});
  expectDecodes<nn::Mamba1>(nn::Mamba1Options{.states = 4, .conv_bias = false, .chunk = 4, .init = init::randn(0.3)});
  for (const bool complex : {false, true})
    expectDecodes<nn::Mamba2>(nn::Mamba2Options{.states = 3,
                                                .head_width = 8,
                                                .conv_bias = false,
                                                .complex = complex,
                                                .step_limits = std::pair(0.02, 0.05),
                                                .chunk = 4,
                                                .init = init::randn(0.3)});
  for (const int64_t rank : {1, 3})
    expectDecodes<nn::Mamba3, TrapezoidalState>(
        nn::Mamba3Options{.states = 4, .head_width = 8, .groups = 2, .rank = rank, .chunk = 4, .init = init::randn(0.3)});
}

/// Rows of 2 and 4 steps in one batch of 4, then one more step of each: as rows of their own.
template <class Mixer>
void expectCounts(const auto& options) {
  const Mixed<Mixer> model(options);
  const TensorType x = f32(2, 5, 16);
  const auto row = [](Tensor in, int64_t b) { return narrow(in, 0, b, 1); };
  const std::vector<Values> batch = resultsOf<Mixed<Mixer>>(model, x, [&](const auto& m, Tensor in) {
    nn::MixerState state = m.mixer.state(2);
    const std::vector<int32_t> counts{2, 4};
    const Tensor count = constant(std::span<const int32_t>(counts), {2});
    const Tensor y = m.mixer(step(in, 0, 4), state, count), more = m.mixer(step(in, 4), state);
    return std::vector{step(row(y, 0), 0, 2), row(y, 1), more, state.hidden, state.inputs};
  });
  const std::vector<Values> alone = resultsOf<Mixed<Mixer>>(model, x, [&](const auto& m, Tensor in) {
    nn::MixerState first = m.mixer.state(1), second = m.mixer.state(1);
    const Tensor a = m.mixer(step(row(in, 0), 0, 2), first), b = m.mixer(step(row(in, 1), 0, 4), second);
    const Tensor c = m.mixer(step(row(in, 0), 4), first), d = m.mixer(step(row(in, 1), 4), second);
    return std::vector{a, b, concat({c, d}, 0), concat({first.hidden, second.hidden}, 0), concat({first.inputs, second.inputs}, 0)};
  });
  for (size_t i = 0; i < alone.size(); ++i) expectEqualNumbers(batch[i], alone[i]);
}

TEST(Mamba, rows_of_different_lengths_share_a_batch) {
  expectCounts<nn::Mamba1>(nn::Mamba1Options{.states = 4, .chunk = 4, .init = init::randn(0.3)});
  expectCounts<nn::Mamba2>(nn::Mamba2Options{.states = 5, .head_width = 8, .groups = 2, .chunk = 4, .init = init::randn(0.3)});
  expectCounts<nn::Mamba2>(nn::Mamba2Options{.states = 3, .head_width = 8, .complex = true, .chunk = 4, .init = init::randn(0.3)});
  const Mixed<nn::Mamba1> model(nn::Mamba1Options{.states = 4});
  const auto misuse = [&] {
    resultsOf<Mixed<nn::Mamba1>>(model, f32(2, 5, 16), [](const auto& m, Tensor in) {
      nn::MixerState state = m.mixer.state(2);
      return std::vector{m.mixer(in, state, arange(3))};
    });
  };
  EXPECT_EQ(caught(misuse).code, "layer.extent");
}

TEST(Mamba, begins_as_the_papers_say) {
  const Mixed<nn::Mamba1> first(nn::Mamba1Options{.states = 5});
  const std::vector<float> a = first.mixer.A_log.initial(1, 0), steps = first.mixer.dt_b.initial(1, 7);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(std::exp(a[i]), static_cast<double>(i % 5 + 1), 1e-6);
  double least = 1, most = 0;
  for (const float bias : steps) {
    const double step = std::log1p(std::exp(static_cast<double>(bias)));
    EXPECT_TRUE(step >= 0.99e-3 && step <= 0.101) << step;
    least = std::min(least, step);
    most = std::max(most, step);
  }
  EXPECT_LT(least, 2e-3);
  EXPECT_GT(most, 5e-2);
  EXPECT_FALSE(first.mixer.A_log.decay() || first.mixer.dt_b.decay() || first.mixer.D.decay());
  const Mixed<nn::Mamba2> second(nn::Mamba2Options{.head_width = 2});
  for (const float log : second.mixer.A_log.initial(1, 0)) EXPECT_TRUE(std::exp(log) >= 1 && std::exp(log) <= 16);
}

TEST(Mamba, wrong_options_are_refused) {
  const auto first = [](const nn::Mamba1Options& options) { return caught([&] { Mixed<nn::Mamba1>{options}; }).code; };
  const auto second = [](const nn::Mamba2Options& options) { return caught([&] { Mixed<nn::Mamba2>{options}; }).code; };
  EXPECT_EQ(first({.states = 0}), "mamba.options");
  EXPECT_EQ(first({.conv = 1}), "mamba.options");
  EXPECT_EQ(first({.expand = 0}), "mamba.options");
  EXPECT_EQ(first({.chunk = 0}), "mamba.options");
  EXPECT_EQ(first({.step_rank = -1}), "mamba.options");
  EXPECT_EQ(first({.least_step = 0}), "init.range");
  const auto third = [](const nn::Mamba3Options& options) { return caught([&] { Mixed<nn::Mamba3>{options}; }).code; };
  EXPECT_EQ(third({.states = 5, .head_width = 8}), "mamba.options");
  EXPECT_EQ(third({.head_width = 8, .rank = 0}), "mamba.options");
  EXPECT_EQ(third({.head_width = 8, .groups = 3}), "mamba.options");
  EXPECT_EQ(second({.head_width = 5}), "mamba.options");
  EXPECT_EQ(second({.head_width = 8, .groups = 3}), "mamba.options");
  EXPECT_EQ(second({.conv = 0, .head_width = 8}), "mamba.options");
  for (const auto& [least, most] : {std::pair{0.2, 0.1}, {-0.1, 0.1}, {NAN, 0.1}, {0.1, NAN}, {INFINITY, INFINITY}})
    EXPECT_EQ(second({.head_width = 8, .step_limits = std::pair{least, most}}), "mamba.options") << least << " " << most;
}

/// With 64 bits 16 (2^60 + 1) is 16, and so on.
TEST(Mamba, extents_whose_product_does_not_fit_are_refused) {
  constexpr int64_t kWraps = (int64_t{1} << 60) + 1;
  const auto refusal = [](const auto& make) { return caught(make); };
  for (const Diagnostic& found : {refusal([] { Mixed<nn::Mamba1>{nn::Mamba1Options{.expand = kWraps}}; }),
                                  refusal([] { Mixed<nn::Mamba2>{nn::Mamba2Options{.expand = kWraps, .head_width = 8}}; }),
                                  refusal([] { Mixed<nn::Mamba3>{nn::Mamba3Options{.expand = kWraps, .head_width = 8}}; })}) {
    EXPECT_EQ(found.code, "mamba.options");
    EXPECT_EQ(found.message, "width x expand is 16 x 1152921504606846977, which is more than 2^32");
  }
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_EQ(refusal([] { Mixed<nn::Mamba1>{nn::Mamba1Options{.states = kLarge}}; }).code, "mamba.options");
  EXPECT_EQ(refusal([] { Mixed<nn::Mamba1>{nn::Mamba1Options{.step_rank = kLarge}}; }).code, "mamba.options");
  EXPECT_EQ(refusal([] { Mixed<nn::Mamba2>{nn::Mamba2Options{.states = kLarge, .head_width = 8}}; }).code, "mamba.options");
  EXPECT_EQ(refusal([] { Mixed<nn::Mamba3>{nn::Mamba3Options{.head_width = 8, .rank = kLarge}}; }).code, "mamba.options");
}

}  // namespace
}  // namespace lockstep
