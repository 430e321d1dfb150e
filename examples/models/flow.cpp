// SPDX-License-Identifier: Apache-2.0
#include "examples/models/flow.h"

#include "frontend/ops/ops.h"

namespace lockstep::examples {

Tensor Flow::operator()(Tensor x, Tensor time) const {
  Tensor t = reshape(t_proj(t_emb(time)), {-1, 32, 1, 1});
  return c4(relu(c3(relu(c2(relu(c1(x)) + t)))));
}

Tensor Flow::loss(Tensor pictures, Tensor time) const {
  Tensor noise = normal(pictures.shape().extents());
  Tensor velocity = noise - pictures;
  Tensor share = reshape(cast(time, DType::F32) * 0.01, {-1, 1, 1, 1});
  return mean(square((*this)(pictures + share * velocity, time) - velocity));
}

}  // namespace lockstep::examples
