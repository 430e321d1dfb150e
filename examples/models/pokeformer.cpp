// SPDX-License-Identifier: Apache-2.0
#include "examples/models/pokeformer.h"

#include "frontend/ops/ops.h"

namespace lockstep::examples {

RotaryBlock::RotaryBlock(Module& parent, std::string name, int64_t width, int64_t head_count)
    : Module(parent, std::move(name)),
      g1(*this, "g1", {width}, init::ones()),
      q(*this, "q", width, width, {.bias = false}),
      k(*this, "k", width, width, {.bias = false}),
      v(*this, "v", width, width, {.bias = false}),
      o(*this, "o", width, width, {.bias = false}),
      g2(*this, "g2", {width}, init::ones()),
      mlp(*this, "mlp", width),
      heads(head_count) {}

Tensor RotaryBlock::operator()(Tensor x) const {
  Tensor y = rms_norm(x, g1);
  Tensor attended = scaled_dot_product_attention(rope(split_heads(q(y), heads)), rope(split_heads(k(y), heads)), split_heads(v(y), heads),
                                                 {.causal = true});
  x = x + o(merge_heads(attended));
  return x + mlp(rms_norm(x, g2));
}

Tensor Pokeformer::operator()(Tensor tokens) const {
  Tensor x = embedding(tok_emb, tokens);
  for (const RotaryBlock& block : layers) x = block(x);
  return matmul(rms_norm(x, gf), swap_axes(tok_emb, 0, 1));
}

}  // namespace lockstep::examples
