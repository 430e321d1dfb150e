// SPDX-License-Identifier: Apache-2.0
// Sums by columns in the kernel of the rows that they are beside: that they join, what it saves, and that they are right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "passes/cost.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

/// layer_norm(x, g, b), whose cotangent is dy.
Graph normGraph(int64_t rows, int64_t columns) {
  Builder b;
  const auto input = [&](const std::string& name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  const ValueId x = input("x", {rows, columns}), gain = input("g", {columns}), offset = input("b", {columns}),
                dy = input("dy", {rows, columns});
  const ValueId y = b.make("layer_norm", {x, gain, offset}, {{"eps", 1e-5}});
  const ValueId total = b.make("sum", {b.mul(y, dy)}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
  b.output(OutputKind::Loss, "loss", total);
  b.output(OutputKind::Result, "y", y);
  return b.take();
}

/// y and the gradients of layer_norm for a given dy, without a loss.
Graph gradientGraph(int64_t rows, int64_t columns) {
  Builder b;
  const auto input = [&](const std::string& name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  const std::vector<ValueId> operands{input("x", {rows, columns}), input("g", {columns}), input("b", {columns})};
  const std::vector<ValueId> cotangents{input("dy", {rows, columns})}, results{b.make("layer_norm", operands, {{"eps", 1e-5}})};
  const Node node = b.graph().definition(results.front());
  b.output(OutputKind::Result, "y", results.front());
  for (const ValueId gradient : std::get<GradientFn> (*node.op->gradient)({b, node, operands, results, cotangents}))
    b.output(OutputKind::Result, "d" + std::to_string(b.graph().outputs.size()), gradient);
  return b.take();
}

passes::CompileOptions optionsFor(std::string_view profile) {
  passes::CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.templates = detail::templateSource();
  options.keep_gradients = true;
  options.wrt = {"x", "g", "b"};
  return options;
}

struct Cost {
  size_t with_sums = 0;  ///< kernels of rows that also sum up columns
  uint64_t bytes = 0;
};

Cost costOf(const Graph& graph, const passes::CompileOptions& options) {
  const auto form = passes::compileTo(passes::Stage::Scheduled, graph, options).orThrow();
  Cost cost;
  for (const program::Kernel& kernel : std::get<program::Program>(form).kernels) {
    const auto* held = std::get_if<program::HeldRowsPlan>(&std::get<program::SymbolicKernel>(kernel.code).plan);
    cost.with_sums += held != nullptr && held->rounds > 1 ? 1 : 0;
  }
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  cost.bytes = std::accumulate(compiled.work.begin(), compiled.work.end(), uint64_t{0},
                               [](uint64_t sum, const passes::CommandWork& work) { return sum + work.bytes; });
  return cost;
}

Cost costOf(int64_t rows, int64_t columns, std::string_view profile, std::vector<std::string> disabled = {}) {
  passes::CompileOptions options = optionsFor(profile);
  options.disabled = std::move(disabled);
  return costOf(normGraph(rows, columns), options);
}

TEST(JoinColumns, the_normalised_operand_is_in_no_memory) {
  passes::CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  options.templates = detail::templateSource();
  const Cost cost = costOf(gradientGraph(8192, 1024), options);
  EXPECT_EQ(cost.with_sums, 1u);
  const uint64_t tensor = uint64_t{8192} * 1024 * 4;
  EXPECT_LE(cost.bytes, 5 * tensor + tensor / 8) << "x to y, then x and dy to dx";
}

TEST(JoinColumns, of_a_norm_runs_beside_the_gradient_of_its_operand) {
  const Cost joined = costOf(8192, 1024, "portable"), apart = costOf(8192, 1024, "portable", {"joinColumns"});
  EXPECT_EQ(joined.with_sums, 1u);
  EXPECT_EQ(apart.with_sums, 0u);
  const uint64_t tensor = uint64_t{8192} * 1024 * 4;
  // x and dy once more for the sums.
  EXPECT_LE(joined.bytes + 2 * tensor, apart.bytes + tensor / 8);
}

TEST(JoinColumns, is_for_long_sums_on_gpus) {
  const int64_t rows = passes::cost::kManyElements / 1024;
  EXPECT_EQ(costOf(rows, 1024, "portable").with_sums, 1u);
  EXPECT_EQ(costOf(rows - 1, 1024, "portable").with_sums, 0u);
  EXPECT_EQ(costOf(rows, 1024, "cpu").with_sums, 0u);
  EXPECT_EQ(costOf(256, 16384, "portable").with_sums, 0u) << "columns that no workgroup holds";
}

struct Run {
  const char* device;
  int64_t rows, columns;
};

class JoinedColumns : public ::testing::TestWithParam<Run> {};
INSTANTIATE_TEST_SUITE_P(Devices, JoinedColumns,
                         ::testing::Values(Run{"reference", 8209, 516}, Run{"vulkan", 8209, 516}, Run{"vulkan", 16411, 257},
                                           Run{"vulkan", 4096, 1024}),
                         [](const auto& info) { return fmt::format("{}_{}x{}", info.param.device, info.param.rows, info.param.columns); });

TEST_P(JoinedColumns, are_right) {
  const auto [name, rows, columns] = GetParam();
  if (!chooseDevice(name).ok()) GTEST_SKIP() << "no usable device " << name;
  const detail::Device device = portableDevice(name);
  ASSERT_EQ(costOf(rows, columns, "portable").with_sums, 1u);
  const auto runner = makeDeviceRunner(normGraph(rows, columns), optionsFor("portable"), device).orThrow();
  const auto width = static_cast<size_t>(columns), count = static_cast<size_t>(rows) * width;
  ValueMap in{{"x", {}}, {"dy", {}}, {"g", {}}, {"b", {}}};
  for (size_t i = 0; i < count; ++i) {
    in["x"].push_back(static_cast<double>(i * 2654435761u % 8191) / 4096 - 1);
    in["dy"].push_back(static_cast<double>(i * 40503u % 4093) / 2048 - 1);
  }
  for (size_t i = 0; i < width; ++i) {
    in["g"].push_back(1 + static_cast<double>(i % 7) / 8);
    in["b"].push_back(static_cast<double>(i % 5) / 4);
  }
  const StepOutputs out = runner->step(in).orThrow();
  std::vector<double> dgain(width, 0.0), doffset(width, 0.0);
  double worst = 0;
  for (size_t row = 0; row < count; row += width) {
    const double *x = &in["x"][row], *dy = &in["dy"][row];
    const double mean = std::accumulate(x, x + width, 0.0) / static_cast<double>(width);
    double variance = 0, along = 0, level = 0;
    for (size_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(width);
    const double scale = 1 / std::sqrt(variance + 1e-5);
    for (size_t i = 0; i < width; ++i) {
      const double xhat = (x[i] - mean) * scale, d = dy[i] * in["g"][i];
      dgain[i] += dy[i] * xhat;
      doffset[i] += dy[i];
      level += d / static_cast<double>(width);
      along += d * xhat / static_cast<double>(width);
    }
    const auto& dx = out.at({OutputKind::Gradient, "x"});
    for (size_t i = 0; i < width; ++i) {
      const double wanted = scale * (dy[i] * in["g"][i] - level - (x[i] - mean) * scale * along);
      worst = std::max(worst, std::abs(dx[row + i] - wanted));
    }
  }
  EXPECT_LT(worst, 1e-4);
  for (size_t i = 0; i < width; ++i) {
    // Sums of some ten thousand numbers of about 1.
    ASSERT_NEAR(out.at({OutputKind::Gradient, "g"})[i], dgain[i], 2e-2) << i;
    ASSERT_NEAR(out.at({OutputKind::Gradient, "b"})[i], doffset[i], 2e-2) << i;
  }
}

}  // namespace
}  // namespace lockstep
