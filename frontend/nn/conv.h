// SPDX-License-Identifier: Apache-2.0
// Convolution layers. Weights decay as their initializer says, biases never do.
#pragma once

#include <memory>

#include "frontend/ops/conv.h"
#include "frontend/trace/module.h"

namespace lockstep::nn {

struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;  ///< divides both channel counts
  bool bias = true;
  Initializer init = init::randn();
  std::optional<bool> decay = {};  ///< of W
};

/// conv2d of x [B, in, H, W] with W [out, in/groups, kH, kW], plus b [out] for each channel.
/// Errors "conv.groups" when groups do not divide the channels, and those of conv2d.
class Conv2d : public Module {
 public:
  Conv2d(Module& parent, std::string name, int64_t in, int64_t out, Size2 kernel, Conv2dOptions options = {},
         Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Parameter W;
  std::unique_ptr<Parameter> b;  ///< null without bias

 private:
  ConvOptions options_;
};

struct Conv1dLayerOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  Initializer init = init::randn();
  std::optional<bool> decay = {};
};

/// conv1d of x [B, in, T] with W [out, in/groups, k], plus b [out].
class Conv1d : public Module {
 public:
  Conv1d(Module& parent, std::string name, int64_t in, int64_t out, int64_t kernel, Conv1dLayerOptions options = {},
         Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Parameter W;
  std::unique_ptr<Parameter> b;

 private:
  Conv1dOptions options_;
};

struct ConvTranspose2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1, output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Initializer init = init::randn();
  std::optional<bool> decay = {};
};

/// conv_transpose2d of x [B, in, H, W] with W [in, out/groups, kH, kW], plus b [out].
class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(Module& parent, std::string name, int64_t in, int64_t out, Size2 kernel, ConvTranspose2dOptions options = {},
                  Where where = Where::current());
  Tensor operator()(Tensor x, Where where = Where::current()) const;

  Parameter W;
  std::unique_ptr<Parameter> b;

 private:
  ConvTransposeOptions options_;
};

}  // namespace lockstep::nn
