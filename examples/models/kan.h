// SPDX-License-Identifier: Apache-2.0
// A Kolmogorov-Arnold network: every edge has a function of its own, a cubic B-spline, beside a residual silu.
#pragma once

#include "frontend/nn/nn.h"

namespace lockstep::examples {

/// [B, I] -> [B, O]; splines of 8 basis functions over [-1, 1].
struct KanLayer : Module {
  KanLayer(Module& parent, std::string name, int64_t in, int64_t out);
  Tensor operator()(Tensor x) const;
  Parameter C, Wres;
  int64_t in, out;
};

/// [B, 1] -> [B, 1]
struct Kan : Module {
  Tensor operator()(Tensor x) const { return l2(l1(x)); }
  KanLayer l1{*this, "l1", 1, 4}, l2{*this, "l2", 4, 1};
};

}  // namespace lockstep::examples
