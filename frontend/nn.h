// SPDX-License-Identifier: Apache-2.0
// Layers: modules with the usual parameters. A layer is called like a function inside a loss or forward function.
#pragma once

#include <memory>
#include <optional>
#include <source_location>
#include <string>

#include "frontend/module.h"
#include "frontend/tensor.h"

namespace lockstep::nn {

struct LinearOptions {
  bool bias = true;
  Initializer init = init::randn();
  std::optional<bool> decay = {};  ///< of W; the bias never decays
};

/// x · W + b with W[in, out] and b[out], over the last axis of x.
class Linear : public Module {
 public:
  Linear(Module& parent, std::string name, int64_t in, int64_t out, LinearOptions options = {},
         std::source_location where = std::source_location::current());
  Tensor operator()(Tensor x, std::source_location where = std::source_location::current()) const;

  Parameter W;
  std::unique_ptr<Parameter> b;  ///< null without bias
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool decay = false;
};

/// (x - mean) / sqrt(variance + eps) * g + b over the last axis of `width` elements.
class LayerNorm : public Module {
 public:
  LayerNorm(Module& parent, std::string name, int64_t width, LayerNormOptions options = {},
            std::source_location where = std::source_location::current());
  Tensor operator()(Tensor x, std::source_location where = std::source_location::current()) const;

  Parameter g, b;

 private:
  double eps_;
};

struct EmbeddingOptions {
  Initializer init = init::randn();
  std::optional<bool> decay = {};
};

/// Rows of W[count, width] at i32 indices.
class Embedding : public Module {
 public:
  Embedding(Module& parent, std::string name, int64_t count, int64_t width, EmbeddingOptions options = {},
            std::source_location where = std::source_location::current());
  Tensor operator()(Tensor indices, std::source_location where = std::source_location::current()) const;

  Parameter W;
};

}  // namespace lockstep::nn
