// SPDX-License-Identifier: Apache-2.0
// What is estimated of plans where no golden text shows it: numbers of workgroups, and how long maps are read.
#include <gtest/gtest.h>

#include <string>

#include "ir/graph/builder.h"
#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {
namespace {

program::DeviceProfile profile(const std::string& name) { return program::findProfile(name).orThrow(); }

TEST(SplitGroups, covers_all_within_the_limit_and_leaves_less_than_a_row_over) {
  const program::DeviceProfile portable = profile("portable");
  ASSERT_EQ(portable.max_groups_per_dimension, 65535u);
  for (const int64_t groups : {1, 2, 65534, 65535, 65536, 65537, 131070, 131071, 1'000'003, 40'000'003}) {
    const auto [x, y, z] = splitGroups(groups, portable);
    const int64_t made = int64_t{x} * y;
    EXPECT_LE(x, portable.max_groups_per_dimension) << groups;
    EXPECT_LE(y, portable.max_groups_per_dimension) << groups;
    EXPECT_EQ(z, 1u) << groups;
    EXPECT_GE(made, groups);
    EXPECT_LT(made - groups, y) << groups;
  }
}

/// The plan of x + ... + x of as many different operands.
program::Plan planOfSum(int operands, int64_t elements, const program::DeviceProfile& profile) {
  graph::Builder b;
  graph::ValueId sum;
  for (int i = 0; i < operands; ++i) {
    const graph::ValueId x =
        b.make("input", {}, {{"name", "x" + std::to_string(i)}, {"dtype", graph::DType::F32}, {"shape", std::vector{elements}}});
    sum = i == 0 ? b.make("exp", {x}) : b.add(sum, x);
  }
  b.output(graph::OutputKind::Result, "y", sum);
  const graph::Graph body = b.take();
  return choosePlan({body, graph::GroupKind::Map, profile, true}).orThrow().plan;
}

TEST(ChooseMap, long_maps_of_several_tensors_load_half_as_much_at_a_time) {
  const program::DeviceProfile gpu = profile("portable");
  EXPECT_EQ(program::print(planOfSum(1, int64_t{1} << 25, gpu)), "vector {lanes = 128, width = 4}");
  EXPECT_EQ(program::print(planOfSum(2, int64_t{1} << 25, gpu)), "vector {lanes = 128, width = 2}");
  EXPECT_EQ(program::print(planOfSum(2, int64_t{1} << 20, gpu)), "vector {lanes = 256, width = 4}");
  EXPECT_EQ(program::print(planOfSum(2, (int64_t{1} << 25) + 1, gpu)), "strips {lanes = 256, per_lane = 4}");
}

TEST(ChooseMap, cpu_drivers_take_vectors_of_long_maps) {
  const program::DeviceProfile cpu = profile("cpu");
  EXPECT_EQ(program::print(planOfSum(2, 65536, cpu)), "vector {lanes = 256, width = 4}");
  EXPECT_EQ(program::print(planOfSum(2, 65532, cpu)), "map {lanes = 256}");
  EXPECT_EQ(program::print(planOfSum(2, 65537, cpu)), "map {lanes = 256}");
}

program::Plan planOf(const std::string& op, int64_t rows, int64_t columns, const graph::Attributes& attributes, graph::GroupKind kind) {
  graph::Builder b;
  const graph::ValueId x = b.make("input", {}, {{"name", "x"}, {"dtype", graph::DType::F32}, {"shape", std::vector{rows, columns}}});
  b.output(graph::OutputKind::Result, "y", b.make(op, {x}, attributes));
  const graph::Graph body = b.take();
  return choosePlan({body, kind, profile("cpu"), true}).orThrow().plan;
}

TEST(ChooseRows, cpu_drivers_hold_rows_by_as_few_lanes_as_can) {
  const auto planOfRows = [](int64_t rows, int64_t columns) {
    const graph::Attributes attributes{{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}};
    return program::print(planOf("sum", rows, columns, attributes, graph::GroupKind::Rows));
  };
  EXPECT_EQ(planOfRows(100, 32), "held_rows {lanes = 1, per_lane = 4, rows_per_group = 64, width = 8}");
  EXPECT_EQ(planOfRows(100, 33), "held_rows {lanes = 2, per_lane = 17, rows_per_group = 32, width = 1}");
  EXPECT_EQ(planOfRows(100, 4096), "held_rows {lanes = 128, per_lane = 4, rows_per_group = 2, width = 8}");
  EXPECT_EQ(planOfRows(100'000, 3), "rows {lanes = 1, rows_per_group = 64}");
  EXPECT_EQ(planOfRows(100'000, 20'011), "rows {lanes = 1, rows_per_group = 64}");
}

TEST(ChooseColumns, cpu_drivers_share_few_long_columns) {
  const auto planOfColumns = [](int64_t rows, int64_t columns) {
    const graph::Attributes attributes{{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}};
    return program::print(planOf("sum", rows, columns, attributes, graph::GroupKind::Columns));
  };
  EXPECT_EQ(planOfColumns(4096, 16), "columns {lanes = 32, unroll = 4, width = 8}");
  EXPECT_EQ(planOfColumns(4095, 16), "columns {lanes = 1, width = 32}") << "small ones stay as they are, so that they can be merged";
  EXPECT_EQ(planOfColumns(256, 512), "columns {lanes = 1, unroll = 4, width = 32}");
}

}  // namespace
}  // namespace lockstep::passes
