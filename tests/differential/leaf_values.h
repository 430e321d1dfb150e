// SPDX-License-Identifier: Apache-2.0
// Made-up values for the leaves of a graph that a test traced.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/evaluate.h"

namespace lockstep {

/// Floats uniform in [-most, most]; integers count from 1.
inline graph::LeafValues leafValues(const graph::Graph& graph, double most) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> number(-most, most);
  graph::LeafValues values;
  for (const graph::NodeId id : graph.body().nodes) {
    const std::string* name = leafName(graph[id]);
    if (name == nullptr) continue;
    const graph::TensorType& type = graph.typeOf(graph[id].results[0]);
    std::vector<double> data(static_cast<size_t>(type.shape.elementCount()));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = isFloat(type.dtype) ? static_cast<double>(static_cast<float>(number(random))) : static_cast<double>(i + 1);
    values[*name] = {type, std::move(data)};
  }
  return values;
}

}  // namespace lockstep
