// SPDX-License-Identifier: Apache-2.0
// Tensors above the 128 MiB that many devices bind at once, in each kind of plan.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "frontend/ops/ops.h"
#include "frontend/train/graph_runner.h"
#include "ir/support/result.h"
#include "tests/differential/compare.h"
#include "tests/large/large_case.h"

namespace lockstep::large {
namespace {

TEST(LargeBindings, map_in_slices) {
  expectSameValue([](Leaves& x) { return x.values({40'000'003}) + 1; });
}

TEST(LargeBindings, product_with_a_large_operand) {
  expectSameValue([](Leaves& x) { return matmul(x.values({9001, 4001}), x.values({4001, 3})); });
}

TEST(LargeBindings, product_with_a_large_result) {
  expectSameValue([](Leaves& x) { return sum(matmul(x.values({6007, 3}), x.values({3, 6011})), 1); });
}

TEST(LargeBindings, columns_of_a_large_tensor) {
  expectSameValue([](Leaves& x) { return sum(x.values({5'000'011, 7}), 0); });
}

TEST(LargeBindings, lookup_in_a_large_table) {
  expectSameValue([](Leaves& x) { return embedding(x.values({5'000'011, 7}), x.numbers({1009}, 5'000'011)); });
}

TEST(LargeBindings, weight_of_few_bits) {
  constexpr int64_t kRows = 40'009, kInner = 8191, kWords = (kInner + 7) / 8;
  detail::Trace trace;
  Leaves leaves(trace);
  const Tensor x = leaves.values({1, kInner}), words = leaves.numbers({kRows, kWords}, INT32_MAX), scales = leaves.values({kRows, 1});
  trace.output(graph::OutputKind::Result, "y", quantized_matmul(x, cast(words, u32), scales, {.bits = 4, .group = kInner}));
  const graph::Graph graph = trace.take();
  const auto &of_x = leaves.all().at("x0").data, &of_words = leaves.all().at("x1").data, &of_scales = leaves.all().at("x2").data;
  for (const std::string& device : devicesUnderTest()) {
    for (const bool packed_dot : {false, true}) {
      detail::Device opened = *openedDevice(device);
      if (packed_dot) opened = asGpu(std::move(opened));
      opened.chosen.info.profile.packed_dot = packed_dot;
      const std::vector<double> got = runGraph(graph, leaves.all(), {.device = device, .opened = &opened}).front().data;
      // Of rows on both sides of the 128 MiB.
      for (const size_t row : {0, 1, 20'011, 32'767, 32'768, 32'769, 40'007, 40'008}) {
        double want = 0, size = 0;
        for (size_t i = 0; i < kInner; ++i) {
          const auto word = static_cast<uint32_t>(of_words[row * kWords + i / 8]);
          const int nibble = static_cast<int>(word >> (4 * (i % 8)) & 15u);
          want += of_x[i] * (nibble < 8 ? nibble : nibble - 16);
          size += of_x[i] * of_x[i];
        }
        EXPECT_NEAR(got[row], want * of_scales[row], 1e-5 * 8 * std::sqrt(size) * std::abs(of_scales[row]))
            << device << ", row " << row << (packed_dot ? ", dots" : "");
      }
    }
  }
}

TEST(LargeBindings, nightly_other_plans) {
  if (!nightly()) GTEST_SKIP() << "LOCKSTEP_NIGHTLY is not set";
  expectSameGradients([](Leaves& x) { return embedding(x.values({5'000'011, 7}), x.numbers({1009}, 5'000'011)); });
  expectSameValue([](Leaves& x) { return cumsum(x.values({40'000'003}), 0); });
  // Of positive numbers: those of both signs have a sum near 0, whose relative error says nothing.
  expectSameGradients([](Leaves& x) { return sum(concat({x.values({17'000'027}) + 0.5, x.values({19'000'013}) + 0.5}, 0)); });
  expectSameValue([](Leaves& x) { return softmax(x.values({5, 8'000'009})); });
}

TEST(LargeBindings, more_elements_than_an_index_counts_are_refused) {
  detail::Trace trace;
  const Tensor x = trace.addInput("x", f32(1'200'000'000));
  try {
    (void)concat({x, x}, 0);
    FAIL() << "2.4 billion elements were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "concat.C5");
  }
}

}  // namespace
}  // namespace lockstep::large
