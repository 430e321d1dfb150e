// SPDX-License-Identifier: Apache-2.0
#include "examples/models/nerf.h"

#include <array>
#include <numbers>

#include "frontend/ops/ops.h"

namespace lockstep::examples {

Tensor Nerf::operator()(Tensor coordinates) const {
  std::array<float, 8> frequencies{};
  for (size_t k = 0; k < frequencies.size(); ++k) frequencies[k] = static_cast<float>(std::numbers::pi) * static_cast<float>(1 << k);
  Tensor angles = flatten(expand_dims(coordinates, -1) * constant(frequencies, {8}), 1);
  Tensor x = concat({sin(angles), cos(angles)}, -1);
  return sigmoid(l4(relu(l3(relu(l2(relu(l1(x))))))));
}

}  // namespace lockstep::examples
