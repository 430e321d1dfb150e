// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::emit;
using detail::normaliseAxis;
using detail::raise;

Tensor reshape(Tensor x, std::vector<int64_t> shape, Where where) {
  detail::Trace::require("reshape", where);
  int64_t elements = x.shape(where).elementCount(), known = 1, holes = 0;
  for (int64_t extent : shape) {
    if (extent == -1) {
      ++holes;
    } else {
      known *= extent;
    }
  }
  if (holes > 1) raise("reshape.C2", fmt::format("{} extents of [{}] are -1", holes, fmt::join(shape, ",")), {x}, where, "keep one -1");
  if (holes == 1) {
    if (known < 1 || elements % known != 0) {
      raise("reshape.C2",
            fmt::format("the {} elements of {} do not divide into [{}]", elements, toString(x.shape(where)), fmt::join(shape, ",")), {x},
            where);
    }
    std::replace(shape.begin(), shape.end(), int64_t{-1}, elements / known);
  }
  if (Shape(shape) == x.shape(where)) return x;
  return emit("reshape", {x}, {{"shape", std::move(shape)}}, where);
}

Tensor permute(Tensor x, std::vector<int64_t> permutation, Where where) {
  return emit("permute", {x}, {{"permutation", std::move(permutation)}}, where);
}

Tensor swap_axes(Tensor x, int64_t a, int64_t b, Where where) {
  detail::Trace::require("swap_axes", where);
  a = normaliseAxis("swap_axes", a, x, where);
  b = normaliseAxis("swap_axes", b, x, where);
  if (a == b) return x;
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank(where)));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[static_cast<size_t>(a)], permutation[static_cast<size_t>(b)]);
  return permute(x, std::move(permutation), where);
}

Tensor narrow(Tensor x, int64_t axis, int64_t start, int64_t length, Where where) {
  detail::Trace::require("narrow", where);
  return emit("narrow", {x}, {{"axis", normaliseAxis("narrow", axis, x, where)}, {"start", start}, {"length", length}}, where);
}

Tensor broadcast_to(Tensor x, std::vector<int64_t> shape, Where where) {
  return emit("broadcast_to", {x}, {{"shape", std::move(shape)}}, where);
}

Tensor sum_to_shape(Tensor x, std::vector<int64_t> shape, Where where) {
  return emit("sum_to_shape", {x}, {{"shape", std::move(shape)}}, where);
}

Tensor split_heads(Tensor x, int64_t heads, Where where) {
  detail::Trace::require("split_heads", where);
  std::vector<int64_t> extents = x.shape(where).extents();
  if (extents.size() < 2)
    raise("split_heads.C1", fmt::format("{} has fewer than two axes", toString(x.shape(where))), {x}, where, "give [..., T, D]");
  int64_t width = extents.back();
  if (heads < 1 || width % heads != 0) {
    raise("split_heads.C2", fmt::format("{} heads do not divide {} columns", heads, width), {x}, where,
          "choose a number of heads that divides the last axis");
  }
  extents.back() = heads;
  extents.push_back(width / heads);
  return swap_axes(reshape(x, std::move(extents), where), -2, -3, where);
}

Tensor merge_heads(Tensor x, Where where) {
  detail::Trace::require("merge_heads", where);
  if (x.rank(where) < 3)
    raise("merge_heads.C1", fmt::format("{} has fewer than three axes", toString(x.shape(where))), {x}, where, "give [..., H, T, d]");
  Tensor swapped = swap_axes(x, -2, -3, where);
  std::vector<int64_t> extents = swapped.shape(where).extents();
  int64_t width = extents.back();
  extents.pop_back();
  extents.back() *= width;
  return reshape(swapped, std::move(extents), where);
}

Tensor stop_gradient(Tensor x, Where where) { return emit("stop_gradient", {x}, {}, where); }
Tensor keep_f32(Tensor x, Where where) { return emit("keep_f32", {x}, {}, where); }

Tensor arange(int64_t count, DType dtype, Where where) { return emit("arange", {}, {{"n", count}, {"dtype", dtype}}, where); }

Tensor full(std::vector<int64_t> shape, double value, DType dtype, Where where) {
  detail::Trace::require("full", where);
  if (dtype == DType::Bool) {
    if (value != 0 && value != 1) raise("full.number", fmt::format("the number {} is not a bool", value), {}, where, "give 0 or 1");
    return emit("constant", {}, {{"value", value}, {"dtype", dtype}, {"shape", std::move(shape)}}, where);
  }
  return detail::numberLike("full", value, {dtype, Shape(shape)}, where);
}
Tensor zeros(std::vector<int64_t> shape, DType dtype, Where where) { return full(std::move(shape), 0, dtype, where); }
Tensor ones(std::vector<int64_t> shape, DType dtype, Where where) { return full(std::move(shape), 1, dtype, where); }

namespace {

template <class T>
Tensor dense(std::span<const T> data, std::vector<int64_t> shape, DType dtype, const Where& where) {
  detail::Trace& trace = detail::Trace::require("constant", where);
  graph::Constant constant{{dtype, Shape(shape)}, {data.begin(), data.end()}};
  bool positive = std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent >= 1; });
  if (!positive || constant.type.shape.elementCount() != static_cast<int64_t>(data.size())) {
    raise("constant.length", fmt::format("{} values do not fill {}", data.size(), toString(constant.type.shape)), {}, where,
          "give as many values as the shape has elements");
  }
  graph::ConstantId id(trace.builder().graph().constants.size());
  trace.builder().mutableGraph().constants.push_back(std::move(constant));
  return emit("dense", {}, {{"data", id}}, where);
}

}  // namespace

Tensor constant(std::span<const float> data, std::vector<int64_t> shape, Where where) {
  return dense(data, std::move(shape), DType::F32, where);
}
Tensor constant(std::span<const int32_t> data, std::vector<int64_t> shape, Where where) {
  return dense(data, std::move(shape), DType::I32, where);
}

Tensor print(Tensor x, const std::string& label, Where where) {
  detail::Trace::require("print", where).print(label, x, where);
  return x;
}

Tensor capture(const std::string& name, Tensor x, Where where) {
  detail::Trace::require("capture", where).capture(name, x, where);
  return x;
}

}  // namespace lockstep
