// SPDX-License-Identifier: Apache-2.0
// How a parameter starts. Random values are counter-based (Philox 4x32-10), keyed by the seed, the parameter's index in its model and
// the element: the same on every machine, and a parameter's values do not depend on the shapes of the others.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/type.h"
#include "ir/support/philox.h"

namespace lockstep {

struct Initializer {
  enum class Kind : uint8_t { Normal, Constant, Kaiming, Literal };
  Kind kind = Kind::Normal;
  double value = 0.02;         ///< Normal: standard deviation; Constant: the value; Kaiming: the gain
  std::vector<float> literal;  ///< Literal: the values, row-major
};

namespace init {
/// N(0, scale²)
Initializer randn(double scale = 0.02);
Initializer zeros();
Initializer ones();
/// N(0, gain² / fan_in); the layer says what its fan-in is.
Initializer kaiming(double gain = 1.4142135623730951);
/// The values themselves; as many as the parameter has elements.
Initializer literal(std::vector<float> values);
}  // namespace init

/// Whether weight decay applies when the declaration does not say: to random and literal values, not to constants.
bool decaysByDefault(const Initializer& initializer);

/// The initial values of parameter number `index` of a model.
std::vector<float> initialValues(const Initializer& initializer, const graph::Shape& shape, int64_t fan_in, uint64_t seed, uint32_t index);

namespace random {
/// One block of Philox 4x32-10 (Salmon et al., 2011).
using lockstep::philox::words;
/// A standard normal number by Box and Muller, in f64. `stream` tells uses of one seed apart.
double normal(uint64_t seed, uint32_t stream, uint64_t element);
}  // namespace random

}  // namespace lockstep
