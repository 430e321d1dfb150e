// SPDX-License-Identifier: Apache-2.0
// Linear algebra, look-up and normalisation. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// [..., M, K] · [..., K, N]; leading axes broadcast.
Tensor matmul(Tensor a, Tensor b, Where where = Where::current());
/// Sums of products by labels, one letter per axis: einsum("bij,bjk->bik", {a, b}). A label that is not in the result is summed over;
/// without an arrow the result has the labels that appear once, in alphabetical order; "..." stands for leading axes, equal in all operands
/// that have it. Several tensors are multiplied pair by pair from the left. A label twice in one operand (a diagonal) is refused:
/// "einsum.C4".
Tensor einsum(const std::string& equation, const std::vector<Tensor>& tensors, Where where = Where::current());
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
/// x / sqrt(mean(x^2) + eps) * g over the last axis (Zhang and Sennrich 2019).
Tensor rms_norm(Tensor x, Tensor g, double eps = 1e-6, Where where = Where::current());
/// layer_norm of each of `groups` groups of channels of x [B, C, ...], with g [C] and b [C] (Wu and He 2018).
Tensor group_norm(Tensor x, Tensor g, Tensor b, int64_t groups, double eps = 1e-5, Where where = Where::current());
struct BatchNormResult {
  Tensor y;
  Tensor mean, variance;  ///< [C], of this batch; the variance is biased: divided by the number of elements
};
/// Training: each channel of x [B, C, ...] normalised by its own mean and variance, times g [C], plus b [C] (Ioffe and Szegedy 2015).
/// Running statistics follow from the results: m mean + (1 - m) running.
BatchNormResult batch_norm(Tensor x, Tensor g, Tensor b, double eps = 1e-5, Where where = Where::current());
/// Inference: the same with given statistics [C].
Tensor batch_norm(Tensor x, Tensor g, Tensor b, Tensor mean, Tensor variance, double eps = 1e-5, Where where = Where::current());

// --- Attention ----------------------------------------------------------------------------------------------------------------------
enum class RopeLayout : uint8_t {
  Half,        ///< pairs (i, i + dims / 2)
  Interleaved  ///< pairs (2 i, 2 i + 1)
};
struct RopeOptions {
  double base = 10000;
  int64_t offset = 0;  ///< position of the first row; added to positions that are given
  RopeLayout layout = RopeLayout::Half;
  int64_t dims = 0;  ///< columns that turn, even; 0: all
  /// Radians per position of each pair, dims / 2 of them, in place of base^(-2 i / dims): scaled positions (Llama 3). Error
  /// "rope.frequencies" for another number of them, or one that is not finite.
  std::vector<double> frequencies = {};
};
/// Rotary positions for x [..., T, D]: pair i of row t turns by (t + offset) base^(-2 i / dims) (Su and others 2021).
Tensor rope(Tensor x, const RopeOptions& options = {}, Where where = Where::current());
/// The same with row t at positions[t], i32 [T], or with those of each entry of the first axis, i32 [B, T]: in cached decoding one program
/// serves all positions. Angles are f32 here, so far from 0 they are as wrong as position · frequency is rounded (relative 6e-8).
Tensor rope(Tensor x, Tensor positions, const RopeOptions& options = {}, Where where = Where::current());
struct AttentionOptions {
  bool causal = false;               ///< query t sees keys 0 .. t + offset only
  int64_t offset = 0;                ///< position of the first query among the keys (cached decoding)
  std::optional<double> scale = {};  ///< of the scores; none: 1 / sqrt(D)
  /// f32, added to the scaled scores and broadcast to them, [..., H, T, S]: 0 where a key is seen, -infinity or a large negative number
  /// where not, or a bias of positions (PyTorch's attn_mask). Without any visible key a row is NaN.
  std::optional<Tensor> mask = {};
  /// i32, a scalar or one per sequence ([...] of q): so many of the S keys and values count, and query t of T is at position length - T + t
  /// and sees the keys up to there. Others are not read, so one program with room for S positions takes the time of those that are there.
  /// Without any visible key a row is NaN; a length above S counts as S. Not together with causal, offset or mask.
  std::optional<Tensor> length = {};
  /// With causal or length: the query at position i sees keys j with i - j < window alone; 0: all up to its own. All of k
  /// and v are read, but for up to 16 queries with length.
  int64_t window = 0;
  /// Scores s become cap tanh(s / cap), scaled but not masked yet (Gemma 2); 0: as they are. Above 0 the scores are kept in memory,
  /// but for up to 16 queries with length.
  double soft_cap = 0;
};
/// softmax(scale q k^T + mask) v for q [..., H, T, D], k [..., Hkv, S, D], v [..., Hkv, S, E]: [..., H, T, E]. Hkv divides H: each head of
/// k and v serves H / Hkv neighbouring heads of q (grouped queries). Error "attention.options" for options that do not go together.
Tensor scaled_dot_product_attention(Tensor q, Tensor k, Tensor v, AttentionOptions options = {}, Where where = Where::current());

}  // namespace lockstep
