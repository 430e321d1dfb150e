// SPDX-License-Identifier: Apache-2.0
#include "examples/models/mixers.h"

#include <cmath>

#include "frontend/ops/ops.h"

namespace lockstep::examples {

namespace {

/// U(-1 / sqrt(in), 1 / sqrt(in)), as PyTorch begins. What a scan gives is a product of three projections: where these are small, it is
/// next to nothing, and training takes long to begin.
Initializer ofMatrices() { return init::kaiming_uniform(1 / std::sqrt(3.0)); }

using AnyMixer = decltype(MixerBlock::mixer);

AnyMixer makeMixer(Module& parent, Mixer kind, const MixersShape& shape) {
  switch (kind) {
    case Mixer::Mamba1:
      return std::make_unique<nn::Mamba1>(parent, "mixer", shape.width, nn::Mamba1Options{.states = shape.states, .init = ofMatrices()});
    case Mixer::Mamba2:
      return std::make_unique<nn::Mamba2>(parent, "mixer", shape.width,
                                          nn::Mamba2Options{.states = shape.states, .head_width = shape.head_width, .init = ofMatrices()});
    case Mixer::Attention:
      break;
  }
  return std::make_unique<nn::MultiHeadAttention>(parent, "mixer", shape.width, shape.width / shape.head_width,
                                                  nn::AttentionLayerOptions{.causal = true, .bias = false, .init = ofMatrices()});
}

}  // namespace

MixerBlock::MixerBlock(Module& parent, std::string name, Mixer kind, const MixersShape& shape)
    : Module(parent, std::move(name)), norm(*this, "norm", shape.width), mixer(makeMixer(*this, kind, shape)) {}

Tensor MixerBlock::operator()(Tensor x) const {
  return x + std::visit([&](const auto& chosen) { return (*chosen)(norm(x)); }, mixer);
}

Mixers::Mixers(const MixersShape& shape)
    : tokens(*this, "tokens", shape.vocabulary, shape.width, {.init = init::randn(1)}),
      layers(*this, "layers"),
      norm(*this, "norm", shape.width),
      head(*this, "head", shape.width, shape.vocabulary, {.bias = false, .init = ofMatrices()}) {
  for (const Mixer kind : shape.layers) blocks.push_back(std::make_unique<MixerBlock>(layers, std::to_string(blocks.size()), kind, shape));
}

Tensor Mixers::operator()(Tensor x, int64_t last) const {
  Tensor h = tokens(x);
  for (const std::unique_ptr<MixerBlock>& block : blocks) h = (*block)(h);
  return head(norm(narrow(h, 1, x.extent(1) - last, last)));
}

}  // namespace lockstep::examples
