// SPDX-License-Identifier: Apache-2.0
// Normalisation layers. Gains g start at 1, biases b at 0.
#pragma once

#include <memory>

#include "frontend/trace/module.h"

namespace lockstep::nn {

struct NormOptions {
  double eps = 1e-5;
  bool decay = false;  ///< of g and b
};

/// (x - mean) / √(variance + eps) · g + b over the last axis of `width` elements, with the biased variance.
class LayerNorm : public Module {
 public:
  LayerNorm(Module& parent, std::string name, int64_t width, NormOptions options = {}, Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Parameter g, b;

 private:
  double eps_;
};

struct RMSNormOptions {
  double eps = 1e-6;
  bool decay = false;
  bool around_one = false;  ///< times 1 + g, with g from 0, so that decay draws the gain to 1 (Gemma)
};

/// x / √(mean(x²) + eps) · g over the last axis of `width` elements.
class RMSNorm : public Module {
 public:
  RMSNorm(Module& parent, std::string name, int64_t width, RMSNormOptions options = {}, Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  [[nodiscard]] bool around_one() const { return around_one_; }

  Parameter g;

 private:
  double eps_;
  bool around_one_;
};

/// Each of `groups` groups of channels of x [B, channels, ...] normalised like a layer, with g and b [channels].
class GroupNorm : public Module {
 public:
  GroupNorm(Module& parent, std::string name, int64_t groups, int64_t channels, NormOptions options = {}, Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Parameter g, b;

 private:
  int64_t groups_;
  double eps_;
};

struct BatchNormOptions {
  double momentum = 0.1;  ///< share of the new batch in the running statistics, in [0, 1]
  double eps = 1e-5;
  bool decay = false;
};

/// Each channel of x [B, channels] or [B, channels, ...] normalised over the batch and the other axes, with g and b [channels]. In training
/// by the batch's own mean and biased variance, and running = (1 - momentum) · running + momentum · batch with the unbiased variance; in
/// forward functions by the running ones (Ioffe and Szegedy, 2015). Error "batch_norm.batch" when a channel has one element in training.
class BatchNorm : public Module {
 public:
  BatchNorm(Module& parent, std::string name, int64_t channels, BatchNormOptions options = {}, Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Parameter g, b;
  Buffer running_mean, running_var;  ///< start at 0 and 1

 private:
  double momentum_, eps_;
};

}  // namespace lockstep::nn
