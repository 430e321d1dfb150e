// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/scaled_vector.h"

#include <algorithm>
#include <set>

#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool isOneNumber(const Graph& graph, ValueId value) { return graph.shapeOf(value).elementCount() == 1; }

/// What a product of vectors is made of.
struct Factors {
  const Graph& graph;
  int64_t length;
  std::vector<ValueId> vectors, numbers;
  std::set<ValueId> known;  // the vectors, and products of them

  void add(ValueId value) {
    static const OpDef* const product = &op("mul");
    value = throughShapes(graph, value);
    if (const ValueId base = throughViews(graph, value).base; isOneNumber(graph, base)) {
      numbers.push_back(base);
      return;
    }
    known.insert(value);
    const Node& node = graph.definition(value);
    if (node.op == product && graph.typeOf(value).dtype == DType::F32) {
      for (const ValueId operand : node.operands) add(operand);
    } else {
      vectors.push_back(value);
    }
  }

  /// Whether it is a reduction to one number of what is computed from the vectors alone, element by element.
  [[nodiscard]] bool isOfThese(const Node& node) const {
    const ValueId read = throughShapes(graph, node.operands[0]);
    if (known.contains(read)) return true;
    const Node& maker = graph.definition(read);
    const auto* element = std::get_if<ElementLowering>(&*maker.op->lower);
    return element != nullptr && !element->scalar_only && !element->transcendental && graph.shapeOf(read).elementCount() == length &&
           std::ranges::all_of(maker.operands, [&](ValueId operand) { return known.contains(throughShapes(graph, operand)); });
  }

  /// Whether a number is computed from such a reduction and from nothing else that is no constant.
  [[nodiscard]] bool isScale(ValueId number) const {
    number = throughViews(graph, number).base;
    const Node& node = graph.definition(number);
    if (!isOneNumber(graph, number)) return false;
    if (std::holds_alternative<ReduceLowering>(*node.op->lower)) return isOfThese(node);
    if (!std::holds_alternative<ElementLowering>(*node.op->lower) || node.operands.empty()) return false;
    bool is_scale = false;
    for (const ValueId operand : node.operands) {
      const ValueId base = throughViews(graph, operand).base;
      if (!isOneNumber(graph, base)) return false;
      if (graph.definition(base).operands.empty()) continue;
      if (!isScale(base)) return false;
      is_scale = true;
    }
    return is_scale;
  }
};

}  // namespace

ScaledVector scaledVector(const Graph& graph, ValueId vector) {
  Factors factors{.graph = graph, .length = graph.shapeOf(vector).elementCount(), .vectors = {}, .numbers = {}, .known = {}};
  factors.add(vector);
  const bool are_scales = std::ranges::all_of(factors.numbers, [&](ValueId number) { return factors.isScale(number); });
  if (!are_scales || factors.numbers.empty() || factors.vectors.empty()) return {{vector}, {}};
  return {factors.vectors, factors.numbers};
}

ValueId productOf(Rewriter& rewriter, const ScaledVector& vector, const Shape& shape) {
  Builder& b = rewriter.builder();
  ValueId product;
  for (const ValueId factor : vector.factors) {
    const ValueId next = b.reshape(rewriter[factor], shape);
    product = product.valid() ? b.mul(product, next) : next;
  }
  return product;
}

ValueId scaleBeside(Rewriter& rewriter, const Graph& graph, ValueId scale, const Shape& matrix, int64_t axis) {
  Builder& b = rewriter.builder();
  const Shape results{matrix.extent(axis == 0 ? 1 : 0)};
  const ValueId base = throughViews(graph, scale).base;
  const Node& node = graph.definition(base);
  if (std::holds_alternative<ReduceLowering>(*node.op->lower)) {
    const ValueId elements = rewriter[node.operands[0]];
    const Shape one = axis == 0 ? Shape{matrix.extent(0), 1} : Shape{1, matrix.extent(1)};
    const ValueId spread = b.broadcastTo(b.reshape(elements, one), matrix);
    return b.make(*node.op->name, {spread}, {{"axes", std::vector{axis}}, {"keep_dims", false}});
  }
  if (node.operands.empty()) return b.broadcastTo(b.reshape(rewriter[base], Shape{1}), results);
  std::vector<ValueId> operands;
  for (const ValueId operand : node.operands) operands.push_back(scaleBeside(rewriter, graph, operand, matrix, axis));
  return b.make(*node.op->name, operands, node.attributes);
}

}  // namespace lockstep::passes
