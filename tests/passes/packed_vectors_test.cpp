// SPDX-License-Identifier: Apache-2.0
// Eight neighbours of 16 bits at once, as GPUs load them: chosen where everything of full size is packed, and right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

constexpr int64_t kRows = 37, kColumns = 4096;

/// m = x + 2y, the softmax of each row of x, and the sums of its columns.
Graph packedGraph(DType results) {
  Builder b;
  const auto input = [&](const std::string& name) {
    const ValueId packed = b.make("input", {}, {{"name", name}, {"dtype", DType::BF16}, {"shape", std::vector<int64_t>{kRows, kColumns}}});
    return b.make("cast", {packed}, {{"dtype", DType::F32}});
  };
  const auto output = [&](const std::string& name, ValueId value) {
    b.output(OutputKind::Result, name, results == DType::F32 ? value : b.make("cast", {value}, {{"dtype", results}}));
  };
  const ValueId x = input("x"), y = input("y");
  output("m", b.add(x, b.mul(y, 2.0)));
  output("p", b.make("softmax", {x}));
  b.output(OutputKind::Result, "s", b.sum(x, 0, false));
  return b.take();
}

/// The widths of the plans for a GPU, sorted.
std::vector<int64_t> widthsOf(DType results) {
  passes::CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  options.templates = detail::templateSource();
  const passes::Form form = passes::compileTo(passes::Stage::Scheduled, packedGraph(results), options).orThrow();
  std::vector<int64_t> widths;
  for (const program::Kernel& kernel : std::get<program::Program>(form).kernels) {
    const program::Plan& plan = std::get<program::SymbolicKernel>(kernel.code).plan;
    if (const auto* map = std::get_if<program::VectorPlan>(&plan)) widths.push_back(map->width);
    if (const auto* rows = std::get_if<program::HeldRowsPlan>(&plan)) widths.push_back(rows->width);
    if (const auto* columns = std::get_if<program::ColumnsPlan>(&plan)) widths.push_back(columns->vector);
  }
  std::ranges::sort(widths);
  return widths;
}

TEST(PackedVectors, have_eight_elements_where_all_are_packed) {
  EXPECT_EQ(widthsOf(DType::BF16), (std::vector<int64_t>{8, 8, 8}));
  EXPECT_EQ(widthsOf(DType::F32), (std::vector<int64_t>{4, 4, 8})) << "results of 32 bits: 16 bytes are four";
}

class PackedVectors : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, PackedVectors, ::testing::Values("reference", "vulkan"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(PackedVectors, are_right) {
  if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  const detail::Device device = portableDevice(GetParam());
  const auto runner = makeDeviceRunner(packedGraph(DType::BF16), {}, device).orThrow();
  std::vector<double> x, y;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    x.push_back(static_cast<double>(i * 7 % 9) - 4);
    y.push_back(static_cast<double>(i * 5 % 11));
  }
  const StepOutputs out = runner->step({{"x", x}, {"y", y}}).orThrow();
  std::vector<double> m, sums(kColumns, 0.0);
  double worst = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const auto first = static_cast<size_t>(row * kColumns);
    double total = 0;
    for (size_t i = first; i < first + kColumns; ++i) total += std::exp(x[i]);
    for (size_t i = first; i < first + kColumns; ++i) {
      const double wanted = std::exp(x[i]) / total;
      worst = std::max(worst, std::abs(out.at({OutputKind::Result, "p"})[i] - wanted) / wanted);
      m.push_back(x[i] + 2 * y[i]);
      sums[i - first] += x[i];
    }
  }
  EXPECT_EQ(out.at({OutputKind::Result, "m"}), m);
  EXPECT_EQ(out.at({OutputKind::Result, "s"}), sums);
  EXPECT_LT(worst, 0x1p-8 + 1e-5) << "half a unit in the last place of bf16, and what the exponential may be off";
}

}  // namespace
}  // namespace lockstep
