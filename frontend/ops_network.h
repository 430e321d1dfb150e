// SPDX-License-Identifier: Apache-2.0
// Linear algebra, look-up and normalisation. Axes may be negative (from the end).
#pragma once

#include <cstdint>

#include "frontend/tensor.h"

namespace lockstep {

/// [..., M, K] · [K, N], or batched with equal leading axes.
Tensor matmul(Tensor a, Tensor b, Where where = Where::current());
/// Rows of table [V, D] at i32 indices; an index outside gives zeros.
Tensor embedding(Tensor table, Tensor indices, Where where = Where::current());
/// [...] -> f32 [..., depth]; an index outside gives a row of zeros.
Tensor one_hot(Tensor indices, int64_t depth, Where where = Where::current());

// --- Normalisation ------------------------------------------------------------------------------------------------------------------
Tensor softmax(Tensor x, int64_t axis = -1, Where where = Where::current());
Tensor log_softmax(Tensor x, int64_t axis = -1, Where where = Where::current());
/// Over the last of two equal last axes [..., T, T]: row q sees columns 0..q, the others are 0.
Tensor softmax_causal(Tensor x, Where where = Where::current());
/// [..., T, T]: elements with column > row become `fill`.
Tensor where_causal(Tensor x, double fill, Where where = Where::current());
/// (x - mean) / sqrt(variance + eps) * g + b over the last axis, with the biased variance.
Tensor layer_norm(Tensor x, Tensor g, Tensor b, double eps = 1e-5, Where where = Where::current());

}  // namespace lockstep
