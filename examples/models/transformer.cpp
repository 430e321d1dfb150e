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
  const int64_t head_width = width / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  Tensor scores = matmul(split_heads(q(x), heads), swap_axes(split_heads(k(x), heads), -1, -2)) * scale;
  Tensor weights = softmax_causal(scores);
  if (!capture_name.empty()) capture(capture_name, weights);
  return o(merge_heads(matmul(weights, split_heads(v(x), heads))));
}

Tensor Attention::operator()(Tensor x, nn::KvCache& cache, Tensor at) const {
  cache.keys = write_rows(cache.keys, split_heads(k(x), heads), at, -2);
  cache.values = write_rows(cache.values, split_heads(v(x), heads), at, -2);
  const Tensor length = at + x.extent(-2);
  return o(merge_heads(scaled_dot_product_attention(split_heads(q(x), heads), cache.keys, cache.values, {.length = length})));
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

Tensor Block::operator()(Tensor x, nn::KvCache& cache, Tensor at) const {
  x = x + attn(ln1(x), cache, at);
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

Transformer::Caches Transformer::caches(int64_t rows, int64_t positions) const {
  Caches made;
  for (const Block& block : layers) {
    const Tensor empty = zeros({rows, block.attn.heads, positions, block.attn.width / block.attn.heads});
    made.push_back({empty, empty});
  }
  return made;
}

Tensor Transformer::operator()(Tensor tokens, Caches& caches, Tensor at) const {
  Tensor x = embedding(tok_emb, tokens) + embedding(pos_emb, arange(tokens.extent(-1)) + at);
  for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x, caches[i], at);
  return matmul(lnf(x), swap_axes(tok_emb, 0, 1));
}

Tensor Transformer::generate(const Tensor& prompt, int64_t count, const Choose& next, std::vector<Tensor> given) const {
  const int64_t rows = prompt.extent(0), begin = prompt.extent(1);
  Caches all = caches(rows, begin + count - 1);
  // The prompt goes in at once, but for its last token, which is the first one of the loop.
  if (begin > 1) (*this)(narrow(prompt, 1, 0, begin - 1), all, zeros({}, DType::I32));
  std::vector<Tensor> carry{narrow(prompt, 1, begin - 1, 1)};
  for (const nn::KvCache& cache : all) carry.insert(carry.end(), {cache.keys, cache.values});
  given.push_back(arange(count) + (begin - 1));
  const auto step = [&](const std::vector<Tensor>& now, const std::vector<Tensor>& row) -> LoopStep {
    Caches inside;
    for (size_t i = 1; i < now.size(); i += 2) inside.push_back({now[i], now[i + 1]});
    const Tensor logits = squeeze((*this)(now[0], inside, row.back()), 1);
    const Tensor chosen = expand_dims(next(logits, row), 1);
    LoopStep made{.carry = {chosen}, .results = {chosen}};
    for (const nn::KvCache& cache : inside) made.carry.insert(made.carry.end(), {cache.keys, cache.values});
    return made;
  };
  return permute(squeeze(scan(step, carry, given).results[0], 2), {1, 0});
}

}  // namespace lockstep::examples
