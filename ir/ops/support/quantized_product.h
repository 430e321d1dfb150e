// SPDX-License-Identifier: Apache-2.0
// What products with weights of a few bits share. A weight is u32 words [N, ceil(K / per word)]: element per word * w + i of a row is bits
// `bits` * i and up of word w, a signed integer; f32 scales [N, ceil(K / group)] multiply the elements of a group. With a fourth operand,
// g [K], rms_norm(x, g) is multiplied in place of x.
#pragma once

#include "ir/ops/support/common.h"

namespace lockstep::graph {

struct QuantizedExtents {
  int64_t m = 1, n = 1, k = 1, bits = 4;
  int64_t group = 1;  ///< k at most: longer ones are a scale per row
  [[nodiscard]] int64_t perWord() const { return 32 / bits; }
  [[nodiscard]] int64_t words() const { return (k + perWord() - 1) / perWord(); }
  [[nodiscard]] int64_t groups() const { return (k + group - 1) / group; }
};

/// Of x [..., K] and words [N, W] that fit.
QuantizedExtents quantizedExtents(const Shape& x, const Shape& words, const Attributes& attributes);
/// The type to which elements times their scales are rounded, F32 where they stay as they are. Integers with one scale per row do.
DType roundedWeight(const QuantizedExtents& e, const Node& node);
/// Whether rows are normalised before they are multiplied.
bool hasNorm(const Node& node);
/// Whether four words that are loaded together have one scale.
bool hasWholePieces(int64_t k, const Attributes& attributes);

Result<std::vector<TensorType>> inferQuantizedProduct(std::string_view op, const InferContext& context);

inline constexpr ConstantList<Constraint> kQuantizedConstraints{
    {"C1", "x and the scales are f32, and the words u32"},
    {"C2", "bits is 4 or 8, and group at least 1"},
    {"C3", "x has an axis or more, and the words [N, ceil(K / (32 / bits))] are for its last one"},
    {"C4", "the scales are [N, ceil(K / group)]"},
    {"C5", "the element counts of the weight and of the result are at most 2^31 - 1"},
    {"C6", "g and eps come together; g is f32[K], and eps is positive"}};
inline constexpr ConstantList<std::string_view> kQuantizedOperands{"x", "words", "scales", "g..."};
inline constexpr ConstantList<AttributeDef> kQuantizedAttributes{{"bits", AttributeKind::Integer, "of an element of the weight, 4 or 8"},
                                                                 {"group", AttributeKind::Integer, "elements of a row that share a scale"},
                                                                 {"eps", AttributeKind::Float, "of rms_norm(x, g)", false}};

std::vector<Tensor> evaluateQuantizedProduct(const EvaluateContext& context);

std::vector<OpCase> quantizedProductCases();

}  // namespace lockstep::graph
