// SPDX-License-Identifier: Apache-2.0
// A graph of large tensors, run by the f64 evaluator and by each device. Sizes are primes where nothing asks for others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/trace/tensor.h"
#include "frontend/trace/trace.h"
#include "ir/graph/evaluate.h"

namespace lockstep::large {

/// Builds a graph's leaves with random values as its body asks for them.
class Leaves {
 public:
  explicit Leaves(detail::Trace& trace) : trace_(trace) {}
  /// f32 in [-0.5, 0.5).
  Tensor values(std::vector<int64_t> shape);
  /// Elements of a packed type as memory has them: floats in [-0.5, 0.5), integers all that there are.
  Tensor stored(std::vector<int64_t> shape, DType dtype);
  /// i32 in [0, below).
  Tensor numbers(std::vector<int64_t> shape, int64_t below);
  [[nodiscard]] const graph::LeafValues& all() const { return all_; }
  /// The f32 leaves, in the order of their making.
  [[nodiscard]] const std::vector<std::string>& floats() const { return floats_; }

 private:
  Tensor add(std::vector<int64_t> shape, DType dtype, const std::function<double(uint32_t)>& value);
  detail::Trace& trace_;
  graph::LeafValues all_;
  std::vector<std::string> floats_;
};

/// Sums of n products of random signs in f32 err by about 2^-24 sqrt(n) of their norm, and plans keep the parts that one register sums
/// below 60 000.
inline constexpr double kTolerance = 2e-5;

using Body = std::function<Tensor(Leaves&)>;

/// The body's value on each device of this machine against the evaluator's: the relative L2 distance is at most `tolerance`.
void expectSameValue(const Body& body, double tolerance = kTolerance);
/// The same of the gradients by all f32 leaves; the body gives any tensor, whose sum with random weights is the loss.
void expectSameGradients(const Body& body);

/// Whether the cases of ./dev nightly run.
bool nightly();

}  // namespace lockstep::large
