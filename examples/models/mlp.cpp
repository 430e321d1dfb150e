// SPDX-License-Identifier: Apache-2.0
#include "examples/models/mlp.h"

#include <cmath>
#include <numbers>
#include <string>

#include "frontend/ops/ops.h"

namespace lockstep::examples {

namespace {
constexpr uint32_t kDataStream = 1u << 31;  // apart from the streams of parameters, which count from 0
}

Mlp::Mlp(const std::vector<int64_t>& widths) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    layers.push_back(std::make_unique<nn::Linear>(*this, "l" + std::to_string(i + 1), widths[i], widths[i + 1]));
  }
}

Tensor Mlp::operator()(Tensor x) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    x = (*layers[i])(x);
    if (i + 1 < layers.size()) x = relu(x);
  }
  return x;
}

Tensor DigitMlp::operator()(Tensor x) const { return l2(drop(relu(l1(x)))); }

SineBatch sineBatch(uint64_t seed, uint64_t step, size_t count) {
  SineBatch batch;
  for (size_t i = 0; i < count; ++i) {
    auto words = random::words({static_cast<uint32_t>(i), static_cast<uint32_t>(step), kDataStream, 0},
                               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    double x = (static_cast<double>(words[0]) * 0x1p-32 * 2 - 1) * std::numbers::pi;
    batch.x.push_back(static_cast<float>(x));
    batch.y.push_back(static_cast<float>(std::sin(x)));
  }
  return batch;
}

}  // namespace lockstep::examples
