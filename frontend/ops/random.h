// SPDX-License-Identifier: Apache-2.0
// Random numbers inside a program. They are counter-based (Philox 4x32-10), keyed by the trainer's seed, the step, the op's number in the
// trace and the element: equal on every device, different at every step, and independent of how the work is split.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// f32 in (low, high), ends excluded before rounding. Error "uniform.range" unless low < high and both are finite.
Tensor uniform(std::vector<int64_t> shape, double low = 0, double high = 1, Where where = Where::current());
/// f32, normal with this mean and standard deviation. Error "normal.scale" for a negative or non-finite one.
Tensor normal(std::vector<int64_t> shape, double mean = 0, double stddev = 1, Where where = Where::current());
/// Elements become 0 with probability p, the others are divided by 1 - p. p = 0 gives x itself.
Tensor dropout(Tensor x, double p, Where where = Where::current());
/// A class along an axis of f32 logits, drawn with the probabilities of their softmax: i32, the axis dropped.
Tensor categorical(Tensor logits, int64_t axis = -1, Where where = Where::current());

}  // namespace lockstep
