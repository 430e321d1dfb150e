// SPDX-License-Identifier: Apache-2.0
// Sums over rows of products with a factor that neighbours share, as the scale of a group of integers: one multiplication per vector.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

constexpr int64_t kRows = 67, kColumns = 256;

struct Scales {
  int64_t group;         ///< neighbours with the same scale
  int64_t scaled = 256;  ///< columns that have one; the others are multiplied by 3
};

/// Rows of q times their scales, by the vector x.
Graph scaledSums(const Scales& scales) {
  Builder b;
  const auto input = [&](const std::string& name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  const int64_t groups = (scales.scaled + scales.group - 1) / scales.group;
  const ValueId q = input("q", {kRows, kColumns}), s = input("s", {kRows, groups}), x = input("x", {kColumns});
  const ValueId each = b.broadcastTo(b.reshape(s, Shape{kRows, groups, 1}), Shape{kRows, groups, scales.group});
  ValueId repeated = b.make("narrow", {b.reshape(each, Shape{kRows, groups * scales.group})},
                            {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"length", scales.scaled}});
  if (scales.scaled < kColumns) {
    repeated =
        b.make("pad", {repeated}, {{"axis", int64_t{1}}, {"before", int64_t{0}}, {"after", kColumns - scales.scaled}, {"value", 3.0}});
  }
  const ValueId products = b.mul(b.mul(q, repeated), b.broadcastTo(x, Shape{kRows, kColumns}));
  b.output(OutputKind::Result, "y", b.sum(products, 1, false));
  return b.take();
}

int64_t multiplications(const Scales& scales) {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(scaledSums(scales), options).orThrow();
  EXPECT_EQ(compiled.program.kernels.size(), 1u);
  const auto& module = std::get<kernel::Module>(compiled.program.kernels.front().code);
  return std::ranges::count_if(module.instructions, [&](const kernel::Instruction& x) {
    return x.op == kernel::Op::Mul && module.types[x.type].is(kernel::Scalar::F32);
  });
}

TEST(SumFactors, are_multiplied_once_per_vector) {
  // 16 elements of a row per lane, in vectors of four.
  EXPECT_EQ(multiplications({.group = 1}), 32);
  EXPECT_EQ(multiplications({.group = 2}), 32) << "two in one vector";
  EXPECT_EQ(multiplications({.group = 4}), 16 + 4);
  EXPECT_EQ(multiplications({.group = 32}), 16 + 4);
  EXPECT_EQ(multiplications({.group = 32, .scaled = 150}), 32) << "a vector with a scale for two of its elements";
}

/// "gpu" is the reference, planned for as a small GPU, where lanes have several rows at once.
class SumFactorsOn : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(SumFactors, SumFactorsOn, ::testing::Values("reference", "gpu", "vulkan"),
                         [](const auto& info) { return info.param; });

detail::Device deviceOf(std::string_view name) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 1;
  return name == "gpu" ? profiledDevice("reference", profile) : detail::openChosenDevice(std::string(name));
}

TEST_P(SumFactorsOn, give_the_sums_of_all_products) {
  if (std::string_view(GetParam()) == "vulkan" && !chooseDevice("vulkan").ok()) GTEST_SKIP() << "no usable device vulkan";
  const detail::Device device = deviceOf(GetParam());
  for (const Scales& scales : {Scales{1}, Scales{2}, Scales{4}, Scales{8}, Scales{32}, Scales{256}, Scales{32, 150}, Scales{8, 150}}) {
    SCOPED_TRACE(fmt::format("groups of {}, {} scaled", scales.group, scales.scaled));
    const auto rows = static_cast<size_t>(kRows), columns = static_cast<size_t>(kColumns), group = static_cast<size_t>(scales.group);
    const size_t groups = (static_cast<size_t>(scales.scaled) + group - 1) / group;
    std::vector<double> q(rows * columns), s(rows * groups), x(columns);
    for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<double>(i * 7919 % 255) - 127;
    for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<double>(i * 31 % 13) / 4;
    for (size_t i = 0; i < columns; ++i) x[i] = static_cast<double>(i * 31 % 17) / 4 - 2;
    const auto runner = makeDeviceRunner(scaledSums(scales), {}, device).orThrow();
    const StepOutputs out = runner->step({{"q", q}, {"s", s}, {"x", x}}).orThrow();
    for (size_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (size_t i = 0; i < columns; ++i)
        sum += q[row * columns + i] * x[i] * (i < static_cast<size_t>(scales.scaled) ? s[row * groups + i / group] : 3.0);
      ASSERT_EQ(out.at({OutputKind::Result, "y"})[row], sum) << "row " << row << ": sums of 16ths are exact";
    }
  }
}

}  // namespace
}  // namespace lockstep
