// SPDX-License-Identifier: Apache-2.0
// A small causal language model with learned positions and a tied head.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/nn/nn.h"
#include "frontend/ops/loop.h"

namespace lockstep::examples {

struct TransformerShape {
  int64_t vocabulary = 12;
  int64_t width = 64;
  int64_t layers = 3;
  int64_t heads = 4;
  int64_t sequence = 9;  ///< rows of the position table; the network sees one token fewer
};

struct Attention : Module {
  Attention(Module& parent, std::string name, const TransformerShape& shape);
  /// `capture_name` not empty: the attention weights [B, H, T, T] become a capture.
  Tensor operator()(Tensor x, const std::string& capture_name = {}) const;
  /// Of the positions from `at` (i32[]) on, on themselves and those in the cache, where their keys and values go.
  Tensor operator()(Tensor x, nn::KvCache& cache, Tensor at) const;
  nn::Linear q, k, v, o;
  int64_t heads, width;
};

struct FeedForward : Module {
  FeedForward(Module& parent, std::string name, int64_t width);
  Tensor operator()(Tensor x) const;
  nn::Linear up, down;
};

/// Pre-norm: attention and feed-forward, each around a residual connection.
struct Block : Module {
  Block(Module& parent, std::string name, const TransformerShape& shape);
  Tensor operator()(Tensor x, const std::string& capture_name = {}) const;
  Tensor operator()(Tensor x, nn::KvCache& cache, Tensor at) const;
  nn::LayerNorm ln1;
  Attention attn;
  nn::LayerNorm ln2;
  FeedForward mlp;
};

/// tokens [B, T] -> logits [B, T, vocabulary]
struct Transformer : Module {
  explicit Transformer(const TransformerShape& shape = {});
  /// With captures: attn.<layer> and residual.<layer>.
  Tensor operator()(Tensor tokens, bool captures = false) const;

  /// Keys and values of each layer.
  using Caches = std::vector<nn::KvCache>;
  [[nodiscard]] Caches caches(int64_t rows, int64_t positions) const;
  /// The logits of tokens [B, T] at the positions from `at` (i32[]) on, as the network alone gives them for all positions so far.
  Tensor operator()(Tensor tokens, Caches& caches, Tensor at) const;
  /// `count` tokens [B, count] after a prompt [B, P], all in one program. next(logits [B, vocabulary], row) chooses each of them, i32 [B];
  /// `row` is that of `given` [count, ...] for this token, where there is one.
  using Choose = std::function<Tensor(const Tensor& logits, const std::vector<Tensor>& row)>;
  [[nodiscard]] Tensor generate(const Tensor& prompt, int64_t count, const Choose& next, std::vector<Tensor> given = {}) const;

  Parameter tok_emb, pos_emb;
  ModuleList<Block> layers;
  nn::LayerNorm lnf;
};

}  // namespace lockstep::examples
