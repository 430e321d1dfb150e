// SPDX-License-Identifier: Apache-2.0
#include "examples/models/transformer.h"

#include <cmath>

#include "frontend/ops/ops.h"

namespace lockstep::examples {

Attention::Attention(Module& parent, std::string name, const TransformerShape& shape)
    : Module(parent, std::move(name)),
      q(*this, "q", shape.width, shape.width, {.bias = false}),
      k(*this, "k", shape.width, shape.width, {.bias = false}),
      v(*this, "v", shape.width, shape.width, {.bias = false}),
      o(*this, "o", shape.width, shape.width, {.bias = false}),
      heads(shape.heads),
      width(shape.width) {}

Tensor Attention::operator()(Tensor x, const std::string& capture_name) const {
  double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  Tensor scores = matmul(split_heads(q(x), heads), swap_axes(split_heads(k(x), heads), -1, -2)) * scale;
  Tensor weights = softmax_causal(scores);
  if (!capture_name.empty()) capture(capture_name, weights);
  return o(merge_heads(matmul(weights, split_heads(v(x), heads))));
}

FeedForward::FeedForward(Module& parent, std::string name, int64_t width)
    : Module(parent, std::move(name)), up(*this, "up", width, 4 * width), down(*this, "down", 4 * width, width) {}

Tensor FeedForward::operator()(Tensor x) const { return down(relu(up(x))); }

Block::Block(Module& parent, std::string name, const TransformerShape& shape)
    : Module(parent, std::move(name)),
      ln1(*this, "ln1", shape.width),
      attn(*this, "attn", shape),
      ln2(*this, "ln2", shape.width),
      mlp(*this, "mlp", shape.width) {}

Tensor Block::operator()(Tensor x, const std::string& capture_name) const {
  x = x + attn(ln1(x), capture_name);
  return x + mlp(ln2(x));
}

Transformer::Transformer(const TransformerShape& shape)
    : tok_emb(*this, "tok_emb", {shape.vocabulary, shape.width}),
      pos_emb(*this, "pos_emb", {shape.sequence, shape.width}),
      layers(*this, "layers", static_cast<size_t>(shape.layers), shape),
      lnf(*this, "lnf", shape.width) {}

Tensor Transformer::operator()(Tensor tokens, bool captures) const {
  Tensor x = embedding(tok_emb, tokens) + narrow(pos_emb, 0, 0, tokens.extent(-1));
  for (size_t i = 0; i < layers.size(); ++i) {
    x = layers[i](x, captures ? "attn." + std::to_string(i) : "");
    if (captures) capture("residual." + std::to_string(i), x);
  }
  return matmul(lnf(x), swap_axes(tok_emb, 0, 1));
}

}  // namespace lockstep::examples
