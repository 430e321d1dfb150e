// SPDX-License-Identifier: Apache-2.0
// What the front end's tests share: running a function inside a trace, and catching its Error.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/graph/evaluate.h"

namespace lockstep {

/// The traced graph of a function of inputs named a, b, c, …; its results are outputs.
inline graph::Graph traced(const std::vector<TensorType>& types, const std::function<Tensor(const std::vector<Tensor>&)>& function) {
  detail::Trace trace;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < types.size(); ++i) inputs.push_back(trace.addInput(std::string(1, static_cast<char>('a' + i)), types[i]));
  trace.output(graph::OutputKind::Result, "y", function(inputs));
  return trace.take();
}

/// The values of the function for inputs filled with 1, 2, 3, … times `scale`.
inline graph::Tensor counted(const std::vector<TensorType>& types, const std::function<Tensor(const std::vector<Tensor>&)>& function,
                             double scale = 1) {
  graph::Graph graph = traced(types, function);
  graph::LeafValues leaves;
  for (size_t i = 0; i < types.size(); ++i) {
    graph::Tensor value{types[i], std::vector<double>(static_cast<size_t>(types[i].shape.elementCount()))};
    for (size_t k = 0; k < value.data.size(); ++k) value.data[k] = scale * static_cast<double>(k + 1);
    leaves.emplace(std::string(1, static_cast<char>('a' + i)), std::move(value));
  }
  return graph::evaluate(graph, leaves).orThrow().front();
}

/// The Error that the function throws; a test failure when it throws none.
inline Diagnostic caught(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.diagnostics().front();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace lockstep
