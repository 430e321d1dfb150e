// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops_network.h"
#include "frontend/ops_shape.h"
#include "frontend/trace.h"

namespace lockstep {

using detail::emit;
using detail::normaliseAxis;

namespace {

/// A row op of the IR works on the last axis; another axis is swapped there and back.
template <class RowOp>
Tensor alongAxis(std::string_view op, Tensor x, int64_t axis, const Where& where, RowOp row_op) {
  detail::Trace::require(op, where);
  axis = normaliseAxis(op, axis, x, where);
  return swap_axes(row_op(swap_axes(x, axis, -1, where)), axis, -1, where);
}

}  // namespace

Tensor matmul(Tensor a, Tensor b, Where where) { return emit("matmul", {a, b}, {}, where); }
Tensor embedding(Tensor table, Tensor indices, Where where) { return emit("embedding", {table, indices}, {}, where); }

Tensor one_hot(Tensor indices, int64_t depth, Where where) { return emit("one_hot", {indices}, {{"depth", depth}}, where); }

Tensor softmax(Tensor x, int64_t axis, Where where) {
  return alongAxis("softmax", x, axis, where, [&](Tensor rows) { return emit("softmax", {rows}, {}, where); });
}
Tensor log_softmax(Tensor x, int64_t axis, Where where) {
  return alongAxis("log_softmax", x, axis, where, [&](Tensor rows) { return emit("log_softmax", {rows}, {}, where); });
}
Tensor softmax_causal(Tensor x, Where where) { return emit("softmax_causal", {x}, {}, where); }
Tensor where_causal(Tensor x, double fill, Where where) { return emit("where_causal", {x}, {{"fill", fill}}, where); }

Tensor layer_norm(Tensor x, Tensor g, Tensor b, double eps, Where where) { return emit("layer_norm", {x, g, b}, {{"eps", eps}}, where); }

}  // namespace lockstep
