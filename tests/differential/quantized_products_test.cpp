// SPDX-License-Identifier: Apache-2.0
// Products whose weight has a few bits per element, beside the f64 evaluator and beside a loop over the bits, in shapes where the last
// word and the last group are not full; and what memory a program for a GPU keeps for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "frontend/ops/ops.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/kernel/queries.h"
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

/// The same by the op, with eight bits in words as well.
graph::Graph quantizedOp(const QuantizedCase& c) {
  return traced({f32(c.rows, c.k), u32(c.n, parts(c.k, 32 / c.bits)), f32(c.n, parts(c.k, c.group))},
                [&](const std::vector<Tensor>& in) { return quantized_matmul(in[0], in[1], in[2], {.bits = c.bits, .group = c.group}); });
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

/// The same by the words of the formats, with elements times their scales rounded to `low` if that is a type of 16 bits.
std::vector<double> byHand(const QuantizedCase& c, const graph::LeafValues& leaves, DType low = DType::F32) {
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
      for (int64_t i = 0; i < c.k; ++i) {
        const double scaled = element(column, i) * scales[static_cast<size_t>(column * parts(c.k, c.group) + i / c.group)];
        sum += x[static_cast<size_t>(row * c.k + i)] * (low == DType::F32 ? scaled : graph::roundedTo(low, scaled));
      }
      y.push_back(sum);
    }
  }
  return y;
}

/// The leaves of quantizedOp with the same elements.
graph::LeafValues inWords(const QuantizedCase& c, graph::LeafValues leaves) {
  if (c.bits == 4) return leaves;
  const std::vector<double> bytes = leaves.at("b").data;
  const int64_t words = parts(c.k, 4);
  graph::Tensor& packed = leaves.at("b");
  packed = {u32(c.n, words), std::vector<double>(static_cast<size_t>(c.n * words))};
  for (int64_t row = 0; row < c.n; ++row) {
    for (int64_t i = 0; i < 4 * words; ++i) {
      // What lies after the last element counts for nothing.
      const int64_t byte = i < c.k ? static_cast<int64_t>(bytes[static_cast<size_t>(row * c.k + i)]) : 77;
      packed.data[static_cast<size_t>(row * words + i / 4)] += static_cast<double>(static_cast<uint64_t>(byte & 255) << (8 * (i % 4)));
    }
  }
  return leaves;
}

const std::vector<std::string> kByDots{"quantized_matmul"};
constexpr double kNormEps = 1e-5;

/// A GPU with integer dot products, whether the device has them or not.
detail::Device withDots(const std::string& device, uint32_t units = 0) {
  detail::Device gpu = asGpu(*openedDevice(device));
  gpu.chosen.info.profile.packed_dot = true;
  if (units != 0) gpu.chosen.info.profile.parallel_units = units;
  return gpu;
}

/// Of every device one with many units and one with few, which have several rows per subgroup one after the other.
std::vector<std::pair<std::string, detail::Device>> gpusWithDots() {
  std::vector<std::pair<std::string, detail::Device>> gpus;
  for (const std::string& device : devicesUnderTest()) {
    for (const uint32_t units : {1u, 132u}) gpus.emplace_back(device, withDots(device, units));
  }
  return gpus;
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

TEST_P(QuantizedProducts, are_the_same_by_integer_dot_products) {
  const QuantizedCase& c = GetParam();
  const graph::Graph graph = quantizedOp(c);
  const graph::LeafValues leaves = inWords(c, leavesOf(c));
  const std::vector<graph::Tensor> want{{f32(c.rows, c.n), byHand(c, leavesOf(c))}};
  expectClose(graph::evaluate(graph, leaves).orThrow(), want, 1e-12, "the evaluator");
  for (const std::string& device : devicesUnderTest()) {
    expectClose(runGraph(graph, leaves, {.device = device}), want, 2e-6, device);
    for (const uint32_t units : {1u, 132u}) {  // few units: more rows per subgroup
      const detail::Device gpu = withDots(device, units);
      const std::string name = fmt::format("{} with {} units", device, units);
      expectClose(runGraph(graph, leaves, {.device = device, .opened = &gpu, .prefer = kByDots}), want, 1e-6, name + ", by dots");
      // A small row is a sum.
      expectClose(runGraph(graph, leaves, {.device = device, .opened = &gpu}), want, 2e-6, name);
    }
  }
}

TEST_P(QuantizedProducts, round_the_weight_in_mixed_precision) {
  const QuantizedCase& c = GetParam();
  // Scales of few bits: their products with elements are f32, so that all round the same number.
  graph::LeafValues plain = leavesOf(c);
  for (double& scale : plain.at("c").data) scale = std::round(1024 * scale) / 1024;
  for (const DType low : {DType::BF16, DType::F16}) {
    graph::Graph graph = quantizedOp(c);
    for (graph::Node& node : graph.nodes) {
      if (*node.op->name == "quantized_matmul") node.attributes.set(std::string(graph::kLowAttribute), low);
    }
    const graph::LeafValues leaves = inWords(c, plain);
    // One scale per row is a factor of the sum.
    const std::vector<graph::Tensor> want{{f32(c.rows, c.n), byHand(c, plain, c.group >= c.k ? DType::F32 : low)}};
    expectClose(graph::evaluate(graph, leaves).orThrow(), want, 1e-12, "the evaluator");
    for (const std::string& device : devicesUnderTest()) {
      const detail::Device gpu = withDots(device);
      expectClose(runGraph(graph, leaves, {.device = device}), want, 2e-6, device);
      expectClose(runGraph(graph, leaves, {.device = device, .opened = &gpu, .prefer = kByDots}), want, 2e-6, device + " as a GPU");
    }
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

void expectNumber(double given, double wanted, double tolerance, const std::string& where) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(given)) << where;
  } else if (std::isinf(wanted)) {
    EXPECT_EQ(given, wanted) << where;
  } else {
    EXPECT_NEAR(given, wanted, tolerance) << where;
  }
}

passes::CompileOptions compiledByDots() {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.packed_dot = true;
  options.preferred_templates = kByDots;
  options.templates = detail::templateSource();
  return options;
}

/// What a layer adds to its product, and what the next norm multiplies.
graph::Graph withResidual(const QuantizedCase& c) {
  graph::Builder b;
  const auto input = [&](const char* name, const TensorType& type) {
    return b.make("input", {}, {{"name", std::string(name)}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
  };
  const graph::ValueId x = input("a", f32(c.rows, c.k)), words = input("b", u32(c.n, parts(c.k, 32 / c.bits))),
                       scales = input("c", f32(c.n, parts(c.k, c.group)));
  const graph::ValueId y = b.make("quantized_matmul", {x, words, scales}, {{"bits", int64_t{c.bits}}, {"group", c.group}});
  const graph::ValueId sum = b.add(input("residual", f32(c.rows, c.n)), y);
  b.output(graph::OutputKind::Result, "sum", sum);
  b.output(graph::OutputKind::Result, "scaled", b.mul(sum, b.broadcastTo(input("gain", f32(c.n)), graph::Shape{c.rows, c.n})));
  return b.take();
}

TEST(Quantized, dots_take_in_what_follows) {
  passes::CompileOptions options = compiledByDots();
  EXPECT_EQ(passes::compile(withResidual({"", 1, 1031, 1024, 32, 4}), options).orThrow().plan.dispatches, 1u);
  for (const QuantizedCase& c :
       {QuantizedCase{"", 1, 1031, 1024, 32, 4}, QuantizedCase{"", 3, 67, 1000, 128, 4}, QuantizedCase{"", 1, 515, 777, 777, 8}}) {
    graph::LeafValues plain = leavesOf(c);
    // The last row is made again without digits.
    std::vector<double>& x = plain.at("a").data;
    x[x.size() - 5] = std::numeric_limits<double>::infinity();
    std::vector<double> want = byHand(c, plain);
    graph::LeafValues leaves = inWords(c, plain);
    graph::Tensor residual{f32(c.rows, c.n), {}}, gain{f32(c.n), {}};
    for (size_t i = 0; i < want.size(); ++i) residual.data.push_back(static_cast<double>(i % 37) - 18);
    for (int64_t i = 0; i < c.n; ++i) gain.data.push_back(static_cast<double>(i % 7) + 1);
    for (size_t i = 0; i < want.size(); ++i) want[i] += residual.data[i];
    leaves.emplace("residual", residual), leaves.emplace("gain", gain);
    for (const auto& [device, gpu] : gpusWithDots()) {
      const std::vector<graph::Tensor> got = runGraph(withResidual(c), leaves, {.device = device, .opened = &gpu, .prefer = kByDots});
      for (size_t i = 0; i < 2 * want.size(); ++i) {
        const size_t place = i % want.size();
        const double wanted = i < want.size() ? want[place] : want[place] * gain.data[place % static_cast<size_t>(c.n)];
        const double given = got[i < want.size() ? 0 : 1].data[place];
        expectNumber(given, wanted, 1e-3, fmt::format("{} at {}", device, i));
      }
    }
  }
}

/// A row times another, as a gate is, is multiplied where its digits are made.
TEST(Quantized, dots_take_in_what_comes_before) {
  const auto gated = [](const QuantizedCase& c) {
    graph::Builder b;
    const auto input = [&](const char* name, const TensorType& type) {
      return b.make("input", {}, {{"name", std::string(name)}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
    };
    const graph::ValueId x = b.mul(input("a", f32(c.rows, c.k)), input("gate", f32(c.rows, c.k)));
    const std::vector<graph::ValueId> operands{x, input("b", u32(c.n, parts(c.k, 32 / c.bits))), input("c", f32(c.n, parts(c.k, c.group)))};
    b.output(graph::OutputKind::Result, "y",
             b.makeAll("quantized_matmul", operands, {{"bits", int64_t{c.bits}}, {"group", c.group}}).front());
    return b.take();
  };
  passes::CompileOptions options = compiledByDots();
  EXPECT_EQ(passes::compile(gated({"", 1, 1031, 1024, 32, 4}), options).orThrow().plan.dispatches, 1u);
  EXPECT_EQ(passes::compile(gated({"", 1, 515, 14336, 14336, 8}), options).orThrow().plan.dispatches, 1u);
  for (const QuantizedCase& c : {QuantizedCase{"", 1, 1031, 1024, 32, 4}, QuantizedCase{"", 3, 67, 1000, 128, 4},
                                 QuantizedCase{"", 1, 515, 777, 777, 8}, QuantizedCase{"", 2, 67, 4101, 4101, 8}}) {
    graph::LeafValues plain = leavesOf(c);
    graph::Tensor gate{f32(c.rows, c.k), {}};
    for (int64_t i = 0; i < c.rows * c.k; ++i) gate.data.push_back(static_cast<double>(i % 11) / 4 - 1);
    gate.data[gate.data.size() - 5] = std::numeric_limits<double>::infinity();
    graph::LeafValues leaves = inWords(c, plain);
    leaves.emplace("gate", gate);
    for (size_t i = 0; i < gate.data.size(); ++i) plain.at("a").data[i] *= gate.data[i];
    const std::vector<double> want = byHand(c, plain);
    double largest = 0;
    for (const double number : want) largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : largest;
    for (const auto& [device, gpu] : gpusWithDots()) {
      const std::vector<double> got = runGraph(gated(c), leaves, {.device = device, .opened = &gpu, .prefer = kByDots}).front().data;
      for (size_t i = 0; i < want.size(); ++i) expectNumber(got[i], want[i], 1e-6 * largest, fmt::format("{} at {}", device, i));
    }
  }
}

/// rms_norm(x, g) times a quantised weight.
graph::Graph normedProduct(const QuantizedCase& c) {
  return traced({f32(c.rows, c.k), u32(c.n, parts(c.k, 32 / c.bits)), f32(c.n, parts(c.k, c.group)), f32(c.k)},
                [&](const std::vector<Tensor>& in) {
                  return quantized_matmul(rms_norm(in[0], in[3], kNormEps), in[1], in[2], {.bits = c.bits, .group = c.group});
                });
}

/// The rows that a norm leaves, in f64.
std::vector<double> normalised(std::vector<double> x, const std::vector<double>& gain) {
  const size_t columns = gain.size();
  for (size_t row = 0; row < x.size(); row += columns) {
    double square = 0;
    for (size_t i = 0; i < columns; ++i) square += x[row + i] * x[row + i];
    for (size_t i = 0; i < columns; ++i) x[row + i] *= gain[i] / std::sqrt(square / static_cast<double>(columns) + kNormEps);
  }
  return x;
}

/// Of rows around the longest one whose digits all fit: beside them there are factors and sums of squares.
TEST(Quantized, dots_stay_within_workgroup_memory) {
  passes::CompileOptions options = compiledByDots();
  const auto limit = static_cast<int64_t>(options.profile.max_workgroup_bytes);
  for (const int bits : {4, 8}) {
    const int64_t piece = 128 / bits, most = limit / (3 * piece + 4);
    for (int64_t pieces = most - 4; pieces <= most + 1; ++pieces) {
      const QuantizedCase c{"", 1, 67, pieces * piece, pieces * piece, bits};
      const passes::Compiled compiled = passes::compile(normedProduct(c), options).orThrow();
      for (const program::Kernel& kernel : compiled.program.kernels) {
        const uint64_t bytes = kernel::workgroupBytes(std::get<kernel::Module>(kernel.code));
        EXPECT_LE(bytes, static_cast<uint64_t>(limit)) << bits << " bits, " << pieces << " pieces";
        if (pieces < most - 3) {
          EXPECT_GT(bytes, static_cast<uint64_t>(limit) * 9 / 10) << "all of them are kept";
        }
      }
    }
  }
}

/// Also of rows whose digits do not all fit into workgroup memory, of rows that are small beside eps, and of one that is not finite.
TEST(Quantized, dots_normalise_rows) {
  passes::CompileOptions options = compiledByDots();
  EXPECT_EQ(passes::compile(normedProduct({"", 1, 1031, 1024, 32, 4}), options).orThrow().plan.dispatches, 1u);
  options.disabled = {"takeNorms"};
  EXPECT_EQ(passes::compile(normedProduct({"", 1, 1031, 1024, 32, 4}), options).orThrow().plan.dispatches, 2u);
  for (const QuantizedCase& c :
       {QuantizedCase{"", 1, 1031, 1024, 32, 4}, QuantizedCase{"", 4, 67, 1000, 128, 4}, QuantizedCase{"", 3, 515, 777, 777, 8},
        QuantizedCase{"", 2, 19, 14337, 14337, 8}, QuantizedCase{"", 2, 19, 14336, 64, 4}}) {
    graph::LeafValues plain = leavesOf(c);
    std::vector<double>& x = plain.at("a").data;
    for (double& element : x) element *= 100;
    if (c.rows > 1) {
      for (int64_t i = 0; i < c.k; ++i) x[static_cast<size_t>(i)] *= 1e-6;
      x[x.size() - 5] = std::numeric_limits<double>::infinity();
    }
    graph::Tensor gain{f32(c.k), {}};
    for (int64_t i = 0; i < c.k; ++i) gain.data.push_back(static_cast<double>(i % 13) / 4 - 1);
    graph::LeafValues leaves = inWords(c, plain);
    leaves.emplace("d", gain);
    plain.at("a").data = normalised(x, gain.data);
    const std::vector<double> want = byHand(c, plain);
    for (const auto& [device, gpu] : gpusWithDots()) {
      const std::vector<double> got =
          runGraph(normedProduct(c), leaves, {.device = device, .opened = &gpu, .prefer = kByDots}).front().data;
      const auto columns = static_cast<size_t>(c.n);
      for (size_t row = 0; row < want.size(); row += columns) {
        double largest = 0;
        for (size_t i = row; i < row + columns; ++i) largest = std::isfinite(want[i]) ? std::max(largest, std::abs(want[i])) : largest;
        for (size_t i = row; i < row + columns; ++i)
          expectNumber(got[i], want[i], 2e-6 * largest, fmt::format("{}, {} elements, at {}", device, c.k, i));
      }
    }
  }
}

/// Rows of x whose pieces differ by powers of two up to 2^±60, and one with what has no digits.
void expectAnyRange(const QuantizedCase& c) {
  const graph::Graph graph = quantizedOp(c);
  graph::LeafValues plain = leavesOf(c);
  std::vector<double>& x = plain.at("a").data;
  for (int64_t i = 0; i < c.k; ++i) {
    x[static_cast<size_t>(i)] *= std::ldexp(1.0, static_cast<int>(i / 32 % 5) * 30 - 60);
    x[static_cast<size_t>(c.k + i)] *= 0x1p-95;  // below 2^-100 there are fewer bits
    x[static_cast<size_t>(2 * c.k + i)] *= 0x1p110;
  }
  x[static_cast<size_t>(3 * c.k + 500)] = std::numeric_limits<double>::infinity();
  const graph::LeafValues leaves = inWords(c, plain);
  const std::vector<double> want = byHand(c, plain);
  for (const auto& [device, gpu] : gpusWithDots()) {
    const std::vector<double> got = runGraph(graph, leaves, {.device = device, .opened = &gpu, .prefer = kByDots}).front().data;
    for (size_t i = 0; i < want.size(); ++i) {
      // Against what the terms of the sum come to, not their sum, which may cancel.
      double size = 0;
      const size_t row = i / static_cast<size_t>(c.n);
      for (int64_t l = 0; l < c.k; ++l) size = std::max(size, std::abs(x[row * static_cast<size_t>(c.k) + static_cast<size_t>(l)]));
      expectNumber(got[i], want[i], 1e-5 * (1 << c.bits) * size, fmt::format("{} at {}", device, i));
    }
  }
}

TEST(Quantized, dots_take_any_range) {
  expectAnyRange({"by_words", 4, 67, 1000, 128, 4});
  expectAnyRange({"by_vectors", 4, 67, 1024, 128, 4});
  expectAnyRange({"eight_bits", 4, 67, 1024, 64, 8});
}

/// Scales beyond 2^100 beside elements as small, the other way round, and one that is infinite.
TEST(Quantized, dots_take_scales_of_any_size) {
  const QuantizedCase c{"", 4, 67, 1000, 128, 4};
  const graph::Graph graph = quantizedOp(c);
  graph::LeafValues plain = leavesOf(c);
  std::vector<double>&x = plain.at("a").data, &scales = plain.at("c").data;
  for (int64_t i = 0; i < c.k; ++i) {
    x[static_cast<size_t>(i)] *= 0x1p-90;
    x[static_cast<size_t>(c.k + i)] *= 0x1p100;
  }
  const auto groups = static_cast<int64_t>(scales.size()) / c.n;
  for (int64_t row = 0; row < c.n; ++row) {
    const double factor = row % 3 == 0 ? 0x1p100 : row % 3 == 1 ? 0x1p-100 : 1.0;
    for (int64_t group = 0; group < groups; ++group) scales[static_cast<size_t>(row * groups + group)] *= factor;
  }
  scales[static_cast<size_t>(11 * groups + 2)] = std::numeric_limits<double>::infinity();
  const graph::LeafValues leaves = inWords(c, plain);
  const std::vector<double> want = byHand(c, plain);
  for (const auto& [device, gpu] : gpusWithDots()) {
    const std::vector<double> got = runGraph(graph, leaves, {.device = device, .opened = &gpu, .prefer = kByDots}).front().data;
    for (size_t i = 0; i < want.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / c.n, column = static_cast<int64_t>(i) % c.n;
      const double size = (row == 0 ? 0x1p-90 : row == 1 ? 0x1p100 : 1.0) * (column % 3 == 0 ? 0x1p100 : column % 3 == 1 ? 0x1p-100 : 1.0);
      if (column == 11 || size > 0x1p100) {
        // What is not finite, as f32 has it: an infinity by both signs is a NaN.
        EXPECT_FALSE(std::isfinite(got[i])) << device << " at " << i;
      } else {
        EXPECT_NEAR(got[i], want[i], 1e-3 * size + 0x1p-126) << device << " at " << i;
      }
    }
  }
}

TEST(Quantized, one_dispatch_with_dots) {
  const auto dispatches = [](bool packed_dot, int64_t rows, int64_t size = 4096) {
    passes::CompileOptions options;
    options.profile = gpuProfile();
    options.profile.parallel_units = 132;
    options.profile.packed_dot = packed_dot;
    options.templates = detail::templateSource();
    const auto program = std::get<program::Program>(
        passes::compileTo(passes::Stage::Scheduled, quantizedOp({"", rows, size, size, 32, 4}), options).orThrow());
    size_t by_digits = 0;
    for (const program::Kernel& kernel : program.kernels)
      by_digits += std::holds_alternative<program::DigitsPlan>(std::get<program::SymbolicKernel>(kernel.code).plan) ? 1 : 0;
    return std::pair(program.commands.size(), by_digits);
  };
  EXPECT_EQ(dispatches(true, 1), (std::pair<size_t, size_t>(1, 1)));
  EXPECT_EQ(dispatches(true, 4), (std::pair<size_t, size_t>(1, 1)));
  EXPECT_EQ(dispatches(true, 5).second, 0u);
  EXPECT_EQ(dispatches(false, 1).second, 0u);
  // A small row is a sum, which takes in what is around it.
  EXPECT_EQ(dispatches(true, 1, 2048), (std::pair<size_t, size_t>(1, 0)));
  EXPECT_EQ(dispatches(true, 2, 2048), (std::pair<size_t, size_t>(1, 1)));
}

TEST(Quantized, scales_of_16_bits_are_read_where_they_are) {
  const auto graph = [](int64_t rows) {
    return traced({f32(rows, 4096), u32(4096, 512), bf16(4096, 128)},
                  [&](const std::vector<Tensor>& in) { return quantized_matmul(in[0], in[1], in[2], {.bits = 4, .group = 32}); });
  };
  for (const bool packed_dot : {true, false}) {
    for (const int64_t rows : {1, 64}) {
      passes::CompileOptions options;
      options.profile = gpuProfile();
      options.profile.parallel_units = 132;
      options.profile.packed_dot = packed_dot;
      options.templates = detail::templateSource();
      const auto program = std::get<program::Program>(passes::compileTo(passes::Stage::Emitted, graph(rows), options).orThrow());
      // Nothing keeps the scales in f32.
      for (const program::Buffer& buffer : program.buffers)
        EXPECT_NE(buffer.size, uint64_t{4 * 4096 * 128}) << buffer.name << rows << packed_dot;
    }
  }
}

TEST(Quantized, unpacked_bytes_are_signed) {
  const graph::Graph graph = traced({u32(2)}, [](const std::vector<Tensor>& in) { return unpack_i8(in[0], 6); });
  const graph::LeafValues leaves{{"a", {u32(2), {0x7f80ff01, 0x00000302}}}};
  const std::vector<graph::Tensor> want{{i32(6), {1, -1, -128, 127, 2, 3}}};
  expectClose(graph::evaluate(graph, leaves).orThrow(), want, 0, "the evaluator");
  for (const std::string& device : devicesUnderTest()) expectClose(runGraph(graph, leaves, {.device = device}), want, 0, device);
}

TEST(Quantized, groups_may_be_longer_than_rows) {
  const graph::Graph graph = traced({f32(1, 20), u32(3, 3), f32(3, 1)}, [](const std::vector<Tensor>& in) {
    return quantized_matmul(in[0], in[1], in[2], {.bits = 4, .group = std::numeric_limits<int64_t>::max()});
  });
  const QuantizedCase c{"", 1, 3, 20, 20, 4};
  const std::vector<graph::Tensor> want{{f32(1, 3), byHand(c, leavesOf(c))}};
  for (const std::string& device : devicesUnderTest()) {
    expectClose(runGraph(graph, leavesOf(c), {.device = device}), want, 2e-6, device);
    const detail::Device gpu = withDots(device);
    expectClose(runGraph(graph, leavesOf(c), {.device = device, .opened = &gpu, .prefer = kByDots}), want, 2e-6, device + " with dots");
  }
}

TEST(Quantized, refuse_what_does_not_fit) {
  const auto code = [](const std::vector<TensorType>& types, const std::function<Tensor(const std::vector<Tensor>&)>& function) {
    return caught([&] { (void)traced(types, function); }).code;
  };
  using In = std::vector<Tensor>;
  EXPECT_EQ(code({i32(2, 4)}, [](const In& in) { return unpack_i4(in[0], 32); }), "unpack_i4.C1");
  EXPECT_EQ(code({u32(2, 4)}, [](const In& in) { return unpack_i4(in[0], 33); }), "unpack_i4.C2");
  EXPECT_EQ(code({u32(2, 4)}, [](const In& in) { return unpack_i4(in[0], 24); }), "unpack_i4.C2");
  EXPECT_EQ(code({f32(2, 4), f32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C1");
  EXPECT_EQ(code({i32(2, 4)}, [](const In& in) { return unpack_i8(in[0], 16); }), "unpack_i8.C1");
  EXPECT_EQ(code({u32(2, 4)}, [](const In& in) { return unpack_i8(in[0], 17); }), "unpack_i8.C2");
  EXPECT_EQ(code({i8(2, 4), i32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C1");
  EXPECT_EQ(code({i8(2, 4), f32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 0); }), "dequantize.C2");
  EXPECT_EQ(code({i8(2, 5), f32(2, 1)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C2");
  EXPECT_EQ(code({i8(2, 5), f32(1, 2)}, [](const In& in) { return dequantize(in[0], in[1], 4); }), "dequantize.C2");
}

}  // namespace
}  // namespace lockstep
