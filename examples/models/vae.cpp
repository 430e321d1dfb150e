// SPDX-License-Identifier: Apache-2.0
#include "examples/models/vae.h"

#include "frontend/ops/ops.h"

namespace lockstep::examples {

Vae::Posterior Vae::encode(Tensor pictures) const {
  Tensor x = relu(e2(relu(e1(pictures))));
  return {mu(x), logvar(x)};
}

Tensor Vae::decode(Tensor latent) const { return sigmoid(d3(relu(d2(relu(d1(latent)))))); }

Tensor Vae::loss(Tensor pictures) const {
  Posterior q = encode(pictures);
  Tensor latent = q.mean + exp(q.log_variance * 0.5) * normal(q.mean.shape().extents());
  Tensor error = sum(square(decode(latent) - pictures));
  Tensor divergence = sum(1 + q.log_variance - square(q.mean) - exp(q.log_variance)) * -0.5;
  return (error + divergence) * (1.0 / static_cast<double>(pictures.extent(0)));
}

}  // namespace lockstep::examples
