// SPDX-License-Identifier: Apache-2.0
#include "frontend/init.h"

#include <cmath>
#include <numbers>

#include "ir/support/diagnostic.h"

namespace lockstep {

namespace init {
Initializer randn(double scale) { return {Initializer::Kind::Normal, scale, {}}; }
Initializer zeros() { return {Initializer::Kind::Constant, 0, {}}; }
Initializer ones() { return {Initializer::Kind::Constant, 1, {}}; }
Initializer kaiming(double gain) { return {Initializer::Kind::Kaiming, gain, {}}; }
Initializer literal(std::vector<float> values) { return {Initializer::Kind::Literal, 0, std::move(values)}; }
}  // namespace init

bool decaysByDefault(const Initializer& initializer) { return initializer.kind != Initializer::Kind::Constant; }

namespace random {

double normal(uint64_t seed, uint32_t stream, uint64_t element) {
  std::array<uint32_t, 4> words = philox::words({static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), stream, 0},
                                                {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  // 53 random bits each; the first one in (0, 1], so that its logarithm is finite.
  auto bits = [](uint32_t high, uint32_t low) { return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)); };
  double u1 = (bits(words[0], words[1]) + 1) * 0x1p-53, u2 = bits(words[2], words[3]) * 0x1p-53;
  return std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

}  // namespace random

std::vector<float> initialValues(const Initializer& initializer, const graph::Shape& shape, int64_t fan_in, uint64_t seed, uint32_t index) {
  size_t count = static_cast<size_t>(shape.elementCount());
  auto draws = [&](double scale) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * random::normal(seed, index, i));
    return values;
  };
  switch (initializer.kind) {
    case Initializer::Kind::Normal:
      return draws(initializer.value);
    case Initializer::Kind::Constant:
      return std::vector<float>(count, static_cast<float>(initializer.value));
    case Initializer::Kind::Kaiming:
      return draws(initializer.value / std::sqrt(static_cast<double>(fan_in)));
    case Initializer::Kind::Literal:
      return initializer.literal;
  }
  internalError("unknown initializer");
}

}  // namespace lockstep
