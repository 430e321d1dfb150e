// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "frontend/ops/element.h"
#include "frontend/ops/network.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

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
Tensor rms_norm(Tensor x, Tensor g, double eps, Where where) { return emit("rms_norm", {x, g}, {{"eps", eps}}, where); }
Tensor group_norm(Tensor x, Tensor g, Tensor b, int64_t groups, double eps, Where where) {
  return emit("group_norm", {x, g, b}, {{"groups", groups}, {"eps", eps}}, where);
}

BatchNormResult batch_norm(Tensor x, Tensor g, Tensor b, double eps, Where where) {
  const std::vector<Tensor> operands{x, g, b};
  std::vector<Tensor> made = detail::Trace::require("batch_norm", where).emitAll("batch_norm", operands, {{"eps", eps}}, where);
  return {made[0], made[1], made[2]};
}

Tensor batch_norm(Tensor x, Tensor g, Tensor b, Tensor mean, Tensor variance, double eps, Where where) {
  detail::Trace::require("batch_norm", where);
  Shape channels = x.rank(where) < 2 ? Shape{} : Shape{x.shape(where)[1]};
  for (const Tensor& tensor : {g, b, mean, variance}) {
    if (x.rank(where) < 2 || tensor.shape(where) != channels) {
      detail::raise("batch_norm.C3",
                    fmt::format("x is {} and a value of its channels is {}", toString(x.shape(where)), toString(tensor.shape(where))),
                    {x, tensor}, where);
    }
  }
  // Broadcast before anything is computed, so that all of it belongs to the elements of x and joins what made them.
  std::vector<int64_t> wide(static_cast<size_t>(x.rank(where)) - 1, 1);
  wide[0] = -1;
  auto each = [&](const Tensor& channel) { return broadcast_to(reshape(channel, wide, where), x.shape(where).extents(), where); };
  Tensor rstd = rsqrt(add({each(variance), where}, {eps, where}, where), where);
  Tensor centred = sub({x, where}, {each(mean), where}, where);
  Tensor scaled = mul({mul({centred, where}, {rstd, where}, where), where}, {each(g), where}, where);
  return add({scaled, where}, {each(b), where}, where);
}

}  // namespace lockstep
