// SPDX-License-Identifier: Apache-2.0
// How a parameter starts. Random values are counter-based (Philox 4x32-10), keyed by the seed, the parameter's index in its model and
// the element: the same on every machine, and a parameter's values do not depend on the shapes of the others.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/type.h"
#include "ir/support/philox.h"
#include "ir/support/where.h"

namespace lockstep {

struct Initializer {
  enum class Kind : uint8_t { Normal, TruncatedNormal, Uniform, LogOfUniform, BeforeSoftplus, Constant, Orthogonal, Literal };
  /// What a random kind is scaled by, beside `scale`.
  enum class Fan : uint8_t { None, In, Mean };  ///< 1, 1/√fan_in, 1/√((fan_in + fan_out) / 2)
  Kind kind = Kind::Normal;
  double scale = 0.02;        ///< Normal, TruncatedNormal: standard deviation; Orthogonal: gain; Constant: the value
  double low = -1, high = 1;  ///< Uniform and what is made of it: ends; TruncatedNormal: ends in standard deviations
  Fan fan = Fan::None;
  std::vector<float> literal;  ///< Literal: the values, row-major
};

/// What one output element sums over, and how many output elements one input element reaches. The layer knows.
struct Fans {
  int64_t in = 1, out = 1;
};

// Errors "init.number" for a number that is not finite or a negative scale, "init.range" unless low < high.
namespace init {
/// N(0, scale²)
Initializer randn(double scale = 0.02, Where where = Where::current());
/// N(0, scale²) without what lies more than `limit` standard deviations from 0; drawn again until it fits.
Initializer truncated_normal(double scale = 0.02, double limit = 2, Where where = Where::current());
/// U(low, high)
Initializer uniform(double low, double high, Where where = Where::current());
/// log u with u from U(low, high), 0 < low: rates of decay that are kept as logarithms (Mamba-2's A_log).
Initializer log_of_uniform(double low, double high, Where where = Where::current());
/// x with softplus(x) from low to high, 0 < low, where the logarithm of that is uniform: biases of step sizes (Mamba's dt).
Initializer before_softplus(double low, double high, Where where = Where::current());
Initializer constant(double value, Where where = Where::current());
Initializer zeros();
Initializer ones();
/// N(0, gain² / fan_in) (He et al., 2015)
Initializer kaiming_normal(double gain = 1.4142135623730951, Where where = Where::current());
/// U(-a, a) with a = gain · √(3 / fan_in)
Initializer kaiming_uniform(double gain = 1.4142135623730951, Where where = Where::current());
/// N(0, gain² · 2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)
Initializer xavier_normal(double gain = 1, Where where = Where::current());
/// U(-a, a) with a = gain · √(6 / (fan_in + fan_out))
Initializer xavier_uniform(double gain = 1, Where where = Where::current());
/// gain · Q with orthonormal rows or columns, whichever are fewer, of the parameter as [first extent, others] (Saxe et al., 2014). Needs
/// two axes or more.
Initializer orthogonal(double gain = 1, Where where = Where::current());
/// The values themselves; as many as the parameter has elements.
Initializer literal(std::vector<float> values);
}  // namespace init

/// Whether weight decay applies when the declaration does not say: to random and literal values, not to constants.
bool decaysByDefault(const Initializer& initializer);

/// The initial values of parameter number `index` of a model.
std::vector<float> initialValues(const Initializer& initializer, const graph::Shape& shape, Fans fans, uint64_t seed, uint32_t index);

namespace random {
/// One block of Philox 4x32-10 (Salmon et al., 2011).
using lockstep::philox::words;
/// A standard normal number by Box and Muller, in f64. `stream` tells uses of one seed apart, `attempt` draws of one element.
double normal(uint64_t seed, uint32_t stream, uint64_t element, uint32_t attempt = 0);
/// In [0, 1), 53 random bits.
double uniform(uint64_t seed, uint32_t stream, uint64_t element);
}  // namespace random

}  // namespace lockstep
