// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/random_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/graph/op_def.h"

namespace lockstep {
namespace {

/// Reads the choices one by one; after the last one every choice is 0.
class Choices {
 public:
  explicit Choices(const std::vector<uint32_t>& numbers) : numbers_(numbers) {}
  [[nodiscard]] bool done() const { return next_ >= numbers_.size(); }
  int64_t below(int64_t n) { return next_ < numbers_.size() ? static_cast<int64_t>(numbers_[next_++]) % n : 0; }

 private:
  const std::vector<uint32_t>& numbers_;
  size_t next_ = 0;
};

constexpr int64_t kMostElements = 3000;

struct Maker {
  Choices choose;
  bool smooth;  ///< only ops whose gradients are continuous
  detail::Trace trace{};
  std::vector<Tensor> floats{};
  std::vector<std::string> float_names{};
  int64_t inputs = 0;

  Tensor pick() { return floats[static_cast<size_t>(choose.below(static_cast<int64_t>(floats.size())))]; }
  int64_t axisOf(const Tensor& x) { return choose.below(x.rank()); }

  int64_t extent() {
    static constexpr int64_t kExtents[] = {3, 1, 2, 4, 5, 7, 8, 16, 17, 33, 64, 70};
    return kExtents[choose.below(std::size(kExtents))];
  }

  Tensor input(std::vector<int64_t> shape, DType dtype = DType::F32) {
    std::string name = "in" + std::to_string(inputs++);
    if (dtype == DType::F32) float_names.push_back(name);
    return trace.addInput(name, {dtype, Shape(shape)});
  }

  Tensor newInput() {
    std::vector<int64_t> shape;
    int64_t rank = 1 + choose.below(4), elements = 1;
    for (int64_t i = 0; i < rank; ++i) {
      int64_t next = extent();
      if (elements * next > kMostElements) next = 1;
      shape.push_back(next);
      elements *= next;
    }
    return input(std::move(shape));
  }

  /// A tensor that broadcasts with x: one from the pool if it fits, else a new input along some of its axes.
  Tensor partner(const Tensor& x) {
    Tensor candidate = pick();
    std::optional<Shape> common = graph::broadcastShapes(x.shape(), candidate.shape());
    if (common && common->elementCount() <= kMostElements) return candidate;
    std::vector<int64_t> shape = x.shape().extents();
    for (int64_t& e : shape) e = choose.below(3) == 0 ? 1 : e;
    return input(std::move(shape));
  }

  Tensor unary(const Tensor& x) {
    switch (choose.below(smooth ? 10 : 14)) {
      case 0:
        return tanh(x);
      case 1:
        return sigmoid(x);
      case 2:
        return sin(x);
      case 3:
        return cos(x * 0.5);
      case 4:
        return exp(-square(x));
      case 5:
        return softplus(x);
      case 6:
        return sqrt(square(x) + 0.5);
      case 7:
        return gelu(x);
      case 8:
        return log(square(x) + 1);
      case 9:
        return x * 0.7 - 0.3;
      case 10:
        return relu(x);
      case 11:
        return abs(x);
      case 12:
        return leaky_relu(x, 0.1);
      default:
        return clamp(x, -0.8, 0.9);
    }
  }

  Tensor binary(const Tensor& x) {
    Tensor y = partner(x);
    switch (choose.below(smooth ? 4 : 7)) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * y;
      case 3:
        return x / (square(y) + 1);
      case 4:
        return max(x, y);
      case 5:
        return min(x, y);
      default:
        return where(x < y, (x + y) * 0.5, y);  // no jump where x and y differ by a rounding
    }
  }

  Tensor reduction(const Tensor& x) {
    int64_t axis = axisOf(x);
    ReduceOptions keep{.keep_dims = choose.below(2) == 0};
    switch (choose.below(smooth ? 4 : 6)) {
      case 0:
        return mean(x, axis, keep);
      case 1:
        return sum(x, axis, keep) * (1.0 / static_cast<double>(x.extent(axis)));
      case 2:
        return cumsum(x, axis, choose.below(2) == 1) * (1.0 / static_cast<double>(x.extent(axis)));
      case 3:
        return mean(x);
      case 4:
        return reduce_max(x, axis, keep);
      default:
        return reduce_min(x, axis, keep);
    }
  }

  Tensor view(const Tensor& x) {
    int64_t axis = axisOf(x), size = x.extent(axis);
    std::vector<int64_t> order(static_cast<size_t>(x.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + choose.below(x.rank()), order.end());
    switch (choose.below(10)) {
      case 0:
        return permute(x, order);
      case 1:
        return narrow(x, axis, size / 3, size - size / 3 - size / 4);
      case 2:
        return flip(x, {axis});
      case 3:
        return roll(x, 1 + choose.below(5), axis);
      case 4:
        return flatten(x);
      case 5:
        return x.shape().elementCount() > kMostElements / 2 ? x : concat({x, unary(x)}, axis);
      case 6:
        return x.shape().elementCount() > kMostElements / 2 ? x : repeat(x, 2, axis);
      case 7:
        return x.rank() < 2 ? x : tril(x, choose.below(3) - 1);
      case 8:
        return expand_dims(x, axis);
      default:
        return reshape(permute(x, order), {-1, permute(x, order).extent(-1)});
    }
  }

  Tensor network(const Tensor& x) {
    Tensor wide = x.rank() >= 2 ? x : reshape(x, {1, -1});
    int64_t width = wide.extent(-1);
    switch (choose.below(smooth ? 6 : 7)) {
      case 0: {
        int64_t columns = std::min<int64_t>(extent(), std::max<int64_t>(1, kMostElements * width / wide.shape().elementCount()));
        return matmul(wide, input({width, columns})) * (1 / std::sqrt(static_cast<double>(width)));
      }
      case 1:
        return matmul(swap_axes(wide, -1, -2), wide) * (1 / std::sqrt(static_cast<double>(wide.extent(-2))));
      case 2:
        return softmax(x, axisOf(x));
      case 3:
        return layer_norm(x, input({x.extent(-1)}), input({x.extent(-1)}), 0.5);
      case 4: {
        Tensor rows = input({1 + choose.below(40)}, DType::I32);
        return index_select(x, 0, rows);
      }
      case 5: {
        Tensor rows = input({x.extent(0)}, DType::I32);
        return segment_sum(x, rows, 1 + choose.below(6)) * (1 / std::sqrt(static_cast<double>(x.extent(0))));
      }
      default:
        return log_softmax(x, -1) * 0.25;
    }
  }

  Tensor step(const Tensor& x) {
    if (x.rank() == 0) return unary(x);
    switch (choose.below(8)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
      case 3:
        return binary(x);
      case 4:
        return reduction(x);
      case 5:
      case 6:
        return view(x);
      default:
        return network(x);
    }
  }

  /// Keeps values small however long the chain is.
  void add(Tensor made) {
    if (made.shape().elementCount() <= 4 * kMostElements) floats.push_back(choose.below(3) == 0 ? tanh(made) : made);
  }
};

}  // namespace

RandomProgram makeRandomProgram(const std::vector<uint32_t>& choices, uint32_t seed) {
  Maker maker{.choose = Choices(choices), .smooth = seed % 2 == 0};
  maker.floats.push_back(maker.newInput());
  maker.floats.push_back(maker.newInput());
  while (!maker.choose.done()) maker.add(maker.step(maker.pick()));
  // The last values, so that most of what was made is needed.
  size_t first = maker.floats.size() > 3 ? maker.floats.size() - 3 : 0;
  Tensor loss;
  for (size_t i = first; i < maker.floats.size(); ++i) {
    maker.trace.output(graph::OutputKind::Result, "r" + std::to_string(i - first), maker.floats[i]);
    Tensor part = mean(square(tanh(maker.floats[i])));
    loss = i == first ? part : loss + part;
  }
  if (maker.smooth) maker.trace.output(graph::OutputKind::Loss, "loss", loss);
  RandomProgram program{maker.trace.take(), {}, maker.smooth ? maker.float_names : std::vector<std::string>{}};

  std::mt19937 random(seed);
  for (graph::NodeId id : program.graph.body().nodes) {
    const graph::Node& node = program.graph[id];
    if (*node.op->name != "input") continue;
    graph::Tensor value{program.graph.typeOf(node.results[0]), {}};
    for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) {
      double unit = static_cast<double>(random()) * 0x1p-32;
      // Indices reach beyond both ends of small axes.
      value.data.push_back(value.type.dtype == DType::F32 ? static_cast<double>(static_cast<float>(4 * unit - 2))
                                                          : std::floor(9 * unit) - 1);
    }
    program.leaves.emplace(node.attributes.get<std::string>("name"), std::move(value));
  }
  return program;
}

}  // namespace lockstep
