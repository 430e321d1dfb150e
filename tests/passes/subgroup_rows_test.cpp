// SPDX-License-Identifier: Apache-2.0
// Rows whose lanes are combined by subgroups: the barriers that this saves, that it is right for any size, and what lacks the size.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/passes/count_barriers.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

/// The softmax, the sum and the largest element of each row.
Graph rowsGraph(int64_t rows, int64_t columns) {
  Builder b;
  const ValueId x =
      b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{rows, columns}}});
  b.output(OutputKind::Result, "p", b.make("softmax", {x}));
  b.output(OutputKind::Result, "s", b.sum(x, 1, false));
  b.output(OutputKind::Result, "m", b.make("reduce_max", {x}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}}));
  return b.take();
}

program::DeviceProfile profileWith(uint32_t subgroup_size) {
  program::DeviceProfile profile = program::findProfile("portable").orThrow();
  profile.name = fmt::format("subgroups_of_{}", subgroup_size);
  profile.subgroup_size = subgroup_size;
  profile.subgroups = profile.fixed_subgroups = subgroup_size > 1;
  return profile;
}

/// The barriers of its kernels for subgroups of this size; 1: it has none.
int64_t barriersOf(int64_t rows, int64_t columns, uint32_t subgroup_size) {
  return countBarriers(rowsGraph(rows, columns), profileWith(subgroup_size));
}

TEST(SubgroupRows, save_barriers) {
  // The largest element and the sum in one phase, then the sum of exponentials.
  EXPECT_EQ(barriersOf(1024, 16, 1), 2);
  EXPECT_EQ(barriersOf(1024, 16, 32), 0) << "a row in a part of a subgroup";
  EXPECT_EQ(barriersOf(128, 512, 32), 0) << "a row in a subgroup";
  EXPECT_EQ(barriersOf(64, 4096, 1), 4) << "256 lanes in two steps";
  EXPECT_EQ(barriersOf(64, 4096, 32), 2);
  EXPECT_EQ(barriersOf(1, 16, 32), 2) << "no whole subgroup";
}

struct RowsRun {
  const char* device;
  int64_t rows, columns;
  uint32_t subgroup_size;  ///< 0: that of the device
};

class Rows : public ::testing::TestWithParam<RowsRun> {};
INSTANTIATE_TEST_SUITE_P(SubgroupRows, Rows,
                         ::testing::Values(RowsRun{"reference", 1024, 16, 32}, RowsRun{"reference", 515, 64, 8},
                                           RowsRun{"reference", 77, 516, 64}, RowsRun{"reference", 9, 4099, 4},
                                           RowsRun{"reference", 1, 128, 32}, RowsRun{"reference", 1, 192, 32},
                                           RowsRun{"reference", 1, 320, 32}, RowsRun{"reference", 1, 448, 32},
                                           RowsRun{"reference", 1, 192, 1}, RowsRun{"vulkan", 1024, 16, 0}, RowsRun{"vulkan", 515, 64, 0},
                                           RowsRun{"vulkan", 77, 516, 0}, RowsRun{"vulkan", 9, 4099, 0}),
                         [](const auto& info) {
                           return fmt::format("{}_{}x{}_{}", info.param.device, info.param.rows, info.param.columns,
                                              info.param.subgroup_size);
                         });

TEST_P(Rows, are_right) {
  const RowsRun run = GetParam();
  const Result<ChosenDevice> chosen = chooseDevice(run.device);
  if (!chosen.ok()) GTEST_SKIP() << "no usable device " << run.device;
  const uint32_t size = run.subgroup_size != 0 ? run.subgroup_size : (*chosen).info.profile.subgroup_size;
  if (run.subgroup_size == 0 && !(*chosen).info.profile.fixed_subgroups) GTEST_SKIP() << "its subgroups have no fixed size";
  const detail::Device device = profiledDevice(run.device, profileWith(size));
  const auto runner = makeDeviceRunner(rowsGraph(run.rows, run.columns), {}, device).orThrow();
  std::vector<double> x;
  for (int64_t i = 0; i < run.rows * run.columns; ++i) x.push_back(static_cast<double>(i * 7919 % 257) / 64 - 2);
  const StepOutputs out = runner->step({{"x", x}}).orThrow();
  const auto columns = static_cast<size_t>(run.columns);
  for (size_t row = 0; row < static_cast<size_t>(run.rows); ++row) {
    double sum = 0, largest = -INFINITY, exponentials = 0, worst = 0;
    for (size_t i = 0; i < columns; ++i) {
      sum += x[row * columns + i];
      largest = std::max(largest, x[row * columns + i]);
    }
    for (size_t i = 0; i < columns; ++i) exponentials += std::exp(x[row * columns + i] - largest);
    for (size_t i = 0; i < columns; ++i) {
      const double wanted = std::exp(x[row * columns + i] - largest) / exponentials;
      worst = std::max(worst, std::abs(out.at({OutputKind::Result, "p"})[row * columns + i] - wanted) / wanted);
    }
    ASSERT_LT(worst, 1e-5) << "row " << row;
    ASSERT_EQ(out.at({OutputKind::Result, "s"})[row], sum) << "row " << row << ": sums of 64ths are exact";
    ASSERT_EQ(out.at({OutputKind::Result, "m"})[row], largest) << "row " << row;
  }
}

/// A matrix by a vector, with the largest product of each row.
Graph productsGraph(int64_t rows, int64_t columns, DType weights) {
  Builder b;
  const auto input = [&](const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  };
  const ValueId w = b.make("cast", {input("w", weights, {rows, columns})}, {{"dtype", DType::F32}});
  const ValueId x = input("x", DType::F32, {columns}), bias = input("bias", DType::F32, {rows});
  const ValueId products = b.mul(w, b.broadcastTo(x, Shape{rows, columns}));
  b.output(OutputKind::Result, "y", b.add(b.sum(products, 1, false), bias));
  b.output(OutputKind::Result, "m", b.make("reduce_max", {products}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}}));
  return b.take();
}

int64_t rowsPerLane(const Graph& graph, const program::DeviceProfile& profile) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  const passes::Form form = passes::compileTo(passes::Stage::Planned, graph, options).orThrow();
  int64_t most = 0;
  for (const program::Kernel& kernel : std::get<program::Program>(form).kernels) {
    const auto* plan = std::get_if<program::HeldRowsPlan>(&std::get<program::SymbolicKernel>(kernel.code).plan);
    most = std::max(most, plan == nullptr ? 0 : plan->rows_per_lane);
  }
  return most;
}

struct ProductRun {
  const char* device;
  DType weights;
  int64_t rows, columns;
  int64_t rows_per_lane;
};

class RowsTogether : public ::testing::TestWithParam<ProductRun> {};
INSTANTIATE_TEST_SUITE_P(
    SubgroupRows, RowsTogether,
    ::testing::Values(ProductRun{"reference", DType::F32, 1031, 512, 2}, ProductRun{"reference", DType::BF16, 1031, 512, 4},
                      ProductRun{"reference", DType::BF16, 257, 4104, 2}, ProductRun{"reference", DType::F32, 131, 8192, 2},
                      ProductRun{"reference", DType::F32, 1999, 67, 2}, ProductRun{"reference", DType::F32, 8219, 67, 4},
                      ProductRun{"reference", DType::BF16, 60, 4096, 1}, ProductRun{"vulkan", DType::F32, 1031, 512, 2},
                      ProductRun{"vulkan", DType::BF16, 257, 4104, 2}),
    [](const auto& info) {
      return fmt::format("{}_{}_{}x{}", info.param.device, toString(info.param.weights), info.param.rows, info.param.columns);
    });

TEST_P(RowsTogether, are_right) {
  const ProductRun run = GetParam();
  const Result<ChosenDevice> chosen = chooseDevice(run.device);
  if (!chosen.ok()) GTEST_SKIP() << "no usable device " << run.device;
  // The reference has any subgroups.
  const program::DeviceProfile& its = (*chosen).info.profile;
  const bool is_reference = std::string_view(run.device) == "reference";
  program::DeviceProfile profile = profileWith(is_reference ? 32 : its.fixed_subgroups ? its.subgroup_size : 1);
  profile.parallel_units = 8;
  const Graph graph = productsGraph(run.rows, run.columns, run.weights);
  EXPECT_EQ(rowsPerLane(graph, profile), run.rows_per_lane);
  const auto runner = makeDeviceRunner(graph, {}, profiledDevice(run.device, profile)).orThrow();
  const auto rows = static_cast<size_t>(run.rows), columns = static_cast<size_t>(run.columns);
  std::vector<double> w(rows * columns), x(columns), bias(rows);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>(i * 7919 % 255) / 64 - 2;
  for (size_t i = 0; i < columns; ++i) x[i] = static_cast<double>(i * 31 % 17) / 4 - 2;
  for (size_t i = 0; i < rows; ++i) bias[i] = static_cast<double>(i);
  const StepOutputs out = runner->step({{"w", w}, {"x", x}, {"bias", bias}}).orThrow();
  for (size_t row = 0; row < rows; ++row) {
    double sum = bias[row], largest = -INFINITY;
    for (size_t i = 0; i < columns; ++i) {
      sum += w[row * columns + i] * x[i];
      largest = std::max(largest, w[row * columns + i] * x[i]);
    }
    ASSERT_EQ(out.at({OutputKind::Result, "y"})[row], sum) << "row " << row << ": sums of 256ths are exact";
    ASSERT_EQ(out.at({OutputKind::Result, "m"})[row], largest) << "row " << row;
  }
}

TEST(SubgroupRows, are_refused_by_a_device_with_other_subgroups) {
  const Result<ChosenDevice> chosen = chooseDevice("vulkan");
  if (!chosen.ok()) GTEST_SKIP() << "no usable device vulkan";
  const uint32_t other = (*chosen).info.profile.subgroup_size == 64 ? 32 : 64;
  const Result<std::unique_ptr<GraphRunner>> runner =
      makeDeviceRunner(rowsGraph(1024, 16), {}, profiledDevice("vulkan", profileWith(other)));
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.diagnostics().front().code, "vulkan.feature");
  EXPECT_NE(toString(runner.diagnostics()).find(fmt::format("needs subgroups of {} invocations", other)), std::string::npos);
}

TEST(SubgroupRows, of_a_text_are_checked) {
  const auto fails = [](program::HeldRowsPlan plan) {
    passes::CompileOptions options;
    options.profile = profileWith(32);
    options.templates = detail::templateSource();
    passes::Form form = passes::compileTo(passes::Stage::Planned, rowsGraph(1024, 16), options).orThrow();
    auto& program = std::get<program::Program>(form);
    for (program::Kernel& kernel : program.kernels) std::get<program::SymbolicKernel>(kernel.code).plan = plan;
    const Result<std::unique_ptr<GraphRunner>> runner = makeProgramRunner(std::move(program), profiledDevice("reference", options.profile));
    return !runner.ok() && runner.diagnostics().front().code == "program.plan";
  };
  const program::HeldRowsPlan right{.lanes = 4, .rows_per_group = 32, .width = 4};
  EXPECT_FALSE(fails(right));
  program::HeldRowsPlan part = right, several = right;
  part.subgroup = 256;
  several.rounds = 2;
  EXPECT_TRUE(fails(part)) << "half a subgroup";
  EXPECT_TRUE(fails(several)) << "rounds of several rows";
  program::HeldRowsPlan together = right;
  together.rows_per_lane = 2;
  EXPECT_TRUE(fails(together)) << "several rows at once, whose results are as long as they";
}

}  // namespace
}  // namespace lockstep
