// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/quantized_product.h"

namespace lockstep::graph::multiply_quantized_op {
namespace {

constexpr std::string_view kName = "multiply_quantized";

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(std::vector<TensorType> types, inferQuantizedProduct(kName, c));
  const Shape& x = c.operands[0].shape;
  if (hasWholePieces(x.extent(x.rank() - 1), c.attributes)) return types;
  return violated(kName, "C7", fmt::format("groups of {} elements are no whole vectors of four words", c.attributes.get<int64_t>("group")));
}

constexpr ConstantList<Constraint> withPieces() {
  const auto& c = kQuantizedConstraints;
  return {c[0], c[1], c[2], c[3], c[4], c[5], {"C7", "a group is whole vectors of four words, or a row"}};
}

std::vector<OpCase> cases() {
  std::vector<OpCase> cases = quantizedProductCases();
  std::erase_if(cases, [](const OpCase& one) {
    const Shape& x = one.operands[0].type.shape;
    return !hasWholePieces(x.extent(x.rank() - 1), one.attributes);
  });
  return cases;
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const QuantizedExtents e = quantizedExtents(graph.shapeOf(node.operands[0]), graph.shapeOf(node.operands[1]), node.attributes);
  const auto tensor = [&](std::string_view name, const Shape& space, ValueId value, bool along_last) {
    return TemplateTensor{.name = name, .space = space, .map = reshapeMap(space, graph.shapeOf(value)), .along_last = along_last};
  };
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  std::vector<TemplateTensor> operands{tensor("x", {e.m, e.k}, node.operands[0], true),
                                       tensor("words", {e.n, e.words()}, node.operands[1], true),
                                       tensor("scale", {e.n, e.groups()}, node.operands[2], false)};
  const bool has_norm = hasNorm(node);
  if (has_norm) operands.push_back(tensor("gain", {e.k}, node.operands[3], true));
  return {.operands = std::move(operands),
          .results = {tensor("out", {e.m, e.n}, node.results[0], false)},
          .numbers = {{"m", number(e.m)},
                      {"n", number(e.n)},
                      {"k", number(e.k)},
                      {"bits", number(e.bits)},
                      {"group", number(e.group)},
                      {"normed", has_norm ? 1.0 : 0.0},
                      {"eps", has_norm ? node.attributes.get<double>("eps") : 0.0}},
          .form = TemplateForm::Digits,
          .rows = e.m * e.n,
          .run = e.n,
          .length = e.words(),
          .shared = 4 * e.perWord(),
          .operations = 2 * e.m * e.n * e.k};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "quantized_matmul by a template: what is multiplied becomes digits of 8 bits, for integer dot products.",
    .constraints = withPieces(),
    .operands = kQuantizedOperands,
    .attributes = kQuantizedAttributes,
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluateQuantizedProduct,
    .cases = cases,
};

}  // namespace lockstep::graph::multiply_quantized_op
