// SPDX-License-Identifier: Apache-2.0
// Products large enough for the template that reads quads, beside the f64 evaluator: each order of the operands, odd extents, packed
// elements, what is fused in front and behind, with as many units as make each tile the choice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/differential/product_case.h"

namespace lockstep {
namespace {

using graph::DType;

/// As many units as make each tile the choice at the sizes below: all of them at night, else two for one case and two for the next.
std::vector<uint32_t> unitsOf(const ProductCase& one) {
  if (std::getenv("LOCKSTEP_NIGHTLY") != nullptr) return {1, 6, 14, 80};
  return one.is_second ? std::vector<uint32_t>{1, 14} : std::vector<uint32_t>{6, 80};
}

class Products : public ::testing::TestWithParam<ProductCase> {};

TEST_P(Products, agree_with_the_evaluator) {
  const ProductCase& c = GetParam();
  const Product product = makeProduct(c);
  const std::vector<graph::Tensor> want = runGraph(product.graph, product.leaves);
  for (const std::string& device : devicesUnderTest()) {
    for (const uint32_t units : unitsOf(c)) {
      detail::Device gpu = asGpu(*openedDevice(device));
      gpu.chosen.info.profile.parallel_units = units;
      const std::vector<graph::Tensor> got = runGraph(product.graph, product.leaves, {.device = device, .opened = &gpu});
      expectClose(got, want, c.stored == DType::F32 ? 2e-6 : 4e-3, fmt::format("on {} with {} units", device, units));
    }
  }
}

std::vector<ProductCase> productCases() {
  std::vector<ProductCase> cases{{.name = "whole_tiles", .m = 128, .n = 256, .k = 128},
                                 {.name = "left_turned", .m = 132, .n = 136, .k = 260, .order = "tn"},
                                 {.name = "right_turned", .m = 132, .n = 136, .k = 260, .order = "nt"},
                                 {.name = "both_turned", .m = 132, .n = 136, .k = 260, .order = "tt"},
                                 {.name = "odd", .m = 131, .n = 157, .k = 211},
                                 {.name = "odd_left_turned", .m = 131, .n = 157, .k = 211, .order = "tn"},
                                 {.name = "odd_right_turned", .m = 131, .n = 157, .k = 211, .order = "nt"},
                                 {.name = "quads_beside_odd", .m = 130, .n = 164, .k = 203},
                                 {.name = "few_rows", .m = 16, .n = 2048, .k = 144},
                                 {.name = "few_columns", .m = 2053, .n = 16, .k = 148},
                                 {.name = "long_sums", .m = 64, .n = 64, .k = 1031},
                                 {.name = "batched", .batch = 6, .m = 68, .n = 100, .k = 105, .order = "nt"},
                                 {.name = "batch_of_one_right", .batch = 5, .m = 60, .n = 128, .k = 112, .one_right = true},
                                 {.name = "fused", .m = 128, .n = 136, .k = 260, .fused = true},
                                 {.name = "fused_odd", .m = 129, .n = 133, .k = 261, .order = "tt", .fused = true},
                                 {.name = "packed", .m = 128, .n = 136, .k = 260, .stored = DType::BF16},
                                 {.name = "packed_turned", .m = 136, .n = 128, .k = 260, .order = "tt", .stored = DType::BF16},
                                 {.name = "packed_pairs", .m = 128, .n = 134, .k = 262, .fused = true, .stored = DType::BF16},
                                 {.name = "packed_odd", .m = 131, .n = 135, .k = 261, .stored = DType::F16},
                                 {.name = "vector_right", .m = 1013, .k = 1201},
                                 {.name = "vector_right_turned", .m = 1013, .k = 1201, .order = "tn"},
                                 {.name = "vector_left", .n = 1013, .k = 1201},
                                 {.name = "vector_left_turned", .n = 1013, .k = 1201, .order = "nt"},
                                 {.name = "vector_long", .n = 17, .k = 70001},
                                 {.name = "vector_fused", .m = 1531, .k = 1024, .fused = true},
                                 {.name = "vector_packed", .m = 1201, .k = 1030, .order = "tn", .stored = DType::BF16}};
  for (size_t i = 1; i < cases.size(); i += 2) cases[i].is_second = true;
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Products, ::testing::ValuesIn(productCases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
