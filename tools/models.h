// SPDX-License-Identifier: Apache-2.0
// The networks of the samples and of the golden training runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/module.h"
#include "frontend/nn.h"
#include "frontend/ops.h"

namespace lockstep::tools {

/// Linear layers l1, l2, ... with ReLU between them.
struct Mlp : Module {
  /// widths[0] inputs, widths.back() outputs.
  explicit Mlp(const std::vector<int64_t>& widths);
  Tensor operator()(Tensor x) const;
  std::vector<std::unique_ptr<nn::Linear>> layers;
};

struct TransformerShape {
  int64_t vocabulary = 12;
  int64_t width = 64;
  int64_t layers = 3;
  int64_t heads = 4;
  int64_t sequence = 9;  ///< rows of the position table; the network sees one token fewer
};

struct Attention : Module {
  Attention(Module& parent, std::string name, const TransformerShape& shape);
  Tensor operator()(Tensor x) const;
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
  Tensor operator()(Tensor x) const;
  nn::LayerNorm ln1;
  Attention attn;
  nn::LayerNorm ln2;
  FeedForward mlp;
};

/// A causal language model with learned positions and a tied head: tokens [B, T] -> logits [B, T, vocabulary].
struct Transformer : Module {
  explicit Transformer(const TransformerShape& shape);
  Tensor operator()(Tensor tokens) const;
  Parameter tok_emb, pos_emb;
  ModuleList<Block> layers;
  nn::LayerNorm lnf;
};

}  // namespace lockstep::tools
