// SPDX-License-Identifier: Apache-2.0
// What the random ops share. An element's words depend on (seed, step, salt, element index) alone, so they are the same on every backend
// and for every way to split the work: Philox 4x32-10 under the key (seed), with the counter (element, salt with its top bit set, step).
#pragma once

#include <array>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

/// The constraints and attributes of every random op.
inline constexpr ConstantList<Constraint> kRandomConstraints{{"C1", "the key is u32[4]: seed and step, each as low and high word"},
                                                             {"C2", "every extent is at least 1 and the element count fits in 32 bits"},
                                                             {"C3", "the salt is at least 0 and below 2^31"}};
inline constexpr ConstantList<AttributeDef> kRandomAttributes{
    {"shape", AttributeKind::Integers, "shape of the result"},
    {"salt", AttributeKind::Integer, "tells the random ops of one program apart"}};
/// C1: the key is u32[4] (seed low, seed high, step low, step high); C2: the shape is valid; C3: the salt is in [0, 2^31). Result: f32.
Result<std::vector<TensorType>> inferRandom(std::string_view op, const InferContext& context);

/// The four words of the element that is emitted.
std::array<kernel::ValueId, 4> emitRandomWords(ElementEmitter& emitter);
/// A word as a number in (0, 1): odd multiples of 2^-24, exact in f32.
kernel::ValueId emitUniform(kernel::Builder& builder, kernel::ValueId word);

/// Result i = function(words of element i).
std::vector<Tensor> evaluateRandom(const EvaluateContext& context, double (*function)(const std::array<uint32_t, 4>&));
double uniformOf(uint32_t word);

std::vector<OpCase> randomCases(double tolerance, std::string_view reason);

inline constexpr std::string_view kNoRandomGradient = "random numbers do not depend on any tensor";

}  // namespace lockstep::graph
