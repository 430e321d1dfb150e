// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/attention.h"
#include "ir/ops/support/quantized_product.h"

namespace lockstep::graph::quantized_matmul_op {
namespace {

constexpr std::string_view kName = "quantized_matmul";

/// Rows of x up to which each of them goes over the weight by itself; more share what they read, as products do.
constexpr int64_t kFewRows = 4;

Result<std::vector<TensorType>> infer(const InferContext& c) { return inferQuantizedProduct(kName, c); }

/// The integers of the weight as f32 [N, K], and times their scales where a row has several; nothing keeps them, as a product computes them
/// where it reads. In mixed precision they are numbers of 16 bits: integers of 8 bits and fewer are.
ValueId wideWeight(Builder& b, const QuantizedExtents& e, DType low, ValueId words, ValueId scales) {
  const auto fill = [&](int64_t number, const Shape& shape) {
    return b.constant(static_cast<double>(number), TensorType{DType::U32, shape});
  };
  const Shape each{e.n, e.words(), e.perWord()};
  // Each element's bits to the high end, and back with its sign.
  const ValueId place = b.make("arange", {}, {{"n", e.perWord()}, {"dtype", DType::U32}});
  const ValueId shift = b.sub(fill(32 - e.bits, Shape{e.perWord()}), b.mul(place, fill(e.bits, Shape{e.perWord()})));
  const ValueId word = b.broadcastTo(b.reshape(words, Shape{e.n, e.words(), 1}), each);
  const ValueId high = b.make("left_shift", {word, b.broadcastTo(shift, each)});
  const ValueId integer = b.make("right_shift", {b.make("cast", {high}, {{"dtype", DType::I32}}), fill(32 - e.bits, each)});
  const auto firstOf = [&](ValueId rows) {
    return b.make("narrow", {rows}, {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"length", e.k}});
  };
  const ValueId values = b.make("cast", {firstOf(b.reshape(integer, Shape{e.n, e.words() * e.perWord()}))}, {{"dtype", DType::F32}});
  const auto rounded = [&](ValueId wide) {
    if (low == DType::F32) return wide;
    return b.make("cast", {b.make("cast", {wide}, {{"dtype", low}})}, {{"dtype", DType::F32}});
  };
  if (e.groups() == 1) return rounded(values);
  const ValueId repeated = b.broadcastTo(b.reshape(scales, Shape{e.n, e.groups(), 1}), Shape{e.n, e.groups(), e.group});
  return rounded(b.mul(values, firstOf(b.reshape(repeated, Shape{e.n, e.groups() * e.group}))));
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const Shape x = b.shapeOf(operands[0]);
  const QuantizedExtents e = quantizedExtents(x, b.shapeOf(operands[1]), node.attributes);
  std::vector<int64_t> result = x.extents();
  result.back() = e.n;
  const ValueId weight = b.swapLastAxes(wideWeight(b, e, lowOf(node), operands[1], operands[2]));
  ValueId rows = operands[0];
  if (hasNorm(node)) rows = b.make("rms_norm", {rows, operands[3]}, {{"eps", node.attributes.get<double>("eps")}});
  ValueId product = b.make("matmul", {b.reshape(rows, Shape{e.m, e.k}), weight});
  // The only scale of a row is a factor of its sum.
  if (e.groups() == 1) product = b.mul(product, b.broadcastTo(b.reshape(operands[2], Shape{1, e.n}), Shape{e.m, e.n}));
  return {b.reshape(product, Shape(result))};
}

std::vector<ValueId> build(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  const Shape& x = b.shapeOf(operands[0]);
  const bool is_few = x.elementCount() / x.extent(x.rank() - 1) <= kFewRows;
  if (!is_few || !hasWholePieces(x.extent(x.rank() - 1), node.attributes)) return {};
  if (roundedWeight(quantizedExtents(x, b.shapeOf(operands[1]), node.attributes), node) != DType::F32) return {};
  Attributes attributes = node.attributes;
  attributes.erase(kLowAttribute);
  return b.makeAll("multiply_quantized", {operands.begin(), operands.end()}, std::move(attributes));
}

/// Nothing keeps the weight either way.
int64_t savedElements(const Graph&, const Node&) { return 0; }

constexpr TemplateChoice kChoice{.name = "quantized_matmul",
                                 .build = build,
                                 .saved_elements = savedElements,
                                 .needs_packed_dot = true,
                                 .gain = TemplateGain::TimeOfLarge};

/// Rounded scales have no differences, so rounding with them is tested elsewhere (tests/differential/quantized_products_test.cpp).
std::vector<OpCase> cases() {
  std::vector<OpCase> cases = quantizedProductCases();
  OpCase row = *std::ranges::find(cases, "eight_bits_by_row", &OpCase::name);
  row.name = "eight_bits_in_bf16";
  row.attributes.set(std::string(kLowAttribute), DType::BF16);
  cases.push_back(std::move(row));
  return cases;
}

constexpr ConstantList<AttributeDef> withLow() {
  return {kQuantizedAttributes[0], kQuantizedAttributes[1], kQuantizedAttributes[2], kRoundedAttribute};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "x [..., K], or rms_norm(x, g), times a weight [N, K] of signed integers of 4 or 8 bits in u32 words, with a scale per group of a "
        "row: [..., N].",
    .constraints = kQuantizedConstraints,
    .operands = kQuantizedOperands,
    .attributes = withLow(),
    .infer = infer,
    .gradient = ByDecomposition{},
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kChoice},
    .alias = NoAlias{},
    .evaluate = evaluateQuantizedProduct,
    .cases = cases,
    .mixed = MixedRole::Product,
    .factors = 1,
};

}  // namespace lockstep::graph::quantized_matmul_op
