// SPDX-License-Identifier: Apache-2.0
#include "examples/models/cnn.h"

#include "frontend/ops/ops.h"

namespace lockstep::examples {

Cnn::Cnn(const CnnShape& shape)
    : conv1(*this, "conv1", 1, shape.channels1, 3, {.padding = 1}),
      conv2(*this, "conv2", shape.channels1, shape.channels2, 3, {.padding = 1}),
      fc1(*this, "fc1", shape.channels2 * 7 * 7, shape.hidden),
      fc2(*this, "fc2", shape.hidden, 10) {}

Tensor Cnn::operator()(Tensor x) const {
  x = max_pool2d(relu(conv1(x)), 2);
  x = max_pool2d(relu(conv2(x)), 2);
  return fc2(relu(fc1(flatten(x, 1))));
}

}  // namespace lockstep::examples
