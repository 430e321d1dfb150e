// SPDX-License-Identifier: Apache-2.0
#include "tests/large/large_case.h"

#include <cstdlib>

#include "frontend/ops/ops.h"
#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"

namespace lockstep::large {

namespace {

/// Numbers that depend on the element alone (a step of a 32-bit mixing function).
uint32_t mixed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ x >> 16;
}

void expectSame(const graph::Graph& graph, const graph::LeafValues& leaves, const std::vector<std::string>& wrt, double tolerance) {
  GraphRunOptions options{.gradients = !wrt.empty(), .wrt = wrt};
  const std::vector<graph::Tensor> want = runGraph(graph, leaves, options);
  for (const std::string& device : devicesUnderTest()) {
    options.device = device;
    expectClose(runGraph(graph, leaves, options), want, tolerance, device);
  }
}

}  // namespace

Tensor Leaves::add(std::vector<int64_t> shape, DType dtype, const std::function<double(uint32_t)>& value) {
  const std::string name = "x" + std::to_string(all_.size());
  const graph::TensorType type{dtype, graph::Shape(std::move(shape))};
  graph::Tensor data{type, {}};
  data.data.resize(static_cast<size_t>(type.shape.elementCount()));
  const auto salt = static_cast<uint32_t>(all_.size() * 0x9e3779b9U);
  for (size_t i = 0; i < data.data.size(); ++i) data.data[i] = value(mixed(static_cast<uint32_t>(i) + salt));
  all_.emplace(name, std::move(data));
  if (dtype == DType::F32) floats_.push_back(name);
  return trace_.addInput(name, type);
}

Tensor Leaves::values(std::vector<int64_t> shape) {
  return add(std::move(shape), DType::F32, [](uint32_t random) { return (random >> 8) / 0x1p24 - 0.5; });
}

Tensor Leaves::stored(std::vector<int64_t> shape, DType dtype) {
  const graph::DTypeFacts& facts = graph::factsOf(dtype);
  const auto count = static_cast<uint32_t>(facts.highest - facts.lowest + 1);
  return add(std::move(shape), dtype, [&](uint32_t random) {
    if (facts.is_float) return graph::roundedTo(dtype, (random >> 8) / 0x1p24 - 0.5);
    return static_cast<double>(facts.lowest) + random % count;
  });
}

Tensor Leaves::numbers(std::vector<int64_t> shape, int64_t below) {
  return add(std::move(shape), DType::I32, [&](uint32_t random) { return static_cast<double>(random % below); });
}

void expectSameValue(const Body& body, double tolerance) {
  detail::Trace trace;
  Leaves leaves(trace);
  trace.output(graph::OutputKind::Result, "value", body(leaves));
  expectSame(trace.take(), leaves.all(), {}, tolerance);
}

void expectSameGradients(const Body& body) {
  detail::Trace trace;
  Leaves leaves(trace);
  const Tensor value = body(leaves);
  const std::vector<std::string> wrt = leaves.floats();
  trace.output(graph::OutputKind::Loss, "loss", sum(value * leaves.values(value.shape().extents())));
  expectSame(trace.take(), leaves.all(), wrt, kTolerance);
}

bool nightly() { return std::getenv("LOCKSTEP_NIGHTLY") != nullptr; }

}  // namespace lockstep::large
