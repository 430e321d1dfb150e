// SPDX-License-Identifier: Apache-2.0
#include "examples/models/cnn.h"

#include "frontend/ops.h"

namespace lockstep::examples {

Convolution::Convolution(Module& parent, std::string name, int64_t in, int64_t out)
    : Module(parent, std::move(name)),
      W(*this, "W", {out, in, 3, 3}, init::randn(), {.decay = true, .fan_in = in * 9}),
      b(*this, "b", {out}, init::zeros()) {}

Tensor Convolution::operator()(Tensor x) const {
  Tensor y = conv2d(x, W, {.padding = 1});
  return y + reshape(b, {-1, 1, 1});
}

Cnn::Cnn(const CnnShape& shape)
    : conv1(*this, "conv1", 1, shape.channels1),
      conv2(*this, "conv2", shape.channels1, shape.channels2),
      fc1(*this, "fc1", shape.channels2 * 7 * 7, shape.hidden),
      fc2(*this, "fc2", shape.hidden, 10) {}

Tensor Cnn::operator()(Tensor x) const {
  x = max_pool2d(relu(conv1(x)), 2);
  x = max_pool2d(relu(conv2(x)), 2);
  return fc2(relu(fc1(flatten(x, 1))));
}

}  // namespace lockstep::examples
