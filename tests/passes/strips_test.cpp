// SPDX-License-Identifier: Apache-2.0
// Long maps in strips: chosen where they pay, and right at every length.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "passes/cost.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

/// y = 3x - z with a z that every row shares, and how often y is above 1.
Graph longMap(int64_t rows, int64_t columns) {
  Builder b;
  const auto input = [&](const std::string& name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  const ValueId x = input("x", {rows, columns}), z = input("z", {columns});
  const ValueId y = b.sub(b.mul(x, 3.0), b.broadcastTo(z, Shape{rows, columns}));
  b.output(OutputKind::Result, "y", y);
  b.output(OutputKind::Result, "above", b.make("greater", {y, b.constant(1, b.typeOf(y))}));
  return b.take();
}

/// The plans of its kernels for a profile.
std::vector<program::Plan> plansOf(const Graph& graph, const program::DeviceProfile& profile) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  const passes::Form form = passes::compileTo(passes::Stage::Scheduled, graph, options).orThrow();
  std::vector<program::Plan> plans;
  for (const program::Kernel& kernel : std::get<program::Program>(form).kernels)
    plans.push_back(std::get<program::SymbolicKernel>(kernel.code).plan);
  return plans;
}

bool hasStrips(const Graph& graph, std::string_view profile) {
  return std::ranges::any_of(plansOf(graph, program::findProfile(profile).orThrow()),
                             [](const program::Plan& plan) { return std::holds_alternative<program::StripsPlan>(plan); });
}

TEST(Strips, are_for_long_maps_on_gpus) {
  const int64_t rows = passes::cost::kManyElements / 1023 + 1;
  EXPECT_TRUE(hasStrips(longMap(rows, 1023), "portable"));
  EXPECT_FALSE(hasStrips(longMap(rows - 1, 1023), "portable")) << "one row less";
  EXPECT_FALSE(hasStrips(longMap(rows, 1024), "portable")) << "whole vectors are better";
  EXPECT_FALSE(hasStrips(longMap(rows, 1023), "cpu"));
}

class LongMaps : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, LongMaps, ::testing::Values("reference", "vulkan"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LongMaps, are_right_up_to_their_last_element) {
  if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  const detail::Device device = portableDevice(GetParam());
  // Primes, so that the last strip is not whole.
  const int64_t rows = 4111, columns = 1021;
  ASSERT_TRUE(hasStrips(longMap(rows, columns), "portable"));
  passes::CompileOptions options;
  const auto runner = makeDeviceRunner(longMap(rows, columns), options, device).orThrow();
  std::vector<double> x(static_cast<size_t>(rows * columns)), z(static_cast<size_t>(columns));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 8191) / 64;
  for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<double>(i % 127);
  const StepOutputs outputs = runner->step({{"x", x}, {"z", z}}).orThrow();
  const auto& y = outputs.at({OutputKind::Result, "y"});
  const auto& above = outputs.at({OutputKind::Result, "above"});
  ASSERT_EQ(y.size(), x.size());
  size_t wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = 3 * x[i] - z[i % z.size()];  // exact in f32
    wrong += y[i] != expected || above[i] != (expected > 1 ? 1.0 : 0.0) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace lockstep
