// SPDX-License-Identifier: Apache-2.0
// The measure of programs whose floats have 16 bits in memory: what may come out is what the f32 results of any device are rounded to.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "frontend/trace/tensor.h"
#include "frontend/trace/trace.h"
#include "ir/graph/evaluate.h"

namespace lockstep {

/// A graph of results, with the values of its leaves.
struct PackedCase {
  graph::Graph graph;
  graph::LeafValues leaves;
  double tolerance = 0;  ///< what the program itself may be off by, as OpCase::tolerance
  std::string name;
};

/// Each float of the results, stored as `dtype`, is on each device one that a number within its bound is rounded to. Integers and packed
/// results are equal.
void expectRounded(const PackedCase& made, graph::DType dtype);

/// The gradients by the leaves `wrt` in place of the results; the loss is the sum of the first result, rounded to `dtype`, with random
/// weights.
PackedCase gradientsOf(PackedCase made, const std::vector<std::string>& wrt, graph::DType dtype);

/// Leaves of a trace with random values.
class PackedLeaves {
 public:
  PackedLeaves(detail::Trace& trace, graph::DType dtype) : trace_(trace), dtype_(dtype) {}
  /// As they lie in memory; floats in [-2, 2), integers all that there are.
  Tensor stored(const std::vector<int64_t>& shape);
  /// Widened.
  Tensor values(const std::vector<int64_t>& shape);
  /// i32 in [0, below).
  Tensor numbers(const std::vector<int64_t>& shape, int64_t below);
  [[nodiscard]] const graph::LeafValues& all() const { return all_; }
  /// The packed ones, in the order of their making.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  Tensor add(const graph::TensorType& type, double lo, double hi);
  detail::Trace& trace_;
  graph::DType dtype_;
  graph::LeafValues all_;
  std::vector<std::string> names_;
  std::mt19937 random_{5};
};

}  // namespace lockstep
