// SPDX-License-Identifier: Apache-2.0
// Products by matrix units, beside the f64 evaluator. A device without units spreads the matrices over its subgroups, and so does the
// reference, so that the kernels are checked everywhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/differential/compare.h"
#include "tests/differential/matrix_devices.h"
#include "tests/differential/product_case.h"

namespace lockstep {
namespace {

using graph::DType;

/// As many units as make each tile the choice at the sizes below.
std::vector<uint32_t> unitsOf(const ProductCase& one) {
  if (std::getenv("LOCKSTEP_NIGHTLY") != nullptr) return {1, 6};
  return {one.is_second ? 1u : 6u};
}

/// Whether a product is planned for matrix units on this device.
bool goesToUnits(const graph::Graph& graph, const detail::Device& device) {
  passes::CompileOptions options;
  options.profile = device.chosen.info.profile;
  options.templates = detail::templateSource();
  const auto program = std::get<program::Program>(passes::compileTo(passes::Stage::Scheduled, graph, options).orThrow());
  return std::ranges::any_of(program.kernels,
                             [](const program::Kernel& kernel) { return kernel.name.find("matrix_tiled") != std::string::npos; });
}

class MatrixProducts : public ::testing::TestWithParam<ProductCase> {};

TEST_P(MatrixProducts, agree_with_the_evaluator) {
  const ProductCase& c = GetParam();
  const Product product = makeProduct(c);
  const std::vector<graph::Tensor> want = runGraph(product.graph, product.leaves);
  for (const std::string& device : devicesWithMatrices()) {
    for (const uint32_t units : unitsOf(c)) {
      const detail::Device gpu = withUnits(*openedDevice(device), units);
      const std::vector<graph::Tensor> got = runGraph(product.graph, product.leaves, {.device = device, .opened = &gpu});
      expectClose(got, want, c.stored == DType::F32 ? 1e-6 : 4e-3, fmt::format("on {} with {} units", device, units));
    }
  }
}

/// Of f32 only extents that are multiples of 4, and inner axes of 128 and more: others are left to plain f32.
std::vector<ProductCase> productCases() {
  std::vector<ProductCase> cases{{.name = "whole_tiles", .m = 128, .n = 256, .k = 128},
                                 {.name = "left_turned", .m = 132, .n = 136, .k = 260, .order = "tn"},
                                 {.name = "right_turned", .m = 132, .n = 136, .k = 260, .order = "nt"},
                                 {.name = "both_turned", .m = 132, .n = 136, .k = 260, .order = "tt"},
                                 {.name = "few_columns", .m = 644, .n = 32, .k = 132},
                                 {.name = "few_rows", .m = 24, .n = 516, .k = 260, .order = "tn"},
                                 {.name = "bf16_odd", .m = 131, .n = 157, .k = 211, .stored = DType::BF16},
                                 {.name = "bf16_odd_both_turned", .m = 131, .n = 157, .k = 211, .order = "tt", .stored = DType::BF16},
                                 {.name = "batched", .batch = 6, .m = 68, .n = 100, .k = 132, .order = "nt"},
                                 {.name = "batch_of_one_right", .batch = 5, .m = 60, .n = 128, .k = 132, .one_right = true},
                                 {.name = "fused", .m = 128, .n = 136, .k = 260, .fused = true},
                                 {.name = "fused_both_turned", .m = 132, .n = 140, .k = 260, .order = "tt", .fused = true},
                                 {.name = "bf16", .m = 128, .n = 136, .k = 260, .stored = DType::BF16},
                                 {.name = "bf16_turned", .m = 136, .n = 128, .k = 260, .order = "tt", .stored = DType::BF16},
                                 {.name = "bf16_pairs", .m = 128, .n = 134, .k = 262, .fused = true, .stored = DType::BF16},
                                 {.name = "f16_odd", .m = 131, .n = 135, .k = 261, .stored = DType::F16}};
  for (size_t i = 1; i < cases.size(); i += 2) cases[i].is_second = true;
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, MatrixProducts, ::testing::ValuesIn(productCases()), [](const auto& info) { return info.param.name; });

/// Operands in rows of odd lengths, which are copied where that pays: here it always does.
class PaddedProducts : public ::testing::TestWithParam<ProductCase> {};

TEST_P(PaddedProducts, agree_with_the_evaluator) {
  const ProductCase& c = GetParam();
  const Product product = makeProduct(c);
  const std::vector<graph::Tensor> want = runGraph(product.graph, product.leaves);
  for (const std::string& device : devicesWithMatrices()) {
    detail::Device gpu = withUnits(*openedDevice(device), 6);
    gpu.chosen.info.profile.f32_mflops = 1;
    const std::vector<graph::Tensor> got = runGraph(product.graph, product.leaves, {.device = device, .opened = &gpu});
    expectClose(got, want, c.stored == DType::F32 ? 1e-6 : 4e-3, fmt::format("on {}", device));
  }
}

std::vector<ProductCase> paddedCases() {
  return {{.name = "odd", .m = 191, .n = 193, .k = 211},
          {.name = "odd_left_turned", .m = 191, .n = 193, .k = 211, .order = "tn"},
          {.name = "odd_both_turned", .m = 191, .n = 193, .k = 211, .order = "tt"},
          {.name = "inner_only", .m = 192, .n = 196, .k = 211, .order = "nt"},
          {.name = "batched", .batch = 3, .m = 130, .n = 131, .k = 133},
          {.name = "fused", .m = 191, .n = 193, .k = 211, .fused = true},
          {.name = "bf16", .m = 191, .n = 193, .k = 211, .order = "nt", .stored = DType::BF16}};
}
INSTANTIATE_TEST_SUITE_P(Cases, PaddedProducts, ::testing::ValuesIn(paddedCases()), [](const auto& info) { return info.param.name; });

/// Rows of A and columns of B of very different sizes, with some that are zero, infinite or no numbers.
struct Scales {
  std::string name;
  int rows = 0, columns = 0;  ///< powers of two, from minus to plus
  int along = 0;              ///< the same along the inner axis, growing
  float special = 0;          ///< in one place of A, unless 0
};
void PrintTo(const Scales& one, std::ostream* out) { *out << one.name; }
class MatrixScales : public ::testing::TestWithParam<Scales> {};

/// Each result is within a few units in the last place of f32 of the sum of its terms' sizes.
TEST_P(MatrixScales, results_are_as_accurate_as_those_of_f32) {
  const Scales& scales = GetParam();
  constexpr int64_t kM = 128, kN = 128, kK = 288;
  for (const char* order : {"nn", "tt"}) {
    Product product = makeProduct({.name = "", .m = kM, .n = kN, .k = kK, .order = order});
    std::vector<double> a(kM * kK), b(kK * kN);
    const bool turned = order[0] == 't';
    graph::Tensor &left = product.leaves.at("a"), &right = product.leaves.at("b");
    const auto power = [](int64_t i, int64_t count, int most) {
      return std::ldexp(1.0,
                        static_cast<int>(std::lround((2.0 * static_cast<double>(i * 37 % count) / static_cast<double>(count) - 1) * most)));
    };
    for (int64_t m = 0; m < kM; ++m) {
      for (int64_t k = 0; k < kK; ++k) {
        const auto at = static_cast<size_t>(turned ? k * kM + m : m * kK + k);
        double value =
            static_cast<float>(left.data[at] * power(m, kM, scales.rows) * std::ldexp(1.0, static_cast<int>(k * scales.along / kK)));
        if (m == 5) value = 0;
        if (scales.special != 0 && m == 7 && k == 100) value = static_cast<double>(scales.special);
        left.data[at] = value;
        a[static_cast<size_t>(m * kK + k)] = value;
      }
    }
    for (int64_t k = 0; k < kK; ++k) {
      for (int64_t n = 0; n < kN; ++n) {
        const auto at = static_cast<size_t>(turned ? n * kK + k : k * kN + n);
        const double value = n == 9 ? 0 : static_cast<float>(right.data[at] * power(n, kN, scales.columns));
        right.data[at] = value;
        b[static_cast<size_t>(k * kN + n)] = value;
      }
    }
    for (const std::string& device : devicesWithMatrices()) {
      const detail::Device gpu = withUnits(*openedDevice(device), 4);
      ASSERT_TRUE(goesToUnits(product.graph, gpu)) << device;
      const graph::Tensor got = runGraph(product.graph, product.leaves, {.device = device, .opened = &gpu}).at(0);
      for (int64_t m = 0; m < kM; ++m) {
        for (int64_t n = 0; n < kN; ++n) {
          double want = 0, size = 0;
          for (int64_t k = 0; k < kK; ++k) {
            const double term = a[static_cast<size_t>(m * kK + k)] * b[static_cast<size_t>(k * kN + n)];
            want += term;
            size += std::fabs(term);
          }
          const double value = got.data[static_cast<size_t>(m * kN + n)];
          const std::string where = fmt::format("{} {} at {}, {}: {} instead of {}", order, device, m, n, value, want);
          if (std::isnan(want)) {
            ASSERT_TRUE(std::isnan(value)) << where;
          } else if (std::isinf(want)) {
            ASSERT_EQ(value, want) << where;
          } else {
            ASSERT_LE(std::fabs(value - want), size * 6e-7) << where;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, MatrixScales,
                         ::testing::Values(Scales{.name = "alike"}, Scales{.name = "rows", .rows = 60},
                                           Scales{.name = "growing", .rows = 10, .along = 40}, Scales{.name = "growing_slowly", .along = 7},
                                           Scales{.name = "shrinking", .along = -40},
                                           Scales{.name = "rows_and_columns", .rows = 40, .columns = 40},
                                           Scales{.name = "infinite", .special = std::numeric_limits<float>::infinity()},
                                           Scales{.name = "no_number", .special = std::numeric_limits<float>::quiet_NaN()},
                                           Scales{.name = "huge", .special = 1e30f}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
