// SPDX-License-Identifier: Apache-2.0
// Joining, cutting, repeating and reordering: what ops_shape.h offers beyond single ops of the IR.
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

namespace {

using List = std::vector<int64_t>;

/// An axis of a tensor with one axis more than x.
int64_t newAxis(std::string_view op, int64_t axis, const Tensor& x, const Where& where) {
  int64_t rank = x.rank(where) + 1;
  if (axis < -rank || axis >= rank)
    raise(fmt::format("{}.axis", op), fmt::format("axis {} is outside a result of rank {}", axis, rank), {x}, where,
          "axes count from 0, and -1 is the last one");
  return axis < 0 ? axis + rank : axis;
}

/// x repeated along a new axis in front of `axis`, which then joins it (or, after it, makes each element repeat).
Tensor repeated(const Tensor& x, int64_t axis, int64_t count, bool each, const Where& where) {
  List extents = x.shape(where).extents(), ones = extents, whole = extents;
  auto at = static_cast<ptrdiff_t>(axis);
  ones.insert(ones.begin() + at + (each ? 1 : 0), 1);
  whole.insert(whole.begin() + at + (each ? 1 : 0), count);
  extents[static_cast<size_t>(axis)] *= count;
  return reshape(broadcast_to(reshape(x, ones, where), whole, where), extents, where);
}

/// [..., M, N]: where column - row > diagonal, as bool.
Tensor aboveDiagonal(std::string_view op, const Tensor& x, int64_t diagonal, const Where& where) {
  detail::Trace::require(op, where);
  if (x.rank(where) < 2)
    raise(fmt::format("{}.C1", op), fmt::format("{} has fewer than two axes", toString(x.shape(where))), {x}, where,
          "give a matrix, or several: [..., M, N]");
  Tensor row = reshape(arange(x.extent(-2, where), DType::I32, where), {-1, 1}, where);
  Tensor column = arange(x.extent(-1, where), DType::I32, where);
  return greater({column, where}, add({row, where}, {diagonal, where}, where), where);
}

}  // namespace

Tensor expand_dims(Tensor x, int64_t axis, Where where) {
  detail::Trace::require("expand_dims", where);
  List extents = x.shape(where).extents();
  extents.insert(extents.begin() + static_cast<ptrdiff_t>(newAxis("expand_dims", axis, x, where)), 1);
  return reshape(x, std::move(extents), where);
}

Tensor squeeze(Tensor x, int64_t axis, Where where) {
  detail::Trace::require("squeeze", where);
  axis = normaliseAxis("squeeze", axis, x, where);
  List extents = x.shape(where).extents();
  if (extents[static_cast<size_t>(axis)] != 1)
    raise("squeeze.axis", fmt::format("axis {} of {} has not the extent 1", axis, toString(x.shape(where))), {x}, where,
          "only an axis of extent 1 can go; flatten and reshape join others");
  extents.erase(extents.begin() + static_cast<ptrdiff_t>(axis));
  return reshape(x, std::move(extents), where);
}

Tensor flatten(Tensor x, int64_t first, int64_t last, Where where) {
  detail::Trace::require("flatten", where);
  first = normaliseAxis("flatten", first, x, where);
  last = normaliseAxis("flatten", last, x, where);
  if (first > last)
    raise("flatten.axis", fmt::format("the first axis {} is after the last one {}", first, last), {x}, where, "give the first axis first");
  List extents = x.shape(where).extents();
  auto begin = extents.begin() + static_cast<ptrdiff_t>(first);
  for (int64_t axis = first; axis < last; ++axis) {
    begin[1] *= begin[0];
    begin = extents.erase(begin);
  }
  return reshape(x, std::move(extents), where);
}

Tensor concat(const std::vector<Tensor>& tensors, int64_t axis, Where where) {
  detail::Trace& trace = detail::Trace::require("concat", where);
  if (tensors.empty()) raise("concat.C1", "there is no tensor", {}, where, "give at least one tensor");
  axis = normaliseAxis("concat", axis, tensors.front(), where);
  if (tensors.size() == 1) return tensors.front();
  return trace.emitAll("concat", tensors, {{"axis", axis}}, where).front();
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t axis, Where where) {
  detail::Trace::require("stack", where);
  if (tensors.empty()) raise("stack.C1", "there is no tensor", {}, where, "give at least one tensor");
  axis = newAxis("stack", axis, tensors.front(), where);
  std::vector<Tensor> expanded;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape(where) != tensors.front().shape(where)) {
      raise("stack.C2", fmt::format("tensors have shapes {} and {}", toString(tensors.front().shape(where)), toString(tensor.shape(where))),
            {tensors.front(), tensor}, where, "stack makes a new axis of equal shapes; concat joins along one that is there");
    }
    expanded.push_back(expand_dims(tensor, axis, where));
  }
  return concat(expanded, axis, where);
}

std::vector<Tensor> split(Tensor x, const List& lengths, int64_t axis, Where where) {
  detail::Trace::require("split", where);
  axis = normaliseAxis("split", axis, x, where);
  int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), extent = x.extent(axis, where);
  if (total != extent) {
    raise("split.C1", fmt::format("lengths [{}] add up to {} and axis {} has {} elements", fmt::join(lengths, ","), total, axis, extent),
          {x}, where, "give lengths that add up to the axis");
  }
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t length : lengths) {
    parts.push_back(narrow(x, axis, start, length, where));
    start += length;
  }
  return parts;
}

std::vector<Tensor> split(Tensor x, int64_t length, int64_t axis, Where where) {
  detail::Trace::require("split", where);
  int64_t extent = x.extent(normaliseAxis("split", axis, x, where), where);
  if (length < 1) raise("split.C2", fmt::format("the length {} is not at least 1", length), {x}, where, "give a length of 1 or more");
  List lengths;
  for (int64_t rest = extent; rest > 0; rest -= length) lengths.push_back(std::min(length, rest));
  return split(x, lengths, axis, where);
}

namespace {

/// Elements `first`, first + step, ... of an axis, `count` of them; `step` is positive.
Tensor everyNth(Tensor x, int64_t axis, int64_t first, int64_t count, int64_t step, const Where& where) {
  const int64_t length = (count - 1) * step + 1;
  if (first != 0 || length != x.extent(axis, where)) x = narrow(x, axis, first, length, where);
  if (step == 1 || count == 1) return x;
  // Filled up to whole steps, the first element of each is taken.
  std::vector<Padding> padding(static_cast<size_t>(x.rank(where)));
  padding[static_cast<size_t>(axis)].after = step - 1;
  List extents = x.shape(where).extents();
  extents[static_cast<size_t>(axis)] = count;
  List cut = extents;
  cut.insert(cut.begin() + axis + 1, step);
  const Tensor steps = reshape(pad(x, padding, 0, where), cut, where);
  return reshape(narrow(steps, axis + 1, 0, 1, where), extents, where);
}

/// One axis of x by its slice; an axis that drops keeps extent 1.
Tensor sliced(Tensor x, int64_t axis, const Slice& slice, const Where& where) {
  const int64_t extent = x.extent(axis, where);
  const auto refuse = [&](const std::string& why, std::string remedy) {
    raise("slice.range", fmt::format("axis {} of {} has {}", axis, toString(x.shape(where)), why), {x}, where, std::move(remedy));
  };
  if (slice.step == 0) refuse("a slice of step 0", "give a positive or a negative step");
  const bool backwards = slice.step < 0;
  const int64_t step = std::abs(slice.step);
  const auto fromEnd = [&](int64_t position) { return position < 0 ? position + extent : position; };
  const int64_t start = slice.start ? fromEnd(*slice.start) : backwards ? extent - 1 : 0;
  if (start < 0 || start >= extent) refuse(fmt::format("no element {}", *slice.start), "positions count from 0, and -1 is the last one");
  if (slice.drops) return narrow(x, axis, start, 1, where);
  const int64_t stop = slice.stop ? fromEnd(*slice.stop) : backwards ? -1 : extent;
  if (stop < -1 || stop > extent || (slice.stop && stop < 0))
    refuse(fmt::format("no position {}", *slice.stop), fmt::format("a slice stops at {} at most; leave the stop out for all", extent));
  const int64_t distance = backwards ? start - stop : stop - start;
  if (distance <= 0) refuse("no element in this slice", "a tensor has at least one element along each axis");
  const int64_t count = (distance + step - 1) / step;
  if (!backwards) return everyNth(x, axis, start, count, step, where);
  const Tensor part = everyNth(x, axis, start - (count - 1) * step, count, step, where);
  return count == 1 ? part : flip(part, {axis}, where);
}

}  // namespace

Tensor slice(Tensor x, const std::vector<Slice>& slices, Where where) {
  detail::Trace::require("slice", where);
  if (static_cast<int64_t>(slices.size()) > x.rank(where)) {
    raise("slice.axes", fmt::format("{} slices are given for {}", slices.size(), toString(x.shape(where))), {x}, where,
          "give at most one slice for each axis");
  }
  List kept;
  for (size_t axis = 0; axis < slices.size(); ++axis) x = sliced(x, static_cast<int64_t>(axis), slices[axis], where);
  const List extents = x.shape(where).extents();
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (axis >= slices.size() || !slices[axis].drops) kept.push_back(extents[axis]);
  }
  return kept.size() == extents.size() ? x : reshape(x, kept, where);
}

Tensor flip(Tensor x, const List& axes, Where where) {
  detail::Trace::require("flip", where);
  List sorted;
  for (int64_t axis : axes) sorted.push_back(normaliseAxis("flip", axis, x, where));
  std::sort(sorted.begin(), sorted.end());
  return emit("flip", {x}, {{"axes", std::move(sorted)}}, where);
}

Tensor roll(Tensor x, int64_t shift, int64_t axis, Where where) {
  detail::Trace::require("roll", where);
  axis = normaliseAxis("roll", axis, x, where);
  int64_t extent = x.extent(axis, where);
  return emit("roll", {x}, {{"axis", axis}, {"shift", (shift % extent + extent) % extent}}, where);
}

Tensor repeat(Tensor x, int64_t count, int64_t axis, Where where) {
  detail::Trace::require("repeat", where);
  axis = normaliseAxis("repeat", axis, x, where);
  if (count < 1) raise("repeat.C1", fmt::format("the count {} is not at least 1", count), {x}, where, "give a count of 1 or more");
  return repeated(x, axis, count, true, where);
}

Tensor tile(Tensor x, List counts, Where where) {
  detail::Trace::require("tile", where);
  if (std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count < 1; }))
    raise("tile.C1", fmt::format("counts [{}] are not all at least 1", fmt::join(counts, ",")), {x}, where, "give counts of 1 or more");
  while (x.rank(where) < static_cast<int64_t>(counts.size())) x = expand_dims(x, 0, where);
  int64_t missing = x.rank(where) - static_cast<int64_t>(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 1) x = repeated(x, missing + static_cast<int64_t>(i), counts[i], false, where);
  }
  return x;
}

Tensor pad(Tensor x, const std::vector<Padding>& padding, double value, Where where) {
  detail::Trace::require("pad", where);
  if (static_cast<int64_t>(padding.size()) != x.rank(where)) {
    raise("pad.axes", fmt::format("there are {} pairs for {}", padding.size(), toString(x.shape(where))), {x}, where,
          "give one pair of counts an axis");
  }
  for (size_t axis = 0; axis < padding.size(); ++axis) {
    if (padding[axis].before == 0 && padding[axis].after == 0) continue;
    x = emit("pad", {x},
             {{"axis", static_cast<int64_t>(axis)}, {"before", padding[axis].before}, {"after", padding[axis].after}, {"value", value}},
             where);
  }
  return x;
}

Tensor tril(Tensor x, int64_t diagonal, Where where) {
  Tensor above = aboveDiagonal("tril", x, diagonal, where);
  return lockstep::where(above, {0, where}, {x, where}, where);
}

Tensor triu(Tensor x, int64_t diagonal, Where where) {
  Tensor kept = aboveDiagonal("triu", x, diagonal - 1, where);
  return lockstep::where(kept, {x, where}, {0, where}, where);
}

Tensor windows(Tensor x, const List& kernel, WindowOptions options, Where where) {
  size_t n = kernel.size();
  auto orElse = [n](List list, int64_t number) { return list.empty() ? List(n, number) : std::move(list); };
  List padding = orElse(std::move(options.padding), 0);
  return emit("windows", {x},
              {{"kernel", kernel},
               {"stride", orElse(std::move(options.stride), 1)},
               {"padding_low", padding},
               {"padding_high", padding},
               {"dilation", orElse(std::move(options.dilation), 1)},
               {"input_dilation", List(n, 1)},
               {"fill", 0.0}},
              where);
}

}  // namespace lockstep
