// SPDX-License-Identifier: Apache-2.0
// Elementary functions over grids of arguments, each result against f64 in units in the last place: a relative L2 distance would not see
// a small result that is wrong altogether.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <regex>

#include "frontend/train/graph_runner.h"
#include "ir/support/ulp.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using Numbers = std::vector<double>;

constexpr int64_t kCount = 20000;

double toF32(double x) { return static_cast<double>(static_cast<float>(x)); }

/// Equally spaced f32 numbers.
Numbers linear(double lo, double hi) {
  Numbers grid;
  for (int64_t i = 0; i < kCount; ++i) grid.push_back(toF32(lo + (hi - lo) * static_cast<double>(i) / (kCount - 1)));
  return grid;
}

/// Both signs, from 1e-30 to `hi` by equal factors.
Numbers geometric(double hi) {
  Numbers grid;
  for (int64_t i = 0; i < kCount; ++i) {
    double magnitude = 1e-30 * std::pow(hi / 1e-30, static_cast<double>(i) / (kCount - 1));
    grid.push_back(toF32(i % 2 == 0 ? magnitude : -magnitude));
  }
  return grid;
}

/// In units in the last place of `want`. Subnormals count as 0 and what is beyond f32 as infinite, since a device may make them so.
double distance(double got, double want) {
  constexpr double kSmallest = 0x1p-126, kLargest = 3.4028234663852886e38;
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::abs(want) > kLargest) return std::abs(got) > kLargest && (got > 0) == (want > 0) ? 0 : std::numeric_limits<double>::infinity();
  if (std::abs(want) < kSmallest) return std::abs(got) <= 2 * kSmallest ? 0 : std::numeric_limits<double>::infinity();
  return std::abs(got - want) / ulpOf(want);
}

struct Range {
  std::string name, op;
  double limit = 0;  ///< units in the last place, on every device
  std::vector<Numbers> operands;
};
void PrintTo(const Range& range, std::ostream* out) { *out << range.name; }

/// Every pair of a base and an exponent.
std::vector<Numbers> pairs(const Numbers& bases, const Numbers& exponents) {
  std::vector<Numbers> both(2);
  for (double base : bases) {
    for (double exponent : exponents) {
      both[0].push_back(toF32(base));
      both[1].push_back(toF32(exponent));
    }
  }
  return both;
}

std::vector<Range> ranges() {
  Numbers bases{1.2e-38,   1e-20, 3e-7, 0.01, 0.3, 0.5, 0.7, 0.70710678, 0.9, 0.999, 0.9999999, 1,
                1.0000001, 1.001, 1.2,  1.41, 1.5, 2,   2.7, 10,         1e5, 3e15,  1e30};
  Numbers exponents{-2000,   -128, -60.5, -17.3, -7,  -3, -2, -1.5, -1,  -0.7, -0.5, -1e-3, 0,   1e-10, 0.1,
                    1.0 / 3, 0.5,  0.9,   1,     1.7, 2,  3,  5,    9.3, 22,   41.7, 88.8,  127, 1000,  54321};
  Numbers negatives{-0.3, -1, -1.7, -20, -1e10}, whole{-20, -5, -3, -2, -1, 0, 1, 2, 3, 4, 7, 20, 33};
  return {{"exp_of_sigmoid_tail", "sigmoid", 4, {linear(-87, 20)}},
          {"sigmoid_small", "sigmoid", 4, {geometric(30)}},
          {"tanh", "tanh", 5, {linear(-12, 12)}},
          {"tanh_small", "tanh", 5, {geometric(50)}},
          {"erf", "erf", 3, {linear(-5, 5)}},
          {"erf_small", "erf", 3, {geometric(6)}},
          {"expm1", "expm1", 3, {linear(-20, 90)}},
          {"expm1_small", "expm1", 3, {geometric(88)}},
          {"log1p", "log1p", 3, {linear(-0.99999, 50)}},
          {"log1p_small", "log1p", 3, {geometric(0.999)}},
          {"log1p_large", "log1p", 4, {linear(1, 3e38)}},
          {"sin", "sin", 3, {linear(-100, 100)}},
          {"sin_large", "sin", 3, {linear(-12800, 12800)}},
          {"sin_small", "sin", 3, {geometric(12800)}},
          {"cos", "cos", 3, {linear(-100, 100)}},
          {"cos_large", "cos", 3, {linear(-12800, 12800)}},
          {"softplus", "softplus", 5, {linear(-87, 100)}},
          {"silu", "silu", 5, {linear(-80, 80)}},
          {"gelu", "gelu", 6, {linear(-5, 5)}},
          {"gelu_tail", "gelu", 12, {linear(-13, 13)}},
          {"gelu_gradient", "gelu_gradient", 8, {linear(-0.5, 5)}},
          {"gelu_tanh", "gelu_tanh", 15, {linear(-3, 10)}},
          {"pow", "pow", 3, pairs(bases, exponents)},
          {"pow_of_negative_numbers", "pow", 3, pairs(negatives, whole)}};
}

class Accuracy : public testing::TestWithParam<Range> {};
INSTANTIATE_TEST_SUITE_P(Functions, Accuracy, testing::ValuesIn(ranges()), [](const auto& info) { return info.param.name; });

/// The op on inputs, as a program.
struct Applied {
  graph::Builder builder;
  graph::LeafValues leaves;

  Applied(const std::string& op, const std::vector<Numbers>& operands, graph::Attributes attributes = {}) {
    std::vector<graph::ValueId> inputs;
    for (const Numbers& numbers : operands) {
      std::string name = fmt::format("operand{}", inputs.size());
      graph::TensorType type{graph::DType::F32, graph::Shape{static_cast<int64_t>(numbers.size())}};
      inputs.push_back(graph::testing::addInput(builder, name, type));
      leaves.emplace(name, graph::Tensor{type, numbers});
    }
    builder.output(graph::OutputKind::Result, "y", builder.make(op, inputs, std::move(attributes)));
  }
  [[nodiscard]] Numbers on(const std::string& device) {
    return runGraph(builder.graph(), leaves, {.device = device, .opened = openedDevice(device)}).front().data;
  }
};

TEST_P(Accuracy, every_result_is_near) {
  const Range& range = GetParam();
  Applied applied(range.op, range.operands);
  Numbers want = applied.on("evaluate");
  for (const std::string& device : devicesUnderTest()) {
    Numbers got = applied.on(device);
    size_t worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      if (distance(got[i], want[i]) > distance(got[worst], want[worst])) worst = i;
    }
    std::string arguments;
    for (const Numbers& numbers : range.operands) arguments += fmt::format(" {}", numbers[worst]);
    double ulp = distance(got[worst], want[worst]);
    RecordProperty(device, fmt::format("{:.2f}", ulp));
    EXPECT_LE(ulp, range.limit) << fmt::format("{} on {}, at{}: {} instead of {}", range.op, device, arguments, got[worst], want[worst]);
  }
}

// "| `sigmoid` | 4 | ..." of docs/numerics.md: the largest limit of each op, and no other op.
TEST(Accuracy, bounds_are_those_of_the_page) {
  std::map<std::string, double> limits, written;
  for (const Range& range : ranges()) limits[range.op] = std::max(limits[range.op], range.limit);
  std::ifstream page(LOCKSTEP_SOURCE_DIR "/docs/numerics.md");
  static const std::regex row(R"(\| `(\w+)` \| (\d+) \| .*)");
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, row)) written[match[1]] = std::stod(match[2]);
  }
  EXPECT_EQ(written, limits);
}

// What is rounded to f16 afterwards: half a unit there is 2^-12.
TEST(Accuracy, coarse_functions_keep_more_than_16_bits) {
  for (const std::string op : {"gelu", "gelu_gradient"}) {
    for (const Numbers& grid : {linear(-13, 13), geometric(13)}) {
      Applied coarse(op, {grid}, {{"coarse", true}});
      const Numbers want = coarse.on("evaluate");
      for (const std::string& device : devicesUnderTest()) {
        const Numbers got = coarse.on(device);
        for (size_t i = 0; i < want.size(); ++i) {
          // The gradient is a difference of two numbers where its argument is negative.
          const double x = grid[i], slope = op == "gelu" ? 0 : std::abs(x) * std::exp(-x * x / 2) * 0.4;
          ASSERT_LE(std::abs(got[i] - want[i]), 0x1p-15 * (std::abs(want[i]) + slope) + 0x1p-125)
              << fmt::format("{} of {} on {} is {} instead of {}", op, x, device, got[i], want[i]);
        }
      }
    }
  }
}

// Where numbers end, the evaluator and the devices do what is written here by hand.
TEST(Accuracy, infinities_nans_and_zeros_follow_the_definition) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  const Numbers ends{kInf, -kInf, kNaN, 0};
  struct Row {
    std::string op;
    std::vector<Numbers> operands;
    Numbers want;
    graph::Attributes attributes = {};
  };
  for (const Row& row : std::vector<Row>{
           {"tanh", {ends}, {1, -1, kNaN, 0}},
           {"sigmoid", {ends}, {1, 0, kNaN, 0.5}},
           {"erf", {ends}, {1, -1, kNaN, 0}},
           {"expm1", {ends}, {kInf, -1, kNaN, 0}},
           {"log1p", {{kInf, -1, kNaN, 0, -2}}, {kInf, -kInf, kNaN, 0, kNaN}},
           {"sin", {ends}, {kNaN, kNaN, kNaN, 0}},
           {"cos", {ends}, {kNaN, kNaN, kNaN, 1}},
           {"exp", {ends}, {kInf, 0, kNaN, 1}},
           {"log", {{kInf, -kInf, kNaN, 0, -0.0, -1, 1}}, {kInf, kNaN, kNaN, -kInf, -kInf, kNaN, 0}},
           {"relu", {ends}, {kInf, 0, kNaN, 0}},
           {"sign", {ends}, {1, -1, kNaN, 0}},
           {"max", {ends, {kNaN, 0, 0, -1}}, {kNaN, 0, kNaN, 0}},
           {"min", {ends, {kNaN, 0, 0, -1}}, {kNaN, -kInf, kNaN, -1}},
           {"softplus", {ends}, {kInf, 0, kNaN, toF32(std::log(2.0))}},
           {"silu", {{kInf, kNaN, 0}}, {kInf, kNaN, 0}},
           {"gelu", {{kInf, kNaN, 0}}, {kInf, kNaN, 0}},
           {"gelu", {{kInf, kNaN, 0}}, {kInf, kNaN, 0}, {{"coarse", true}}},
           {"gelu_gradient", {{kInf, -kInf, kNaN}}, {1, 0, kNaN}, {{"coarse", true}}},
           {"gelu_tanh", {{kInf, kNaN, 0}}, {kInf, kNaN, 0}},
           {"gelu_gradient", {{kInf, -kInf, kNaN, 0}}, {1, 0, kNaN, 0.5}},
           {"elu", {ends}, {kInf, -2, kNaN, 0}, {{"alpha", 2.0}}},
           {"leaky_relu", {ends}, {kInf, -kInf, kNaN, 0}, {{"alpha", 0.5}}},
           {"clamp", {ends}, {3, -1, kNaN, 0}, {{"lo", -1.0}, {"hi", 3.0}}},
           {"is_finite", {ends}, {0, 0, 0, 1}},
           {"cast",
            {{kInf, -kInf, kNaN, 3e9, -3e9, 2.7, -2.7}},
            {2147483647, -2147483648.0, 0, 2147483647, -2147483648.0, 2, -2},
            {{"dtype", graph::DType::I32}}},
           {"cast", {{kInf, -kInf, kNaN, 5e9, -1, 2.7}}, {4294967295.0, 0, 0, 4294967295.0, 0, 2}, {{"dtype", graph::DType::U32}}},
           {"cast", {ends}, {1, 1, 1, 0}, {{"dtype", graph::DType::Bool}}},
           {"equal", {ends, ends}, {1, 1, 0, 1}},
           {"not_equal", {ends, ends}, {0, 0, 1, 0}},
           {"less_equal", {ends, {kInf, 0, kNaN, -1}}, {1, 1, 0, 0}},
           {"greater_equal", {ends, {kInf, 0, kNaN, -1}}, {1, 0, 0, 1}},
           {"pow",
            {{0, 0, 0, kInf, kInf, 2, 2, kNaN, 1.5, 0.5, 1.5}, {2, 0, -1, 1, -1, 200, -200, 0, kInf, kInf, -kInf}},
            {0, 1, kInf, kInf, 0, kInf, 0, 1, kInf, 0, 0}},
           {"pow", {{-2, -2, -2, -2, kNaN, 2, -kInf}, {3, 2, 0.5, -1, 2, kNaN, 3}}, {-8, 4, kNaN, -0.5, kNaN, kNaN, -kInf}},
           {"round", {{0.5, 1.5, 2.5, -0.5, -1.5, 8388609}}, {0, 2, 2, 0, -2, 8388609}}}) {
    Applied applied(row.op, row.operands, row.attributes);
    std::vector<std::string> devices = devicesUnderTest();
    devices.emplace_back("evaluate");
    for (const std::string& device : devices) {
      Numbers got = applied.on(device);
      for (size_t i = 0; i < row.want.size(); ++i) {
        EXPECT_LE(distance(got[i], row.want[i]), 1)
            << fmt::format("{} on {}: element {} is {} instead of {}", row.op, device, i, got[i], row.want[i]);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
