// SPDX-License-Identifier: Apache-2.0
// Products whose weight has a few bits per element, beside the f64 evaluator and beside a loop over the bits, in shapes where the last
// word and the last group are not full; and what memory a program for a GPU keeps for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "frontend/ops/ops.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/differential/compare.h"
#include "tests/frontend/tracing.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

struct QuantizedCase {
  std::string name;
  int64_t rows, n, k, group;
  int bits;
};
void PrintTo(const QuantizedCase& one, std::ostream* out) { *out << one.name; }

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

/// x [rows, k] times the weight [n, k], whose words are [n, ceil(k / 8)] for four bits and i8 [n, k] for eight, with scales per group.
graph::Graph quantizedProduct(const QuantizedCase& c) {
  const TensorType words = c.bits == 4 ? u32(c.n, parts(c.k, 8)) : i8(c.n, c.k);
  return traced({f32(c.rows, c.k), words, f32(c.n, parts(c.k, c.group))}, [&](const std::vector<Tensor>& in) {
    const Tensor values = c.bits == 4 ? unpack_i4(in[1], c.k) : in[1];
    return matmul(in[0], swap_axes(dequantize(values, in[2], c.group), 0, 1));
  });
}

graph::LeafValues leavesOf(const QuantizedCase& c) {
  std::mt19937 random{7};
  std::uniform_real_distribution<float> real(-1, 1), scale(0.5f, 2);
  const auto filled = [&](const TensorType& type, const auto& draw) {
    graph::Tensor tensor{type, std::vector<double>(static_cast<size_t>(type.shape.elementCount()))};
    for (double& value : tensor.data) value = draw();
    return tensor;
  };
  const auto weight = [&]() -> double {
    if (c.bits == 4) return random();
    return static_cast<double>(random() % 256) - 128;
  };
  return {{"a", filled(f32(c.rows, c.k), [&] { return real(random); })},
          {"b", filled(c.bits == 4 ? u32(c.n, parts(c.k, 8)) : i8(c.n, c.k), weight)},
          {"c", filled(f32(c.n, parts(c.k, c.group)), [&] { return scale(random); })}};
}

/// The same by the words of the formats.
std::vector<double> byHand(const QuantizedCase& c, const graph::LeafValues& leaves) {
  const auto &x = leaves.at("a").data, &words = leaves.at("b").data, &scales = leaves.at("c").data;
  const auto element = [&](int64_t row, int64_t column) -> double {
    if (c.bits == 8) return words[static_cast<size_t>(row * c.k + column)];
    const auto word = static_cast<uint32_t>(words[static_cast<size_t>(row * parts(c.k, 8) + column / 8)]);
    const auto nibble = static_cast<int>(word >> (4 * (column % 8)) & 15u);
    return nibble < 8 ? nibble : nibble - 16;
  };
  std::vector<double> y;
  for (int64_t row = 0; row < c.rows; ++row) {
    for (int64_t column = 0; column < c.n; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < c.k; ++i)
        sum += x[static_cast<size_t>(row * c.k + i)] * element(column, i) *
               scales[static_cast<size_t>(column * parts(c.k, c.group) + i / c.group)];
      y.push_back(sum);
    }
  }
  return y;
}

class QuantizedProducts : public ::testing::TestWithParam<QuantizedCase> {};

TEST_P(QuantizedProducts, agree_with_a_loop_over_the_bits) {
  const QuantizedCase& c = GetParam();
  const graph::Graph graph = quantizedProduct(c);
  const graph::LeafValues leaves = leavesOf(c);
  const std::vector<graph::Tensor> want{{f32(c.rows, c.n), byHand(c, leaves)}};
  expectClose(graph::evaluate(graph, leaves).orThrow(), want, 1e-12, "the evaluator");
  for (const std::string& device : devicesUnderTest()) {
    expectClose(runGraph(graph, leaves, {.device = device}), want, 2e-6, device);
    const detail::Device gpu = asGpu(*openedDevice(device));
    expectClose(runGraph(graph, leaves, {.device = device, .opened = &gpu}), want, 2e-6, device + " as a GPU");
  }
}

TEST_P(QuantizedProducts, read_the_bits_and_keep_no_wide_weight) {
  const QuantizedCase& c = GetParam();
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 132;
  options.templates = detail::templateSource();
  const auto program = std::get<program::Program>(passes::compileTo(passes::Stage::Emitted, quantizedProduct(c), options).orThrow());
  // Beside the leaves and the result there is at most what parts of sums take.
  const int64_t wide = 4 * c.n * c.k;
  for (const program::Buffer& buffer : program.buffers) EXPECT_LT(buffer.size, static_cast<uint64_t>(wide)) << buffer.name;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, QuantizedProducts,
    ::testing::Values(QuantizedCase{"four_bits", 1, 1024, 1024, 32, 4}, QuantizedCase{"four_bits_long_groups", 1, 1031, 1024, 128, 4},
                      QuantizedCase{"four_bits_odd", 1, 1543, 777, 32, 4}, QuantizedCase{"four_bits_some_rows", 5, 263, 777, 128, 4},
                      QuantizedCase{"eight_bits_by_row", 1, 1024, 1024, 1024, 8}, QuantizedCase{"eight_bits_odd", 1, 1543, 777, 777, 8},
                      QuantizedCase{"eight_bits_groups", 3, 257, 515, 64, 8}),
    [](const auto& info) { return info.param.name; });

TEST(Quantized, refuse_what_does_not_fit) {
  const auto code = [](const std::vector<TensorType>& types, const std::function<Tensor(const std::vector<Tensor>&)>& function) {
    return caught([&] { (void)traced(types, function); }).code;
  };
  using In = std::vector<Tensor>;
  EXPECT_EQ(code({i32(2, 4)}, [](const In& in) { return unpack_i4(in[0], 32); }), "unpack_i4.C1");
  EXPECT_EQ(code({u32(2, 4)}, [](const In& in) { return unpack_i4(in[0], 33); }), "unpack_i4.C2");
  EXPECT_EQ(code({u32(2, 4)}, [](const In& in) { return unpack_i4(in[0], 24); }), "unpack_i4.C2");
  EXPECT_EQ(code({f32(2, 4), f32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C1");
  EXPECT_EQ(code({i8(2, 4), i32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C1");
  EXPECT_EQ(code({i8(2, 4), f32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 0); }), "dequantize.C2");
  EXPECT_EQ(code({i8(2, 5), f32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C2");
  EXPECT_EQ(code({i8(2, 5), f32(1, 2)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C2");
}

}  // namespace
}  // namespace lockstep
