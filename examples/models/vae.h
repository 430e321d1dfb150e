// SPDX-License-Identifier: Apache-2.0
// A variational autoencoder of flat pictures (Kingma and Welling, 2014).
#pragma once

#include "frontend/nn/nn.h"

namespace lockstep::examples {

/// Pictures [B, 784] in [0, 1]; eight latent numbers.
struct Vae : Module {
  struct Posterior {
    Tensor mean, log_variance;  ///< [B, 8]
  };
  Posterior encode(Tensor pictures) const;
  Tensor decode(Tensor latent) const;
  /// Squared error plus the divergence from the standard normal distribution, each summed over a picture and averaged over the batch.
  Tensor loss(Tensor pictures) const;

  nn::Linear e1{*this, "e1", 784, 256}, e2{*this, "e2", 256, 256}, mu{*this, "mu", 256, 8}, logvar{*this, "logvar", 256, 8};
  nn::Linear d1{*this, "d1", 8, 256}, d2{*this, "d2", 256, 256}, d3{*this, "d3", 256, 784};
};

}  // namespace lockstep::examples
