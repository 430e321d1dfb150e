// SPDX-License-Identifier: Apache-2.0
#include "tools/models.h"

#include <cmath>
#include <utility>

namespace lockstep::tools {

Mlp::Mlp(const std::vector<int64_t>& widths) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    layers.push_back(std::make_unique<nn::Linear>(*this, "l" + std::to_string(i + 1), widths[i], widths[i + 1]));
  }
}
Tensor Mlp::operator()(Tensor x) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    x = (*layers[i])(x);
    if (i + 1 < layers.size()) x = relu(x);
  }
  return x;
}

Attention::Attention(Module& parent, std::string name, const TransformerShape& shape)
    : Module(parent, std::move(name)),
      q(*this, "q", shape.width, shape.width, {.bias = false}),
      k(*this, "k", shape.width, shape.width, {.bias = false}),
      v(*this, "v", shape.width, shape.width, {.bias = false}),
      o(*this, "o", shape.width, shape.width, {.bias = false}),
      heads(shape.heads),
      width(shape.width) {}
Tensor Attention::operator()(Tensor x) const {
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  const Tensor scores = matmul(split_heads(q(x), heads), swap_axes(split_heads(k(x), heads), -1, -2)) * scale;
  return o(merge_heads(matmul(softmax_causal(scores), split_heads(v(x), heads))));
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
Tensor Block::operator()(Tensor x) const {
  x = x + attn(ln1(x));
  return x + mlp(ln2(x));
}

Transformer::Transformer(const TransformerShape& shape)
    : tok_emb(*this, "tok_emb", {shape.vocabulary, shape.width}),
      pos_emb(*this, "pos_emb", {shape.sequence, shape.width}),
      layers(*this, "layers", static_cast<size_t>(shape.layers), shape),
      lnf(*this, "lnf", shape.width) {}
Tensor Transformer::operator()(Tensor tokens) const {
  Tensor x = embedding(tok_emb, tokens) + narrow(pos_emb, 0, 0, tokens.extent(-1));
  for (const Block& block : layers) x = block(x);
  return matmul(lnf(x), swap_axes(tok_emb, 0, 1));
}

}  // namespace lockstep::tools
