// SPDX-License-Identifier: Apache-2.0
// linear_recurrence, associative_scan and associative_reduce beside loops over the steps, with their gradients; what they refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/lockstep.h"

namespace lockstep {
namespace {

constexpr int64_t kRows = 3, kSteps = 9;

std::vector<float> numbers(int64_t count, float lo, float hi, int salt) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(lo + (hi - lo) * (0.5f + 0.5f * static_cast<float>(std::sin(1.7 * static_cast<double>(i + salt)))));
  return out;
}

struct Data {
  std::vector<float> a = numbers(kRows * kSteps, 0.5f, 1.1f, 0), b = numbers(kRows * kSteps, -1, 1, 5), h = numbers(kRows, -1, 1, 9);
  [[nodiscard]] Batch batch() const { return {{"a", a}, {"b", b}, {"h", h}}; }
};

FunctionResult runLoss(const std::function<Tensor(const Inputs&)>& states, const Data& data) {
  Function function = ls::function({.inputs = {{"a", f32(kRows, kSteps)}, {"b", f32(kRows, kSteps)}, {"h", f32(kRows)}},
                                    .body =
                                        [&](const Inputs& in) {
                                          const Tensor weights = sin(arange(kSteps * kRows, DType::F32));
                                          return sum(states(in) * reshape(weights, {kRows, kSteps}));
                                        },
                                    .gradients = {"a", "b", "h"},
                                    .device = "reference"});
  return function(data.batch());
}

void expectSame(const FunctionResult& got, const FunctionResult& want) {
  EXPECT_NEAR(got.value.floats()[0], want.value.floats()[0], 1e-5);
  for (const auto& [name, gradient] : want.gradients) {
    const auto g = got.gradients.at(name).floats(), w = gradient.floats();
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(g[i], w[i], 1e-5) << name << " " << i;
  }
}

/// h_t = f(h_(t-1), step t) one after the other.
Tensor loop(const Inputs& in, bool reverse, const Tensor& begin, const std::function<Tensor(Tensor h, Tensor a, Tensor b)>& step) {
  std::vector<Tensor> states(kSteps, begin);
  Tensor h = begin;
  for (int64_t i = 0; i < kSteps; ++i) {
    const int64_t t = reverse ? kSteps - 1 - i : i;
    h = step(h, narrow(in["a"], 1, t, 1), narrow(in["b"], 1, t, 1));
    states[static_cast<size_t>(t)] = h;
  }
  return concat(states, 1);
}

TEST(LinearRecurrence, equals_a_loop_with_its_gradients) {
  const Data data;
  for (const bool reverse : {false, true}) {
    const FunctionResult got =
        runLoss([&](const Inputs& in) { return linear_recurrence(in["a"], in["b"], -1, {.reverse = reverse, .initial = in["h"]}); }, data);
    const FunctionResult want = runLoss(
        [&](const Inputs& in) {
          return loop(in, reverse, expand_dims(in["h"], 1), [](Tensor h, Tensor a, Tensor b) { return a * h + b; });
        },
        data);
    expectSame(got, want);
  }
}

TEST(LinearRecurrence, begins_with_zeros) {
  const Data data;
  const auto value = [&](const std::function<Tensor(const Inputs&)>& states) { return runLoss(states, data).value.floats()[0]; };
  EXPECT_NEAR(value([](const Inputs& in) { return linear_recurrence(in["a"], in["b"], 1) + 0 * expand_dims(in["h"], 1); }),
              value([](const Inputs& in) { return linear_recurrence(in["a"], in["b"], 1, {.initial = 0 * in["h"]}); }), 1e-6);
}

TEST(LinearRecurrence, refuses_an_initial_state_of_another_shape) {
  try {
    (void)runLoss([](const Inputs& in) { return linear_recurrence(in["a"], in["b"], 1, {.initial = in["a"]}); }, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "linear_recurrence.initial");
  }
}

/// log(exp(x) + exp(y)) of the larger one, which no overflow reaches.
Tensor addLogs(const Tensor& x, const Tensor& y) { return max(x, y) + log1p(exp(0 - abs(x - y))); }

TEST(AssociativeScan, equals_a_loop_with_its_gradients) {
  const Data data;
  for (const bool reverse : {false, true}) {
    const FunctionResult got = runLoss(
        [&](const Inputs& in) {
          const auto combine = [](const std::vector<Tensor>& x, const std::vector<Tensor>& y) { return std::vector{addLogs(x[0], y[0])}; };
          return associative_scan(combine, {in["a"] * in["b"]}, 1, {.reverse = reverse})[0] + 0 * expand_dims(in["h"], 1);
        },
        data);
    const FunctionResult want = runLoss(
        [&](const Inputs& in) {
          const Tensor lowest = full({kRows, 1}, -1e30);
          return loop(in, reverse, lowest, [](Tensor h, Tensor a, Tensor b) { return addLogs(h, a * b); }) + 0 * expand_dims(in["h"], 1);
        },
        data);
    expectSame(got, want);
  }
}

TEST(AssociativeScan, of_several_types) {
  // The largest element so far and where it was; of equal ones the first.
  Function best = ls::function({.inputs = {{"x", f32(2, 6)}},
                                .body =
                                    [](const Inputs& in) {
                                      const auto combine = [](const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
                                        const Tensor later = y[0] > x[0];
                                        return std::vector{where(later, y[0], x[0]), where(later, y[1], x[1])};
                                      };
                                      const Tensor places = broadcast_to(arange(6), {2, 6});
                                      return associative_scan(combine, {in["x"], places}, 1)[1];
                                    },
                                .device = "reference"});
  const std::vector<float> x{1, 3, 2, 3, 5, 4, -1, -2, -3, 0, 0, 7};
  EXPECT_EQ(best({{"x", x}}).value.ints(), (std::vector<int32_t>{0, 1, 1, 1, 4, 4, 0, 0, 0, 3, 3, 5}));
}

/// Number, mean and sum of squares about it, of all elements together: those of the two parts, and how far apart their means are.
std::vector<Tensor> combineMoments(const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
  const Tensor n = x[0] + y[0], apart = y[1] - x[1];
  return {n, x[1] + apart * y[0] / n, x[2] + y[2] + apart * apart * x[0] * y[0] / n};
}

TEST(AssociativeReduce, variance_in_one_pass_with_its_gradients) {
  const Data data;
  const FunctionResult got = runLoss(
      [](const Inputs& in) {
        const Tensor ones = full({kRows, kSteps}, 1), none = full({kRows, kSteps}, 0);
        const std::vector<Tensor> moments = associative_reduce(combineMoments, {ones, in["a"] * in["b"], none}, 1, {.keep_dims = true});
        return moments[2] / moments[0] + 0 * expand_dims(in["h"], 1) + full({kRows, kSteps}, 0);
      },
      data);
  const FunctionResult want = runLoss(
      [](const Inputs& in) {
        const Tensor x = in["a"] * in["b"], centred = x - mean(x, 1, {.keep_dims = true});
        return mean(centred * centred, 1, {.keep_dims = true}) + 0 * expand_dims(in["h"], 1) + full({kRows, kSteps}, 0);
      },
      data);
  expectSame(got, want);
}

TEST(AssociativeReduce, keeps_the_order_of_the_elements) {
  // Of two elements the earlier one, and the later one: neither commutes.
  Function ends =
      ls::function({.inputs = {{"x", f32(5003, 2)}},
                    .body =
                        [](const Inputs& in) {
                          using Tuple = std::vector<Tensor>;
                          const auto first = [](const Tuple& x, const Tuple&) { return x; };
                          const auto last = [](const Tuple&, const Tuple& y) { return y; };
                          return concat({associative_reduce(first, {in["x"]}, 0)[0], associative_reduce(last, {in["x"]}, 0)[0]}, 0);
                        },
                    .device = "reference"});
  std::vector<float> x;
  for (int i = 0; i < 2 * 5003; ++i) x.push_back(static_cast<float>(i));
  EXPECT_EQ(ends({{"x", x}}).value.floats(), (std::vector<float>{0, 1, 10004, 10005}));
}

TEST(AssociativeReduce, refuses_what_a_scan_refuses) {
  using Tuple = std::vector<Tensor>;
  const auto code = [](const Combine& combine, int elements) {
    try {
      (void)runLoss(
          [&](const Inputs& in) {
            return associative_reduce(combine, std::vector<Tensor>(static_cast<size_t>(elements), in["a"]), 1, {.keep_dims = true})[0] +
                   in["a"];
          },
          {});
    } catch (const Error& error) {
      return error.diagnostics().front().code;
    }
    return std::string();
  };
  EXPECT_EQ(code([](const Tuple& x, const Tuple&) { return x; }, 0), "associative_reduce.C1");
  EXPECT_EQ(code([](const Tuple& x, const Tuple&) { return Tuple{x[0], x[0]}; }, 1), "associative_reduce.C3");
  EXPECT_EQ(code(
                [](const Tuple& x, const Tuple&) {
                  capture("inside", x[0]);
                  return x;
                },
                1),
            "associative_reduce.capture");
}

std::string codeOf(const Combine& combine, std::vector<std::string> names) {
  try {
    (void)runLoss(
        [&](const Inputs& in) {
          std::vector<Tensor> elements;
          for (const std::string& name : names) elements.push_back(in[name]);
          return associative_scan(combine, elements, 0)[0];
        },
        {});
  } catch (const Error& error) {
    return error.diagnostics().front().code;
  }
  return {};
}

TEST(AssociativeScan, refuses_other_functions) {
  using Tuple = std::vector<Tensor>;
  EXPECT_EQ(codeOf([](const Tuple& x, const Tuple&) { return x; }, {}), "associative_scan.C1");
  EXPECT_EQ(codeOf([](const Tuple& x, const Tuple&) { return x; }, {"a", "h"}), "associative_scan.C1");
  EXPECT_EQ(codeOf([](const Tuple& x, const Tuple&) { return Tuple{x[0], x[0]}; }, {"a"}), "associative_scan.C3");
  EXPECT_EQ(codeOf([](const Tuple& x, const Tuple&) { return Tuple{reshape(x[0], {1})}; }, {"a"}), "associative_scan.C3");
  EXPECT_EQ(codeOf([](const Tuple& x, const Tuple&) { return Tuple{cast(x[0], DType::I32)}; }, {"a"}), "associative_scan.C3");
}

TEST(AssociativeScan, refuses_captures_inside) {
  const auto combine = [](const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
    capture("inside", x[0]);
    return std::vector{x[0] + y[0]};
  };
  EXPECT_EQ(codeOf(combine, {"a"}), "associative_scan.capture");
}

TEST(AssociativeScan, refuses_tensors_of_outside) {
  try {
    (void)runLoss(
        [](const Inputs& in) {
          const Tensor scale = in["h"];
          return associative_scan(
              [&](const std::vector<Tensor>& x, const std::vector<Tensor>& y) { return std::vector{x[0] + y[0] * sum(scale)}; }, {in["a"]},
              0)[0];
        },
        {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "associative_scan.capture");
  }
}

}  // namespace
}  // namespace lockstep
