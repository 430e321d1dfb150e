// SPDX-License-Identifier: Apache-2.0
// A model of sequences whose layers are a list: state-space models and attention in any order. Nothing else tells it where a token stands.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "frontend/nn/nn.h"

namespace lockstep::examples {

enum class Mixer : uint8_t { Mamba1, Mamba2, Attention };

struct MixersShape {
  int64_t vocabulary = 17;
  int64_t width = 32;
  int64_t states = 16;      ///< of a channel (Mamba1) or a head (Mamba2)
  int64_t head_width = 16;  ///< of Mamba2 and attention
  std::vector<Mixer> layers = {Mixer::Mamba1, Mixer::Mamba1};
};

/// x + mixer(norm(x)).
struct MixerBlock : Module {
  MixerBlock(Module& parent, std::string name, Mixer kind, const MixersShape& shape);
  Tensor operator()(Tensor x) const;
  nn::RMSNorm norm;
  std::variant<std::unique_ptr<nn::Mamba1>, std::unique_ptr<nn::Mamba2>, std::unique_ptr<nn::MultiHeadAttention>> mixer;
};

/// tokens [B, L] -> logits [B, last, vocabulary] at the last positions
struct Mixers : Module {
  explicit Mixers(const MixersShape& shape = {});
  Tensor operator()(Tensor x, int64_t last) const;

  nn::Embedding tokens;
  Module layers;
  std::vector<std::unique_ptr<MixerBlock>> blocks;  ///< layers.0, layers.1, ...
  nn::RMSNorm norm;
  nn::Linear head;
};

}  // namespace lockstep::examples
