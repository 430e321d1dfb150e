// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/packed_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/ops/ops.h"
#include "frontend/train/graph_runner.h"
#include "passes/graph/grad.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {

using graph::DType;
using graph::OutputKind;

namespace {

/// The results with floats rounded to `dtype`.
graph::Graph rounded(const graph::Graph& graph, DType dtype) {
  graph::Builder b(graph);
  std::vector<graph::Output> outputs = std::move(b.mutableGraph().outputs);
  b.mutableGraph().outputs.clear();
  for (const graph::Output& output : outputs) {
    const bool rounds = b.typeOf(output.value).dtype == DType::F32;
    b.output(OutputKind::Result, output.name, rounds ? b.make("cast", {output.value}, {{"dtype", dtype}}) : output.value);
  }
  return b.take();
}

/// What one element may be.
struct Interval {
  double least = 0, most = 0;
};

Interval allowed(DType dtype, double exact, double largest, double tolerance, const RoundingBounds& wide, size_t i) {
  const bool is_known = i < wide.values.size() && !std::isnan(wide.values[i]);
  const double centre = is_known ? wide.values[i] : exact;
  if (!std::isfinite(centre)) return {exact, exact};
  const double bound = (is_known ? static_cast<double>(wide.bounds[i]) : 0) + tolerance * (std::abs(centre) + largest);
  return {graph::roundedTo(dtype, centre - bound), graph::roundedTo(dtype, centre + bound)};
}

void expectWithin(const graph::Tensor& got, const graph::Tensor& want, const RoundingBounds& wide, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.type, want.type) << what;
  if (!graph::isFloat(want.type.dtype)) {
    EXPECT_EQ(got.data, want.data) << what;
    return;
  }
  double largest = 0;
  for (const double value : want.data) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  for (size_t i = 0; i < want.data.size(); ++i) {
    const auto [least, most] = allowed(want.type.dtype, want.data[i], largest, tolerance, wide, i);
    const bool both_nan = std::isnan(want.data[i]) && std::isnan(got.data[i]);
    ASSERT_TRUE(both_nan || (got.data[i] >= least && got.data[i] <= most))
        << fmt::format("{}, element {} is {}, wanted {} to {}", what, i, got.data[i], least, most);
  }
}

}  // namespace

void expectRounded(const PackedCase& made, DType dtype) {
  const graph::Graph stored = rounded(made.graph, dtype);
  const std::vector<graph::Tensor> want = runGraph(stored, made.leaves);
  for (const std::string& device : devicesUnderTest()) {
    const GraphRunOptions options{.device = device, .opened = openedDevice(device)};
    const std::vector<graph::Tensor> got = runGraph(stored, made.leaves, options);
    const std::vector<RoundingBounds> wide = boundGraph(made.graph, made.leaves, options);
    ASSERT_EQ(got.size(), want.size());
    ASSERT_EQ(wide.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      expectWithin(got[i], want[i], wide[i], made.tolerance,
                   fmt::format("{} in {} on {}: output {}", made.name, toString(dtype), device, i));
    }
  }
}

PackedCase gradientsOf(PackedCase made, const std::vector<std::string>& wrt, DType dtype) {
  std::mt19937 random(2);
  graph::Builder b(std::move(made.graph));
  const graph::ValueId result = b.graph().outputs.front().value;
  b.mutableGraph().outputs.clear();
  const graph::ValueId low = b.make("cast", {result}, {{"dtype", dtype}});
  b.output(OutputKind::Loss, "loss",
           graph::testing::weightedSum(b, b.make("cast", {low}, {{"dtype", DType::F32}}), "weight", made.leaves, random));
  graph::Graph differentiated = passes::grad(b.graph(), {.wrt = wrt}).orThrow();
  std::vector<graph::Output> outputs = std::move(differentiated.outputs);
  differentiated.outputs.clear();
  for (graph::Output& output : outputs) {
    if (output.kind != OutputKind::Gradient) continue;
    EXPECT_EQ(differentiated.typeOf(output.value).dtype, DType::F32) << "the gradient of a packed float is an f32";
    differentiated.outputs.push_back({OutputKind::Result, "d_" + output.name, output.value});
  }
  // A gradient is a short chain of the same operations as the op.
  return {std::move(differentiated), std::move(made.leaves), 4 * made.tolerance + 2e-6, made.name + "'s gradient"};
}

lockstep::Tensor PackedLeaves::add(const graph::TensorType& type, double lo, double hi) {
  const std::string name = "x" + std::to_string(all_.size());
  all_.emplace(name, graph::testing::randomTensor(type, lo, hi, random_));
  return trace_.addInput(name, type);
}

lockstep::Tensor PackedLeaves::stored(const std::vector<int64_t>& shape) {
  const graph::TensorType type{dtype_, graph::Shape(shape)};
  const graph::DTypeFacts& facts = graph::factsOf(dtype_);
  names_.push_back("x" + std::to_string(all_.size()));
  return facts.is_float ? add(type, -2, 2) : add(type, static_cast<double>(facts.lowest), static_cast<double>(facts.highest));
}

lockstep::Tensor PackedLeaves::values(const std::vector<int64_t>& shape) { return cast(stored(shape), DType::F32); }

lockstep::Tensor PackedLeaves::numbers(const std::vector<int64_t>& shape, int64_t below) {
  return add({DType::I32, graph::Shape(shape)}, 0, static_cast<double>(below - 1));
}

}  // namespace lockstep
