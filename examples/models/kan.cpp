// SPDX-License-Identifier: Apache-2.0
#include "examples/models/kan.h"

#include "frontend/ops/ops.h"

namespace lockstep::examples {

namespace {

constexpr int64_t kBasis = 8;

/// Cubic B-splines centred at 0, 1, ... of (x + 1) · 3.5: [B, I] -> [B, I, 8].
Tensor splineBasis(Tensor x) {
  Tensor u = expand_dims((x + 1) * 3.5, -1) - arange(kBasis, DType::F32);
  Tensor distance = abs(u);
  Tensor inner = distance * distance * (distance * 0.5 - 1) + 2.0 / 3;
  Tensor tail = max(2 - distance, 0);
  return where(distance < 1, inner, tail * tail * tail * (1.0 / 6));
}

}  // namespace

KanLayer::KanLayer(Module& parent, std::string name, int64_t inputs, int64_t outputs)
    : Module(parent, std::move(name)),
      C(*this, "C", {outputs, inputs, kBasis}, init::randn(0.1)),
      Wres(*this, "Wres", {inputs, outputs}),
      in(inputs),
      out(outputs) {}

Tensor KanLayer::operator()(Tensor x) const {
  Tensor basis = reshape(splineBasis(x), {-1, in * kBasis});
  return matmul(basis, swap_axes(reshape(C, {out, in * kBasis}), 0, 1)) + matmul(silu(x), Wres);
}

}  // namespace lockstep::examples
