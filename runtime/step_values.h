// SPDX-License-Identifier: Apache-2.0
// Private to the library: the small inputs that a program itself asks for, beside the batch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/io/array.h"
#include "ir/graph/type.h"

namespace lockstep::detail {

/// Learning rate, key of the random numbers. Raw words, as a step sees them.
struct StepValue {
  std::string_view name;
  graph::TensorType type;
  std::vector<uint32_t> words;
};
using StepValues = std::vector<StepValue>;
StepValue stepValue(std::string_view name, std::span<const double> values);  ///< as f32[n]
/// The key of the random ops: a stream apart for each `seed` and each `run` of it.
StepValue randomKey(uint64_t seed, uint64_t run);
io::Array toArray(const StepValue& value);

/// Which run it is. A step has several with accumulated gradients.
struct RunNumbers {
  uint64_t step = 1;  ///< 1-based
  double rate = 0;    ///< the learning rate of the step
  bool last = true;   ///< of the step
  uint64_t seed = 0;
  uint64_t run = 1;  ///< counted over all steps, 1-based
};

}  // namespace lockstep::detail
