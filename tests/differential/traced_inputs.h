// SPDX-License-Identifier: Apache-2.0
// A traced function with random inputs, whose results and gradients are compared on all devices.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {

/// Inputs of a trace and their values.
struct TracedInputs {
  Tensor operator()(const std::string& name, const Shape& shape, double lo = -1, double hi = 1) {
    const graph::TensorType type{graph::DType::F32, shape};
    leaves.emplace(name, graph::testing::randomTensor(type, lo, hi, random));
    names.push_back(name);
    return trace.addInput(name, type);
  }
  /// Element i is one of these.
  void set(const std::string& name, const std::vector<double>& numbers) {
    std::vector<double>& data = leaves.at(name).data;
    for (size_t i = 0; i < data.size(); ++i) data[i] = numbers[(i + i / numbers.size()) % numbers.size()];
  }
  /// y and its gradients are finite and those of the evaluator, with templates and without.
  void check(const Tensor& y, const Tensor& weight, double tolerance = 1e-5) {
    trace.output(graph::OutputKind::Result, "y", y);
    trace.output(graph::OutputKind::Loss, "loss", sum(y * sin(weight)));
    const graph::Graph graph = trace.take();
    GraphRunOptions options{.gradients = true, .wrt = names};
    const std::vector<graph::Tensor> want = runGraph(graph, leaves, options);
    for (const std::string& device : devicesUnderTest()) {
      options.device = device;
      options.opened = openedDevice(device);
      for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"template:selective_scan"}}) {
        options.disable = disabled;
        const std::vector<graph::Tensor> got = runGraph(graph, leaves, options);
        for (const graph::Tensor& tensor : got) {
          for (const double value : tensor.data) ASSERT_TRUE(std::isfinite(value)) << device;
        }
        expectClose(got, want, tolerance, fmt::format("{} without {}", device, fmt::join(disabled, ", ")));
      }
    }
  }
  detail::Trace trace;
  graph::LeafValues leaves;
  std::vector<std::string> names;
  std::mt19937 random{3};
};

}  // namespace lockstep
