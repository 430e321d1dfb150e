// SPDX-License-Identifier: Apache-2.0
// Matrices in the formats of nn::WeightFormat.
#pragma once

#include <cstdint>
#include <span>

#include "frontend/io/array.h"
#include "frontend/nn/weight.h"

namespace lockstep::llm {

struct QuantizedMatrix {
  io::Array words;   ///< u32 [sums, words]
  io::Array scales;  ///< f32 or bf16 [sums, groups]
};

/// Whole numbers for a matrix [rows, columns], row-major, of finite numbers. Of a group the scale is max |w| / 127 (Int8) or max |w| / 7
/// (Int4), rounded to its type, and an element the whole number nearest to w / scale, ties to even: it differs from w by half a scale at
/// most. Where all are below 2^-123 or so, the scale is 0.
QuantizedMatrix quantise(const nn::WeightFormat& format, nn::SumAxis sums, std::span<const float> values, int64_t rows, int64_t columns);

}  // namespace lockstep::llm
