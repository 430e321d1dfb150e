// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/ops/element.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::broadcast;
using detail::emit;
using detail::numberLike;
using detail::raise;

namespace {

Shape commonShape(std::string_view op, const Tensor& a, const Tensor& b, const Where& where) {
  const Shape &left = a.shape(where), &right = b.shape(where);
  if (std::optional<Shape> shape = graph::broadcastShapes(left, right)) return *shape;
  // Name the last axis pair that does not match, counted from the end as broadcasting aligns.
  std::string detail;
  for (size_t i = 1; i <= std::min(left.rank(), right.rank()) && detail.empty(); ++i) {
    int64_t x = left.extent(left.rank() - i), y = right.extent(right.rank() - i);
    if (x != y && x != 1 && y != 1) detail = fmt::format("axis -{} has {} and {}", i, x, y);
  }
  raise(fmt::format("{}.C2", op), fmt::format("shapes {} and {} do not broadcast: {}", toString(left), toString(right), detail), {a, b},
        where, "extents must be equal or 1, aligned from the last axis");
}

/// Both operands as tensors of one shape. A number takes the type of the tensor beside it.
std::pair<Tensor, Tensor> aligned(std::string_view op, const Operand& a, const Operand& b, const Where& where) {
  if (a.isNumber() && b.isNumber()) {
    raise(fmt::format("{}.operands", op), "both operands are numbers", {}, where, "compute with numbers in C++, or use full()");
  }
  if (a.isNumber()) return {numberLike(op, a.number(), b.tensor().type(where), where), b.tensor()};
  if (b.isNumber()) return {a.tensor(), numberLike(op, b.number(), a.tensor().type(where), where)};
  Shape shape = commonShape(op, a.tensor(), b.tensor(), where);
  // The op itself says which element types it takes, in the words of its constraint, before any broadcast hides the user's shapes.
  if (a.tensor().dtype(where) != b.tensor().dtype(where)) {
    raise(
        fmt::format("{}.C1", op),
        fmt::format("operands are {} and {}, wanted one element type", toString(a.tensor().type(where)), toString(b.tensor().type(where))),
        {a.tensor(), b.tensor()}, where, "cast one of them, for example cast(x, ls::DType::F32)");
  }
  return {broadcast(a.tensor(), shape, where), broadcast(b.tensor(), shape, where)};
}

Tensor binary(std::string_view op, const Operand& a, const Operand& b, const Where& where) {
  detail::Trace::require(op, where);
  auto [x, y] = aligned(op, a, b, where);
  return emit(op, {x, y}, {}, where);
}

/// With the number, if any, as the second operand.
Tensor symmetric(std::string_view op, const Operand& a, const Operand& b, const Where& where) {
  return a.isNumber() ? binary(op, b, a, where) : binary(op, a, b, where);
}

/// With the number, if any, as the second operand, under the op that says the same from the other side.
Tensor compare(std::string_view op, std::string_view mirrored, const Operand& a, const Operand& b, const Where& where) {
  return a.isNumber() ? binary(mirrored, b, a, where) : binary(op, a, b, where);
}

Tensor shifted(std::string_view op, const Tensor& x, const Operand& count, const Where& where) {
  detail::Trace::require(op, where);
  if (count.isNumber()) return emit(op, {x, numberLike(op, count.number(), {DType::U32, x.shape(where)}, where)}, {}, where);
  const Shape shape = commonShape(op, x, count.tensor(), where);
  return emit(op, {broadcast(x, shape, where), broadcast(count.tensor(), shape, where)}, {}, where);
}

}  // namespace

Tensor add(Operand a, Operand b, Where where) { return symmetric("add", a, b, where); }
Tensor sub(Operand a, Operand b, Where where) { return binary("sub", a, b, where); }
Tensor mul(Operand a, Operand b, Where where) { return symmetric("mul", a, b, where); }
Tensor min(Operand a, Operand b, Where where) { return symmetric("min", a, b, where); }
Tensor max(Operand a, Operand b, Where where) { return symmetric("max", a, b, where); }
Tensor pow(Operand a, Operand b, Where where) { return binary("pow", a, b, where); }
Tensor equal(Operand a, Operand b, Where where) { return symmetric("equal", a, b, where); }
Tensor not_equal(Operand a, Operand b, Where where) { return symmetric("not_equal", a, b, where); }
Tensor less(Operand a, Operand b, Where where) { return compare("less", "greater", a, b, where); }
Tensor greater(Operand a, Operand b, Where where) { return compare("greater", "less", a, b, where); }
Tensor less_equal(Operand a, Operand b, Where where) { return compare("less_equal", "greater_equal", a, b, where); }
Tensor greater_equal(Operand a, Operand b, Where where) { return compare("greater_equal", "less_equal", a, b, where); }
Tensor logical_and(Tensor a, Tensor b, Where where) { return binary("logical_and", a, b, where); }
Tensor logical_or(Tensor a, Tensor b, Where where) { return binary("logical_or", a, b, where); }
Tensor bitwise_and(Operand a, Operand b, Where where) { return symmetric("bitwise_and", a, b, where); }
Tensor bitwise_or(Operand a, Operand b, Where where) { return symmetric("bitwise_or", a, b, where); }
Tensor bitwise_xor(Operand a, Operand b, Where where) { return symmetric("bitwise_xor", a, b, where); }
Tensor left_shift(Tensor x, Operand count, Where where) { return shifted("left_shift", x, count, where); }
Tensor right_shift(Tensor x, Operand count, Where where) { return shifted("right_shift", x, count, where); }

Tensor div(Operand a, Operand b, Where where) {
  detail::Trace::require("div", where);
  if (b.isNumber() && !a.isNumber() && b.number() == 0)
    raise("div.number", "division by the number 0", {a.tensor()}, where, "divide by another number, or by a tensor");
  return binary("div", a, b, where);
}

Tensor where(Tensor condition, Operand a, Operand b, Where where) {
  detail::Trace::require("where", where);
  TensorType number_type{DType::F32, Shape{}};
  if (!a.isNumber()) number_type.dtype = a.tensor().dtype(where);
  if (a.isNumber() && !b.isNumber()) number_type.dtype = b.tensor().dtype(where);
  Tensor x = a.isNumber() ? numberLike("where", a.number(), number_type, where) : a.tensor();
  Tensor y = b.isNumber() ? numberLike("where", b.number(), number_type, where) : b.tensor();
  if (condition.dtype(where) != DType::Bool) {
    raise("where.C1", fmt::format("the condition is {}, wanted bool", toString(condition.type(where))), {condition, x, y}, where,
          "compare first: less or greater");
  }
  if (x.dtype(where) != y.dtype(where)) {
    raise("where.C2",
          fmt::format("the alternatives are {} and {}, wanted one element type", toString(x.type(where)), toString(y.type(where))),
          {condition, x, y}, where);
  }
  Shape shape = commonShape("where", x, y, where);
  std::optional<Shape> all = graph::broadcastShapes(condition.shape(where), shape);
  if (!all) {
    raise("where.C3", fmt::format("condition {} does not broadcast with {}", toString(condition.shape(where)), toString(shape)),
          {condition, x, y}, where, "extents must be equal or 1, aligned from the last axis");
  }
  return emit("where", {broadcast(condition, *all, where), broadcast(x, *all, where), broadcast(y, *all, where)}, {}, where);
}

#define LS_UNARY(name) \
  Tensor name(Tensor x, Where where) { return emit(#name, {x}, {}, where); }
#include "frontend/ops/unary_ops.def"
#undef LS_UNARY
Tensor square(Tensor x, Where where) { return emit("mul", {x, x}, {}, where); }
Tensor cast(Tensor x, DType dtype, Where where) { return emit("cast", {x}, {{"dtype", dtype}}, where); }
Tensor clamp(Tensor x, double lo, double hi, Where where) { return emit("clamp", {x}, {{"lo", lo}, {"hi", hi}}, where); }
Tensor leaky_relu(Tensor x, double alpha, Where where) { return emit("leaky_relu", {x}, {{"alpha", alpha}}, where); }
Tensor elu(Tensor x, double alpha, Where where) { return emit("elu", {x}, {{"alpha", alpha}}, where); }

Tensor operator+(Operand a, Operand b) { return add(a, b, a.where()); }
Tensor operator-(Operand a, Operand b) { return sub(a, b, a.where()); }
Tensor operator*(Operand a, Operand b) { return mul(a, b, a.where()); }
Tensor operator/(Operand a, Operand b) { return div(a, b, a.where()); }
Tensor operator-(Operand a) { return neg(a.tensor(), a.where()); }
Tensor operator<(Operand a, Operand b) { return less(a, b, a.where()); }
Tensor operator>(Operand a, Operand b) { return greater(a, b, a.where()); }
Tensor operator<=(Operand a, Operand b) { return less_equal(a, b, a.where()); }
Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b, a.where()); }

}  // namespace lockstep
