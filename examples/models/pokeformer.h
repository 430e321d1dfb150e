// SPDX-License-Identifier: Apache-2.0
// A small language model in the manner of Llama: RMS norms, rotary positions, no biases in attention, a tied head.
#pragma once

#include "examples/models/transformer.h"

namespace lockstep::examples {

struct RotaryBlock : Module {
  RotaryBlock(Module& parent, std::string name, int64_t width, int64_t heads);
  Tensor operator()(Tensor x) const;
  Parameter g1;
  nn::Linear q, k, v, o;
  Parameter g2;
  FeedForward mlp;
  int64_t heads;
};

/// tokens i32 [B, T] below 27 -> logits [B, T, 27]
struct Pokeformer : Module {
  Tensor operator()(Tensor tokens) const;
  Parameter tok_emb{*this, "tok_emb", {27, 64}};
  ModuleList<RotaryBlock> layers{*this, "layers", 2, 64, 4};
  Parameter gf{*this, "gf", {64}, init::ones()};
};

}  // namespace lockstep::examples
