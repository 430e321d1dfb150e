// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/language_layer.h"

#include "frontend/ops/ops.h"
#include "ir/support/diagnostic.h"

namespace lockstep::llm {

std::variant<nn::NormOptions, nn::RMSNormOptions> normOptions(const NormConfig& norm) {
  if (norm.rms) return nn::RMSNormOptions{.eps = norm.eps, .around_one = norm.around_one};
  return nn::NormOptions{.eps = norm.eps};
}

namespace {

nn::AttentionLayerOptions attentionOptions(const LanguageConfig& config, const LayerConfig& layer) {
  const AttentionConfig& attention = config.attention;
  nn::AttentionLayerOptions options{.kv_heads = attention.kv_heads,
                                    .head_width = attention.head_width,
                                    .causal = true,
                                    .bias = attention.bias,
                                    .out_bias = attention.out_bias,
                                    .scale = attention.scale * layer.scale,
                                    .soft_cap = attention.soft_cap,
                                    .window = layer.window,
                                    .init = initializerOf(config),
                                    .format = config.weights};
  if (layer.turns && !config.ropes.empty()) {
    const RotaryConfig& rotary = config.ropes[layer.rope];
    // Queries and keys are longer by the amplitude.
    const double longer = rotary.amplitude * rotary.amplitude;
    if (rotary.dims == attention.head_width) {
      options.scale = attention.scale * layer.scale * longer;
    } else {
      options.turned = longer;
    }
    options.rope = RopeOptions{.base = rotary.base, .dims = rotary.dims, .frequencies = rotary.frequencies};
  }
  if (attention.qk_norm) options.qk_norm = nn::RMSNormOptions{.eps = config.norm.eps, .around_one = config.norm.around_one};
  return options;
}

/// Zeros in the rows that begin.
Tensor unlessNew(const Tensor& kept, const Tensor& at, const Where& where) {
  std::vector<int64_t> shape(static_cast<size_t>(kept.rank(where)), 1);
  shape[0] = -1;
  const Tensor goes_on = greater({reshape(at, shape, where), where}, {0, where}, where);
  return lockstep::where(goes_on, {kept, where}, {0.0, where}, where);
}

}  // namespace

std::vector<Tensor*> tensorsOf(LayerState& state) {
  if (auto* cache = std::get_if<nn::KvCache>(&state)) return {&cache->keys, &cache->values};
  auto& mixer = std::get<nn::MixerState>(state);
  return {&mixer.inputs, &mixer.hidden};
}

Initializer initializerOf(const LanguageConfig& config) {
  // Random numbers take a while, and are of no use where values are loaded.
  return config.init_scale > 0 ? init::randn(config.init_scale) : init::zeros();
}

LayerState emptyState(LayerKind kind) {
  if (kind == LayerKind::Attention) return nn::KvCache{};
  return nn::MixerState{};
}

std::vector<graph::TensorType> stateTypes(const LanguageConfig& config, const LayerConfig& layer, int64_t batch, int64_t positions,
                                          DType cache) {
  const MixerConfig& mixer = config.mixer;
  const int64_t inner = mixer.expand * config.width, before = mixer.conv - 1;
  switch (layer.kind) {
    case LayerKind::Attention: {
      const graph::TensorType both{cache, Shape{batch, config.attention.kv_heads, positions, config.attention.head_width}};
      return {both, both};
    }
    case LayerKind::Mamba1:
      return {f32(batch, before, inner), f32(batch, inner, mixer.states)};
    case LayerKind::Mamba2:
      return {f32(batch, before, inner + 2 * mixer.groups * mixer.states),
              f32(batch, inner / mixer.head_width, mixer.head_width, mixer.states)};
  }
  internalError("a kind of layer without a state");
}

LanguageLayer::LanguageLayer(Module& parent, std::string name, const LanguageConfig& config, const LayerConfig& layer, Where where)
    : Module(parent, std::move(name), where), norm1(*this, "norm1", config.width, normOptions(config.norm), where) {
  const MixerConfig& mixer = config.mixer;
  if (layer.kind == LayerKind::Mamba1) {
    mamba1 = std::make_unique<nn::Mamba1>(*this, "mixer", config.width,
                                          nn::Mamba1Options{.states = mixer.states,
                                                            .conv = mixer.conv,
                                                            .expand = mixer.expand,
                                                            .step_rank = mixer.step_rank,
                                                            .bias = mixer.bias,
                                                            .conv_bias = mixer.conv_bias,
                                                            .init = initializerOf(config),
                                                            .format = config.weights},
                                          where);
    return;
  }
  if (layer.kind == LayerKind::Mamba2) {
    std::optional<std::pair<double, double>> limits;
    if (mixer.least_step != 0 || mixer.most_step != kAnyStep) limits.emplace(mixer.least_step, mixer.most_step);
    mamba2 = std::make_unique<nn::Mamba2>(*this, "mixer", config.width,
                                          nn::Mamba2Options{.states = mixer.states,
                                                            .conv = mixer.conv,
                                                            .expand = mixer.expand,
                                                            .head_width = mixer.head_width,
                                                            .groups = mixer.groups,
                                                            .bias = mixer.bias,
                                                            .conv_bias = mixer.conv_bias,
                                                            .eps = config.norm.eps,
                                                            .step_limits = limits,
                                                            .init = initializerOf(config),
                                                            .format = config.weights},
                                          where);
    return;
  }
  const auto norm = [&](const char* its) {
    return std::make_unique<nn::BlockNorm>(*this, its, config.width, normOptions(config.norm), where);
  };
  attn =
      std::make_unique<nn::MultiHeadAttention>(*this, "attn", config.width, config.attention.heads, attentionOptions(config, layer), where);
  if (config.norm.after) after1 = norm("after1");
  norm2 = norm("norm2");
  const FeedForwardConfig& part = config.feed_forward;
  mlp = std::make_unique<nn::FeedForward>(
      *this, "mlp", config.width, part.hidden,
      nn::FeedForwardOptions{
          .activation = part.activation, .gated = part.gated, .bias = part.bias, .init = initializerOf(config), .format = config.weights},
      where);
  if (config.norm.after) after2 = norm("after2");
}

Tensor LanguageLayer::feedForward(const Tensor& x, const Tensor& attended, const Where& where) const {
  const Tensor h = add({x, where}, {after1 ? (*after1)(attended, where) : attended, where}, where);
  const Tensor made = (*mlp)((*norm2)(h, where), where);
  return add({h, where}, {after2 ? (*after2)(made, where) : made, where}, where);
}

Tensor LanguageLayer::operator()(Tensor x, Where where) const {
  const Tensor normed = norm1(x, where);
  if (attn) return feedForward(x, (*attn)(normed, where), where);
  const Tensor mixed = mamba1 ? (*mamba1)(normed, where) : (*mamba2)(normed, where);
  return add({x, where}, {mixed, where}, where);
}

Tensor LanguageLayer::operator()(Tensor x, LayerState& state, const TokenPlaces& places, Where where) const {
  const Tensor normed = norm1(x, where);
  if (attn) return feedForward(x, (*attn)(normed, std::get<nn::KvCache>(state), places.at, where), where);
  auto& kept = std::get<nn::MixerState>(state);
  kept = {unlessNew(kept.inputs, places.at, where), unlessNew(kept.hidden, places.at, where)};
  const Tensor mixed = mamba1 ? (*mamba1)(normed, kept, places.count, where) : (*mamba2)(normed, kept, places.count, where);
  return add({x, where}, {mixed, where}, where);
}

LayerList::LayerList(Module& parent, std::string name, const LanguageConfig& config, Where where) : Module(parent, std::move(name), where) {
  for (size_t i = 0; i < config.layers.size(); ++i)
    items_.push_back(std::make_unique<LanguageLayer>(*this, std::to_string(i), config, config.layers[i], where));
}

const LanguageLayer& LayerList::operator[](ModuleIndex i) const {
  checkIndex(i, items_.size());
  return *items_[i.value()];
}

}  // namespace lockstep::llm
