// SPDX-License-Identifier: Apache-2.0
// Attention and the usual block around it.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/ops/network.h"

namespace lockstep::nn {

struct AttentionLayerOptions {
  int64_t kv_heads = 0;                  ///< heads of keys and values, which divide `heads` (grouped queries); 0: as many as `heads`
  int64_t head_width = 0;                ///< 0: width / heads
  bool causal = false;                   ///< position t sees positions 0 .. t
  bool bias = true;                      ///< of the projections
  std::optional<bool> out_bias = {};     ///< of o alone; none: as the others
  std::optional<RopeOptions> rope = {};  ///< rotary positions of queries and keys
  /// RMSNorm of each head of queries and of keys, before they turn: gains q_norm.g and k_norm.g [head_width] (Henry et al., 2020).
  std::optional<RMSNormOptions> qk_norm = {};
  // As of scaled_dot_product_attention.
  std::optional<double> scale = {};
  double soft_cap = 0;
  double turned = 1;   ///< times what the columns that turn make of the scores
  int64_t window = 0;  ///< needs causal
  double dropout = 0;  ///< of the result, in training
  Initializer init = init::randn();
  std::optional<bool> decay = {};
  WeightFormat format = {};  ///< of matrices
};

/// Keys and values of the positions that came before, [..., kv_heads, positions, head_width] each. As a carry of a loop (scan) it is
/// written in its place, a row per step.
struct KvCache {
  Tensor keys, values;
};

/// o(attention(q(x), k(memory), v(memory))) with heads side by side in the last axis (Vaswani et al., 2017; grouped queries: Ainslie et
/// al., 2023). Errors "attention.heads" when heads do not divide width, or kv_heads heads, "attention.options" for a window without causal.
class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(Module& parent, std::string name, int64_t width, int64_t heads, const AttentionLayerOptions& options = {},
                     Where where = Where::current());
  /// x [..., T, width] with itself.
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  /// Queries x [..., T, width] on memory [..., S, width].
  Tensor operator()(Tensor x, Tensor memory, Where where = Where::current()) const;

  /// Queries x [..., T, width] at the positions `at` (i32[]), at + 1, ... on themselves and what came before: their keys and values are
  /// written into the cache, and each sees the positions up to its own. As the layer alone with .causal over all positions. For x
  /// [B, T, width], `at` may be i32[B], a position for each sequence: of prompts of different lengths, each goes on where it ends.
  Tensor operator()(Tensor x, KvCache& cache, Tensor at, Where where = Where::current()) const;
  /// An empty cache of so many positions, for x with `leading` in front of its last two axes. In bf16 or f16 it takes half the memory, and
  /// keys and values are rounded to that; heads are of even width then.
  [[nodiscard]] KvCache cache(std::vector<int64_t> leading, int64_t positions, DType dtype = DType::F32,
                              Where where = Where::current()) const;

  Linear q, k, v, o;
  std::unique_ptr<RMSNorm> q_norm, k_norm;  ///< null without qk_norm

 private:
  struct Heads {
    Tensor queries, keys, values;  ///< [..., heads, T, head_width]
  };
  /// Projected, normed, and turned to `places`, or to 0, 1, ... without them.
  [[nodiscard]] Heads project(const Tensor& x, const Tensor& memory, const Tensor* places, const Where& where) const;
  [[nodiscard]] AttentionOptions options() const;
  int64_t heads_, kv_heads_;
  bool causal_;
  std::optional<RopeOptions> rope_;
  std::optional<double> scale_;
  double soft_cap_, turned_;
  int64_t window_;
  Dropout dropout_;
};

enum class Activation : uint8_t { Relu, Gelu, Silu, GeluTanh, Tanh };

struct FeedForwardOptions {
  Activation activation = Activation::Gelu;
  bool gated = false;  ///< down(activation(gate(x)) · up(x)) (Shazeer, 2020)
  bool bias = true;
  Initializer init = init::randn();
  std::optional<bool> decay = {};
  WeightFormat format = {};  ///< of matrices
};

/// down(activation(up(x))): [..., width] -> [..., hidden] -> [..., width].
class FeedForward : public Module {
 public:
  FeedForward(Module& parent, std::string name, int64_t width, int64_t hidden, const FeedForwardOptions& options = {},
              Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  std::unique_ptr<Linear> gate;  ///< null unless gated
  Linear up, down;

 private:
  Activation activation_;
};

/// LayerNorm or RMSNorm, under the name that it is given.
struct BlockNorm {
  BlockNorm(Module& parent, const std::string& name, int64_t width, bool rms, const Where& where);
  BlockNorm(Module& parent, const std::string& name, int64_t width, const std::variant<NormOptions, RMSNormOptions>& options,
            const Where& where);
  Tensor operator()(const Tensor& x, const Where& where) const;

  std::unique_ptr<LayerNorm> layer;  ///< the other one is null
  std::unique_ptr<RMSNorm> rms;
};

struct TransformerBlockOptions {
  int64_t hidden = 0;     ///< of the feed-forward part; 0: 4 width
  bool rms_norm = false;  ///< RMSNorm in place of LayerNorm
  double dropout = 0;     ///< of what each residual connection adds, in training
  AttentionLayerOptions attention = {.causal = true};
  FeedForwardOptions feed_forward = {};
};

/// Pre-norm: x + attn(ln1(x)), then x + mlp(ln2(x)), for x [..., T, width].
class TransformerBlock : public Module {
 public:
  TransformerBlock(Module& parent, std::string name, int64_t width, int64_t heads, const TransformerBlockOptions& options = {},
                   Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  /// As MultiHeadAttention with a cache.
  Tensor operator()(Tensor x, KvCache& cache, Tensor at, Where where = Where::current()) const;

  BlockNorm ln1;
  MultiHeadAttention attn;
  BlockNorm ln2;
  FeedForward mlp;

 private:
  Dropout dropout_;
};

}  // namespace lockstep::nn
