// SPDX-License-Identifier: Apache-2.0
// Shape and data movement, constants and markers. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/tensor.h"

namespace lockstep {

/// One extent may be -1: it follows from the others.
Tensor reshape(Tensor x, std::vector<int64_t> shape, Where where = Where::current());
/// Axis i of the result is axis permutation[i] of x.
Tensor permute(Tensor x, std::vector<int64_t> permutation, Where where = Where::current());
Tensor swap_axes(Tensor x, int64_t a, int64_t b, Where where = Where::current());
/// Elements start .. start + length - 1 of an axis.
Tensor narrow(Tensor x, int64_t axis, int64_t start, int64_t length, Where where = Where::current());
Tensor broadcast_to(Tensor x, std::vector<int64_t> shape, Where where = Where::current());
/// The sum over the axes that broadcast_to would have added or stretched.
Tensor sum_to_shape(Tensor x, std::vector<int64_t> shape, Where where = Where::current());
/// [..., T, D] -> [..., heads, T, D / heads]
Tensor split_heads(Tensor x, int64_t heads, Where where = Where::current());
/// [..., H, T, d] -> [..., T, H * d]
Tensor merge_heads(Tensor x, Where where = Where::current());

// --- Values and markers -------------------------------------------------------------------------------------------------------------
/// The same value; no gradient flows back through it.
Tensor stop_gradient(Tensor x, Where where = Where::current());
/// 0, 1, ..., count - 1
Tensor arange(int64_t count, DType dtype = DType::I32, Where where = Where::current());
Tensor constant(std::span<const float> data, std::vector<int64_t> shape, Where where = Where::current());
Tensor constant(std::span<const int32_t> data, std::vector<int64_t> shape, Where where = Where::current());
Tensor full(std::vector<int64_t> shape, double value, DType dtype = DType::F32, Where where = Where::current());
Tensor zeros(std::vector<int64_t> shape, DType dtype = DType::F32, Where where = Where::current());
Tensor ones(std::vector<int64_t> shape, DType dtype = DType::F32, Where where = Where::current());
/// Makes the value at this point readable after each step under `name`, which is unique in a trace; returns x.
Tensor capture(const std::string& name, Tensor x, Where where = Where::current());

}  // namespace lockstep
