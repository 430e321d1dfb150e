// SPDX-License-Identifier: Apache-2.0
// Who stores packed results: how many dispatches a product or a row kernel takes whose result is rounded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/program/profile.h"
#include "passes/pipeline.h"
#include "tests/passes/profiled_device.h"

namespace lockstep::passes {
namespace {

using graph::DType;
using graph::ValueId;

class Leaves : public graph::Builder {
 public:
  ValueId input(const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  }
  ValueId cast(ValueId value, DType dtype) { return make("cast", {value}, {{"dtype", dtype}}); }
};

size_t dispatchesOf(Leaves& leaves, ValueId result, std::string_view profile) {
  leaves.output(graph::OutputKind::Result, "y", result);
  CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.templates = detail::templateSource();
  const program::Program program = compile(leaves.take(), options).orThrow().program;
  return static_cast<size_t>(std::ranges::count_if(
      program.commands, [](const program::Command& command) { return std::holds_alternative<program::Dispatch>(command.action); }));
}

size_t dispatchesOfProduct(int64_t columns, DType dtype, std::string_view profile) {
  Leaves b;
  const ValueId left = b.cast(b.input("a", DType::BF16, {33, 40}), DType::F32), right = b.input("b", DType::F32, {40, columns});
  return dispatchesOf(b, b.cast(b.make("relu", {b.make("matmul", {left, right})}), dtype), profile);
}

size_t dispatchesOfRows(int64_t columns, DType dtype, std::string_view profile) {
  Leaves b;
  return dispatchesOf(b, b.cast(b.make("softmax", {b.input("x", DType::F32, {9, columns})}), dtype), profile);
}

TEST(PackedStores, products_of_an_even_number_of_columns_store_words) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    for (const DType dtype : {DType::BF16, DType::F16}) {
      EXPECT_EQ(dispatchesOfProduct(66, dtype, profile), 1u) << profile;
      EXPECT_EQ(dispatchesOfProduct(65, dtype, profile), 2u) << profile << ": words cross the ends of rows";
      EXPECT_EQ(dispatchesOfProduct(2, dtype, profile), 1u) << profile;
    }
    EXPECT_EQ(dispatchesOfProduct(64, DType::I8, profile), 2u) << profile << ": an invocation has pairs, not four neighbours";
  }
}

TEST(PackedStores, rows_of_whole_words_store_them) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    EXPECT_EQ(dispatchesOfRows(34, DType::BF16, profile), 1u) << profile;
    EXPECT_EQ(dispatchesOfRows(33, DType::BF16, profile), 2u) << profile;
    EXPECT_EQ(dispatchesOfRows(36, DType::U8, profile), 1u) << profile;
    EXPECT_EQ(dispatchesOfRows(34, DType::U8, profile), 2u) << profile;
  }
}

graph::Graph sumsOf(int64_t rows, int64_t columns, int64_t axis, DType dtype) {
  Leaves b;
  const ValueId x = b.input("x", dtype, {rows, columns});
  const ValueId wide = dtype == DType::F32 ? x : b.cast(x, DType::F32);
  b.output(graph::OutputKind::Result, "y", b.cast(b.sum(wide, axis, false), DType::BF16));
  return b.take();
}

size_t dispatchesOfSums(int64_t rows, int64_t columns, int64_t axis, std::string_view profile) {
  CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.templates = detail::templateSource();
  return compile(sumsOf(rows, columns, axis, DType::F32), options).orThrow().program.commands.size();
}

TEST(PackedStores, sums_of_rows_and_columns_store_words) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    EXPECT_EQ(dispatchesOfSums(33, 100, 1, profile), 1u) << profile << ": the rows of a workgroup bring their results together";
    EXPECT_EQ(dispatchesOfSums(1, 100, 1, profile), 1u) << profile << ": also the only one, whose word is filled up";
    EXPECT_EQ(dispatchesOfSums(33, 3, 1, profile), 2u) << profile << ": a row that is too short to be held";
    EXPECT_EQ(dispatchesOfSums(100, 34, 0, profile), 1u) << profile;
    EXPECT_EQ(dispatchesOfSums(100, 33, 0, profile), 2u) << profile << ": an odd number of columns";
  }
}

struct SumCase {
  const char* device;
  int64_t rows, columns, axis;
  DType dtype;
};

class PackedSums : public ::testing::TestWithParam<SumCase> {};

std::vector<SumCase> sumCases() {
  std::vector<SumCase> cases;
  for (const char* device : {"reference", "vulkan"}) {
    for (const DType dtype : {DType::F32, DType::BF16, DType::U8}) {
      for (const int64_t axis : {0, 1}) {
        for (const auto& [rows, columns] :
             {std::pair(1, 65), std::pair(3, 1), std::pair(65, 257), std::pair(257, 64), std::pair(33, 4096), std::pair(6, 8)})
          cases.push_back({device, rows, columns, axis, dtype});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Devices, PackedSums, ::testing::ValuesIn(sumCases()), [](const auto& info) {
  return fmt::format("{}_{}_{}x{}_axis{}", info.param.device, toString(info.param.dtype), info.param.rows, info.param.columns,
                     info.param.axis);
});

/// By the plans of GPUs, on whatever device there is. All sums are whole numbers that bf16 has.
TEST_P(PackedSums, are_right_at_every_length) {
  const auto [name, rows, columns, axis, dtype] = GetParam();
  if (!chooseDevice(name).ok()) GTEST_SKIP() << "no usable device " << name;
  const detail::Device device = portableDevice(name);
  const auto runner = makeDeviceRunner(sumsOf(rows, columns, axis, dtype), {}, device).orThrow();
  std::vector<double> x(static_cast<size_t>(rows * columns)), wanted(static_cast<size_t>(axis == 0 ? columns : rows), 0.0);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double value = i % 61 == 7 ? 3 : 0;
    x[static_cast<size_t>(i)] = value;
    wanted[static_cast<size_t>(axis == 0 ? i % columns : i / columns)] += value;
  }
  EXPECT_EQ(runner->step({{"x", x}}).orThrow().at({graph::OutputKind::Result, "y"}), wanted);
}

}  // namespace
}  // namespace lockstep::passes
