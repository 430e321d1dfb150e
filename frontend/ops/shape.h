// SPDX-License-Identifier: Apache-2.0
// Shape and data movement, constants and markers. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// One extent may be -1: it follows from the others.
Tensor reshape(Tensor x, std::vector<int64_t> shape, Where where = Where::current());
/// Axis i of the result is axis permutation[i] of x.
Tensor permute(Tensor x, std::vector<int64_t> permutation, Where where = Where::current());
Tensor swap_axes(Tensor x, int64_t a, int64_t b, Where where = Where::current());
/// Elements start .. start + length - 1 of an axis.
Tensor narrow(Tensor x, int64_t axis, int64_t start, int64_t length, Where where = Where::current());
/// A part of one axis, for slice(). Positions may be negative (from the end); a start or stop beyond the axis is an error.
struct Slice {
  std::optional<int64_t> start = {};  ///< absent: from the first element, or from the last one for a negative step
  std::optional<int64_t> stop = {};   ///< the first element that is left out; absent: none
  int64_t step = 1;                   ///< not 0; a negative one goes towards the start
  bool drops = false;                 ///< the one element at `start`, without the axis
};
/// All of an axis; elements start to stop - 1, every step-th; one position, whose axis goes.
inline Slice whole() { return {}; }
inline Slice range(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {}, int64_t step = 1) { return {start, stop, step}; }
inline Slice at(int64_t position) { return {.start = position, .drops = true}; }
/// One slice for each of the first axes; the others are taken whole: slice(x, {ls::at(0), ls::range(1, -1), ls::range({}, {}, 2)}) is
/// x[0, 1:-1, ::2] in NumPy's notation. Errors: "slice.axes" for more slices than axes, "slice.range" for one that is empty, outside of the
/// axis or of step 0.
Tensor slice(Tensor x, const std::vector<Slice>& slices, Where where = Where::current());
Tensor broadcast_to(Tensor x, std::vector<int64_t> shape, Where where = Where::current());
/// The sum over the axes that broadcast_to would have added or stretched.
Tensor sum_to_shape(Tensor x, std::vector<int64_t> shape, Where where = Where::current());
/// A new axis of extent 1 in front of axis `axis`; -1 appends it.
Tensor expand_dims(Tensor x, int64_t axis, Where where = Where::current());
/// Without an axis of extent 1; Error "squeeze.axis" when its extent is another.
Tensor squeeze(Tensor x, int64_t axis, Where where = Where::current());
/// Axes first .. last become one.
Tensor flatten(Tensor x, int64_t first = 0, int64_t last = -1, Where where = Where::current());
/// The tensors one after the other along an axis; at least one.
Tensor concat(const std::vector<Tensor>& tensors, int64_t axis, Where where = Where::current());
/// Equal shapes along a new axis.
Tensor stack(const std::vector<Tensor>& tensors, int64_t axis = 0, Where where = Where::current());
/// Parts of the given lengths, which add up to the extent of the axis; or parts of one length, where the last may be shorter.
std::vector<Tensor> split(Tensor x, const std::vector<int64_t>& lengths, int64_t axis, Where where = Where::current());
std::vector<Tensor> split(Tensor x, int64_t length, int64_t axis, Where where = Where::current());
/// The order along the axes reversed.
Tensor flip(Tensor x, const std::vector<int64_t>& axes, Where where = Where::current());
/// Elements move by `shift` towards the end of the axis (a negative one: towards the start) and come back at the other end.
Tensor roll(Tensor x, int64_t shift, int64_t axis, Where where = Where::current());
/// Each element `count` times in a row along the axis: 1 1 2 2.
Tensor repeat(Tensor x, int64_t count, int64_t axis, Where where = Where::current());
/// The whole tensor counts[i] times along axis i: 1 2 1 2. Counts are aligned at the last axis.
Tensor tile(Tensor x, std::vector<int64_t> counts, Where where = Where::current());
struct Padding {
  int64_t before = 0, after = 0;
};
/// Elements of one value around the tensor; one pair per axis.
Tensor pad(Tensor x, const std::vector<Padding>& padding, double value = 0, Where where = Where::current());
/// [..., M, N]: elements with column - row > diagonal (tril) or < diagonal (triu) become 0.
Tensor tril(Tensor x, int64_t diagonal = 0, Where where = Where::current());
Tensor triu(Tensor x, int64_t diagonal = 0, Where where = Where::current());
/// The windows that a kernel sees while it slides along the last axes, with zero padding: [..., S...] -> [..., positions..., kernel...].
struct WindowOptions {
  std::vector<int64_t> stride = {}, padding = {}, dilation = {};  ///< empty: 1, 0 and 1 along each axis
};
Tensor windows(Tensor x, const std::vector<int64_t>& kernel, WindowOptions options = {}, Where where = Where::current());
/// [..., T, D] -> [..., heads, T, D / heads]
Tensor split_heads(Tensor x, int64_t heads, Where where = Where::current());
/// [..., H, T, d] -> [..., T, H * d]
Tensor merge_heads(Tensor x, Where where = Where::current());

// --- Values and markers -------------------------------------------------------------------------------------------------------------
/// The same value; no gradient flows back through it.
Tensor stop_gradient(Tensor x, Where where = Where::current());
/// The same value; mixed precision does not round it, neither where a product makes it nor where one reads it. f32.
Tensor keep_f32(Tensor x, Where where = Where::current());
/// 0, 1, ..., count - 1
Tensor arange(int64_t count, DType dtype = DType::I32, Where where = Where::current());
Tensor constant(std::span<const float> data, std::vector<int64_t> shape, Where where = Where::current());
Tensor constant(std::span<const int32_t> data, std::vector<int64_t> shape, Where where = Where::current());
Tensor full(std::vector<int64_t> shape, double value, DType dtype = DType::F32, Where where = Where::current());
Tensor zeros(std::vector<int64_t> shape, DType dtype = DType::F32, Where where = Where::current());
Tensor ones(std::vector<int64_t> shape, DType dtype = DType::F32, Where where = Where::current());
/// Makes the value at this point readable after each step under `name`, which is unique in a trace; returns x.
Tensor capture(const std::string& name, Tensor x, Where where = Where::current());
/// Shows the value at this point after each step or run: a line with the label (or the place of the call), type and elements, which goes to
/// the program's `print` function, by default to stderr. Returns x.
Tensor print(Tensor x, const std::string& label = {}, Where where = Where::current());

}  // namespace lockstep
