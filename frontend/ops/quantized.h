// SPDX-License-Identifier: Apache-2.0
// Weights with a few bits each. A product with such a weight reads the few bits: what these functions give is computed where it is read.
#pragma once

#include <cstdint>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// The signed four-bit integers of u32 words: element 8 w + i of the last axis is bits 4 i to 4 i + 3 of word w, from -8 to 7. u32
/// [..., W] to i32 [..., n]; the last word may have fewer than eight elements. Error "unpack_i4.C1" unless the words are u32,
/// "unpack_i4.C2" unless n elements take just W words.
Tensor unpack_i4(Tensor words, int64_t n, Where where = Where::current());

/// The same of signed eight-bit integers, four in each word: element 4 w + i is bits 8 i to 8 i + 7. Errors "unpack_i8.C1" and ".C2".
Tensor unpack_i8(Tensor words, int64_t n, Where where = Where::current());

/// Integers times the scale of their group along the last axis, f32: element j is values[j] * scales[j / group]. Integers [..., n] and
/// f32, f16 or bf16 scales [..., ceil(n / group)]; the other axes are equal. A group as long as the axis is a scale per row. Errors
/// "dequantize.C1" for element types, "dequantize.C2" for a group below 1 or shapes that do not fit.
Tensor dequantize(Tensor values, Tensor scales, int64_t group, Where where = Where::current());

/// x times the transpose of a weight of signed integers of 4 or 8 bits, without the weight in f32: x, floats [..., K]; u32 words
/// [N, ceil(K * bits / 32)], in which the first element of a word is in its lowest bits; f32, f16 or bf16 scales [N, ceil(K / group)]; to
/// f32 [..., N]. Few rows of x take integer dot products where a device has them: elements are rounded to a multiple of 2^-22 of the
/// power of two above the largest one among 16 or 32 neighbours. Beside a neighbour that is 2^22 times as large, an element is lost, also
/// where the weight of that neighbour is 0; `.precision = ls::strict_f32` multiplies in f32. Errors "quantized_matmul.C1" to ".C5" as in
/// docs/ops.md.
struct Quantization {
  int64_t bits = 4;    ///< of an element of the weight, 4 or 8
  int64_t group = 32;  ///< elements of a row that share a scale
};
Tensor quantized_matmul(Tensor x, Tensor words, Tensor scales, Quantization quantization, Where where = Where::current());

}  // namespace lockstep
