// SPDX-License-Identifier: Apache-2.0
// Linear maps, look-up and dropout.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/nn/weight.h"
#include "frontend/trace/module.h"
#include "frontend/trace/tensor.h"
#include "ir/support/where.h"

namespace lockstep::nn {

struct LinearOptions {
  bool bias = true;
  Initializer init = init::randn();
  std::optional<bool> decay = {};    ///< of W; the bias never decays
  WeightFormat format = {};          ///< of W
  bool keeps_sums_together = false;  ///< of W, as in WeightOptions
};

/// x · W + b with W[in, out] and b[out], over the last axis of x.
class Linear : public Module {
 public:
  Linear(Module& parent, std::string name, int64_t in, int64_t out, LinearOptions options = {}, Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Weight W;
  std::unique_ptr<Parameter> b;  ///< null without bias
};

struct EmbeddingOptions {
  Initializer init = init::randn();
  std::optional<bool> decay = {};
  WeightFormat format = {};
};

/// Rows of W[count, width] at i32 indices.
class Embedding : public Module {
 public:
  Embedding(Module& parent, std::string name, int64_t count, int64_t width, EmbeddingOptions options = {}, Where where = Where::current());
  Tensor operator()(Tensor indices, Where where = Where::current()) const;

  Weight W;
};

/// In training each element of x becomes 0 with probability p and the others are divided by 1 - p (Srivastava et al., 2014); x itself in
/// forward functions. It has no parameters, so it is a plain member.
class Dropout {
 public:
  /// Error "dropout.probability" unless 0 <= p < 1.
  explicit Dropout(double p, Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

 private:
  double p_;
};

}  // namespace lockstep::nn
