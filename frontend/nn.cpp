// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn.h"

#include "frontend/ops.h"

namespace lockstep::nn {

Linear::Linear(Module& parent, std::string name, int64_t in, int64_t out, LinearOptions options, std::source_location where)
    : Module(parent, std::move(name), where), W(*this, "W", {in, out}, std::move(options.init), {.decay = options.decay}, where) {
  if (options.bias) b = std::make_unique<Parameter>(*this, "b", std::vector<int64_t>{out}, init::zeros(), ParameterOptions{}, where);
}

Tensor Linear::operator()(Tensor x, std::source_location where) const {
  Tensor y = matmul(x, W, where);
  return b ? add(y, *b, where) : y;
}

LayerNorm::LayerNorm(Module& parent, std::string name, int64_t width, LayerNormOptions options, std::source_location where)
    : Module(parent, std::move(name), where),
      g(*this, "g", {width}, init::ones(), {.decay = options.decay}, where),
      b(*this, "b", {width}, init::zeros(), {.decay = options.decay}, where),
      eps_(options.eps) {}

Tensor LayerNorm::operator()(Tensor x, std::source_location where) const { return layer_norm(x, g, b, eps_, where); }

Embedding::Embedding(Module& parent, std::string name, int64_t count, int64_t width, EmbeddingOptions options, std::source_location where)
    : Module(parent, std::move(name), where), W(*this, "W", {count, width}, std::move(options.init), {.decay = options.decay}, where) {}

Tensor Embedding::operator()(Tensor indices, std::source_location where) const { return embedding(W, indices, where); }

}  // namespace lockstep::nn
