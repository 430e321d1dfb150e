// SPDX-License-Identifier: Apache-2.0
// The operations on tensors. Every function checks shapes and element types at the call and throws Error with the code of the broken
// constraint (docs/errors.md), both shapes, the place of the call and where each operand was made. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "frontend/tensor.h"

namespace lockstep {

using Where = std::source_location;

// --- Element by element; two operands broadcast against each other, one of them may be a number ------------------------------------
// On integer tensors a number must be an integer; division by the number 0 is an error. At a tie of min and max the gradient goes to the
// second operand; a number counts as the second one, so max(x, 0) and max(0, x) have gradient 0 at 0.
Tensor add(Operand a, Operand b, Where where = Where::current());
Tensor sub(Operand a, Operand b, Where where = Where::current());
Tensor mul(Operand a, Operand b, Where where = Where::current());
Tensor div(Operand a, Operand b, Where where = Where::current());
Tensor min(Operand a, Operand b, Where where = Where::current());
Tensor max(Operand a, Operand b, Where where = Where::current());
/// bool results
Tensor less(Operand a, Operand b, Where where = Where::current());
Tensor greater(Operand a, Operand b, Where where = Where::current());
/// condition (bool) ? a : b; all three broadcast.
Tensor where(Tensor condition, Operand a, Operand b, Where where = Where::current());

#define LS_UNARY(name) Tensor name(Tensor x, Where where = Where::current());
#include "frontend/unary_ops.def"  // neg, sqrt, exp, ...
#undef LS_UNARY
Tensor square(Tensor x, Where where = Where::current());

// --- Reductions ---------------------------------------------------------------------------------------------------------------------
struct ReduceOptions {
  bool keep_dims = false;  ///< keep the reduced axis with extent 1
};
/// Over one axis, or over all of them when there is none.
Tensor sum(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
/// f32 only.
Tensor mean(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());

// --- Shape and data movement --------------------------------------------------------------------------------------------------------
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

// --- Linear algebra and look-up -----------------------------------------------------------------------------------------------------
/// [..., M, K] · [K, N], or batched with equal leading axes.
Tensor matmul(Tensor a, Tensor b, Where where = Where::current());
/// Rows of table [V, D] at i32 indices; an index outside gives zeros.
Tensor embedding(Tensor table, Tensor indices, Where where = Where::current());
/// [...] -> f32 [..., depth]; an index outside gives a row of zeros.
Tensor one_hot(Tensor indices, int64_t depth, Where where = Where::current());

// --- Normalisation and losses -------------------------------------------------------------------------------------------------------
Tensor softmax(Tensor x, int64_t axis = -1, Where where = Where::current());
Tensor log_softmax(Tensor x, int64_t axis = -1, Where where = Where::current());
/// Over the last of two equal last axes [..., T, T]: row q sees columns 0..q, the others are 0.
Tensor softmax_causal(Tensor x, Where where = Where::current());
/// [..., T, T]: elements with column > row become `fill`.
Tensor where_causal(Tensor x, double fill, Where where = Where::current());
enum class Reduction : uint8_t { None, Mean, Sum };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::Mean;
};
/// -log_softmax(logits)[target] for logits [..., V] and i32 targets [...].
Tensor cross_entropy(Tensor logits, Tensor targets, CrossEntropyOptions options = {}, Where where = Where::current());
/// (x - mean) / sqrt(variance + eps) * g + b over the last axis, with the biased variance.
Tensor layer_norm(Tensor x, Tensor g, Tensor b, double eps = 1e-5, Where where = Where::current());

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
