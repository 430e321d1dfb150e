// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention_products.h"

#include <limits>

namespace lockstep::graph {

AttentionProducts::AttentionProducts(Builder& b, const Node& node, std::span<const ValueId> operands, size_t mask)
    : b_(b), extents_(b.shapeOf(operands[0]), b.shapeOf(operands[1]), b.shapeOf(operands[2])), low_(node.attributes.find(kLowAttribute)) {
  const ValueId products = b.make("matmul", {grouped(operands[0], extents_.width), b.swapLastAxes(operands[1])});
  scores_ = rounded(b.mul(products, node.attributes.get<double>("scale")));
  if (operands.size() > mask) scores_ = b.add(scores_, grouped(b.broadcastTo(operands[mask], extents_.scores()), extents_.keys));
  const int64_t offset = node.attributes.get<int64_t>("offset");
  const bool causal = node.attributes.get<bool>("causal");
  if (causal && offset == 0 && extents_.group() == 1 && extents_.queries == extents_.keys) {
    weights_ = b.make("softmax_causal", {scores_});
    scores_ = b.make("where_causal", {scores_}, {{"fill", -std::numeric_limits<double>::infinity()}});
    return;
  }
  if (causal && offset < extents_.keys - 1) {
    const Shape shape = b.shapeOf(scores_);
    const ValueId later = hidden(offset, shape);
    scores_ = b.make("where", {later, b.constant(-std::numeric_limits<double>::infinity(), shape), scores_});
  }
  weights_ = b.make("softmax", {scores_});
}

ValueId AttentionProducts::grouped(ValueId x, int64_t width) const {
  return b_.reshape(x, extents_.with({extents_.kv_heads, extents_.group() * extents_.queries, width}));
}

ValueId AttentionProducts::hidden(int64_t offset, const Shape& shape) const {
  const AttentionExtents& e = extents_;
  const ValueId numbers = b_.make("arange", {}, {{"n", e.queries}, {"dtype", DType::I32}});
  ValueId row = b_.broadcastTo(b_.reshape(numbers, Shape{1, e.queries, 1}), Shape{e.group(), e.queries, e.keys});
  row = b_.broadcastTo(b_.reshape(row, Shape{e.group() * e.queries, e.keys}), shape);
  if (offset != 0) row = b_.add(row, static_cast<double>(offset));
  const ValueId column = b_.broadcastTo(b_.make("arange", {}, {{"n", e.keys}, {"dtype", DType::I32}}), shape);
  return b_.make("greater", {column, row});
}

ValueId AttentionProducts::rounded(ValueId x) const {
  if (low_ == nullptr) return x;
  const ValueId low = b_.make("cast", {x}, {{"dtype", std::get<DType>(*low_)}});
  return b_.make("cast", {low}, {{"dtype", DType::F32}, {"rounds_gradient", true}});
}

}  // namespace lockstep::graph
