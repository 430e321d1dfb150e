// SPDX-License-Identifier: Apache-2.0
// Sums by columns whose lanes are combined by subgroups: the barriers that this saves, and that it is right for any size.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/passes/count_barriers.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

/// The sum, the sum of squares and the largest element of each column of bf16 numbers, each row of which is multiplied with a number.
Graph columnsGraph(int64_t rows, int64_t columns) {
  Builder b;
  const ValueId stored =
      b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::BF16}, {"shape", std::vector<int64_t>{rows, columns}}});
  const ValueId row = b.make("input", {}, {{"name", std::string("r")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{rows, 1}}});
  const ValueId x = b.mul(b.make("cast", {stored}, {{"dtype", DType::F32}}), b.broadcastTo(row, Shape{rows, columns}));
  b.output(OutputKind::Result, "s", b.sum(x, 0, false));
  b.output(OutputKind::Result, "q", b.sum(b.mul(x, x), 0, false));
  b.output(OutputKind::Result, "m", b.make("reduce_max", {x}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}}));
  return b.take();
}

program::DeviceProfile columnsProfile(uint32_t subgroup_size) {
  program::DeviceProfile profile = program::findProfile("portable").orThrow();
  profile.name = fmt::format("subgroups_of_{}", subgroup_size);
  profile.max_workgroup_invocations = profile.max_workgroup_size_x = 1024;
  profile.parallel_units = 132;
  profile.subgroup_size = subgroup_size;
  profile.subgroups = profile.fixed_subgroups = subgroup_size > 1;
  return profile;
}

int64_t columnBarriers(int64_t rows, int64_t columns, uint32_t subgroup_size) {
  return countBarriers(columnsGraph(rows, columns), columnsProfile(subgroup_size));
}

TEST(SubgroupsOfColumns, save_barriers) {
  EXPECT_EQ(columnBarriers(2048, 896, 32), 1) << "for all sums of all columns";
  EXPECT_EQ(columnBarriers(2048, 896, 64), 1);
  EXPECT_GE(columnBarriers(2048, 896, 1), 3 * 7) << "a tree for each";
}

struct ColumnsRun {
  int64_t rows, columns;
  uint32_t subgroup_size;
};

class SubgroupColumns : public ::testing::TestWithParam<ColumnsRun> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SubgroupColumns,
                         ::testing::Values(ColumnsRun{896, 896, 32}, ColumnsRun{4099, 128, 32}, ColumnsRun{2048, 4864, 32},
                                           ColumnsRun{1031, 516, 8}, ColumnsRun{1031, 514, 64}, ColumnsRun{997, 77, 32},
                                           ColumnsRun{100003, 12, 32}, ColumnsRun{4099, 36, 4}, ColumnsRun{513, 8, 128},
                                           ColumnsRun{997, 1, 32}, ColumnsRun{2048, 896, 1}),
                         [](const auto& info) {
                           return fmt::format("{}x{}_{}", info.param.rows, info.param.columns, info.param.subgroup_size);
                         });

TEST_P(SubgroupColumns, are_right) {
  const ColumnsRun run = GetParam();
  const detail::Device device = profiledDevice("reference", columnsProfile(run.subgroup_size));
  const auto runner = makeDeviceRunner(columnsGraph(run.rows, run.columns), {}, device).orThrow();
  std::vector<double> x;
  for (int64_t i = 0; i < run.rows * run.columns; ++i) x.push_back(static_cast<double>(i * 7919 % 127) / 16 - 4);
  std::vector<double> r;
  for (int64_t i = 0; i < run.rows; ++i) r.push_back(i % 3 == 0 ? -2 : 1);
  const StepOutputs out = runner->step({{"x", x}, {"r", r}}).orThrow();
  for (size_t i = 0; i < x.size(); ++i) x[i] *= r[i / static_cast<size_t>(run.columns)];
  const auto columns = static_cast<size_t>(run.columns);
  for (size_t column = 0; column < columns; ++column) {
    double sum = 0, squares = 0, largest = x[column];
    for (size_t i = column; i < x.size(); i += columns) {
      sum += x[i];
      squares += x[i] * x[i];
      largest = std::max(largest, x[i]);
    }
    // Sums of 16ths are exact; of squares they are up to 2^24 / 256.
    ASSERT_EQ(out.at({OutputKind::Result, "s"})[column], sum) << "column " << column;
    ASSERT_NEAR(out.at({OutputKind::Result, "q"})[column], squares, 1e-6 * squares) << "column " << column;
    ASSERT_EQ(out.at({OutputKind::Result, "m"})[column], largest) << "column " << column;
  }
}

}  // namespace
}  // namespace lockstep
