// SPDX-License-Identifier: Apache-2.0
// Attention as products and a softmax, for devices and sizes that do without a template. The forward and the backward computation make
// the same nodes, so that common subexpressions merge.
#pragma once

#include <span>

#include "ir/ops/support/attention.h"

namespace lockstep::graph {

class AttentionProducts {
 public:
  /// `mask`: the position of the mask among the operands, if there is one.
  AttentionProducts(Builder& builder, const Node& node, std::span<const ValueId> operands, size_t mask);
  [[nodiscard]] const AttentionExtents& extents() const { return extents_; }
  /// A tensor over queries as [..., Hkv, group * T, width]: the heads of one group are rows of one product, so that k is never copied.
  ValueId grouped(ValueId x, int64_t width) const;
  /// scale q k^T + mask, -inf where a key is hidden: [..., Hkv, group * T, S].
  [[nodiscard]] ValueId scores() const { return scores_; }
  /// Its softmax.
  [[nodiscard]] ValueId weights() const { return weights_; }
  /// In mixed precision what a product reads or makes, rounded; otherwise `x`.
  ValueId rounded(ValueId x) const;

 private:
  /// Where a key comes after the query: bool [group * T, S], broadcast to `shape`.
  ValueId hidden(int64_t offset, const Shape& shape) const;
  Builder& b_;
  AttentionExtents extents_;
  const Attribute* low_;
  ValueId scores_, weights_;
};

}  // namespace lockstep::graph
