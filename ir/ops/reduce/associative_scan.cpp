// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"
#include "ir/ops/support/tuple_lines.h"

namespace lockstep::graph::associative_scan_op {
namespace {

int64_t lineAxis(const Node& node) { return node.attributes.get<int64_t>("axis"); }
bool isReversed(const Node& node) { return node.attributes.get<bool>("reverse"); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkTuples("associative_scan", c));
  return std::vector(c.operands.begin(), c.operands.end());
}

/// Doubles the distance over which elements are combined, until it is the length (Hillis and Steele 1986): ordinary ops, which have
/// gradients. A line takes as many rounds as its length has bits.
std::vector<ValueId> doubling(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const int64_t axis = lineAxis(node), length = b.shapeOf(operands[0]).extent(static_cast<size_t>(axis));
  const bool reverse = isReversed(node);
  const Graph combine = combineOf(node);
  std::vector<ValueId> prefixes(operands.begin(), operands.end());
  for (int64_t distance = 1; distance < length; distance *= 2) {
    const int64_t rest = length - distance;
    std::vector<ValueId> inputs;
    for (const ValueId x : prefixes) inputs.push_back(narrowed(b, x, axis, reverse ? distance : 0, rest));
    for (const ValueId x : prefixes) inputs.push_back(narrowed(b, x, axis, reverse ? 0 : distance, rest));
    const std::vector<ValueId> combined = applyScalars(b, combine, inputs);
    for (size_t i = 0; i < prefixes.size(); ++i) {
      const ValueId done = narrowed(b, prefixes[i], axis, reverse ? rest : 0, distance);
      prefixes[i] = b.make("concat", reverse ? std::vector{combined[i], done} : std::vector{done, combined[i]}, {{"axis", axis}});
    }
  }
  return prefixes;
}

std::vector<OpCase> cases() {
  const Graph affine = affineCombine(), log_sum = logSumCombine();
  const Graph last = makeCombine(std::array{DType::I32}, [](Builder&, auto, auto y) { return std::vector{y[0]}; });
  auto make = [](std::string_view name, std::vector<OperandCase> operands, const Graph& combine, int64_t axis, bool reverse = false) {
    return OpCase{name,
                  std::move(operands),
                  {{"axis", axis}, {"reverse", reverse}, {"combine", print(combine)}},
                  4e-6,
                  "a few roundings per element"};
  };
  const auto pair = [](const Shape& shape) { return std::vector<OperandCase>{{f32(shape), 0.5, 1}, {f32(shape), 0.1, 1}}; };
  return {make("log_sum", pair({3, 5, 37}), log_sum, 2),  make("log_sum_middle", pair({3, 70, 5}), log_sum, 1),
          make("affine", pair({2, 301}), affine, 1),      make("affine_reverse", pair({17, 9}), affine, 0, true),
          make("last", {{i32({4, 130}), 0, 9}}, last, 1), make("one", pair({4, 1}), affine, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "associative_scan",
    .summary =
        "The elements of a tuple of tensors up to and including each place along an axis, combined by an associative function (Blelloch "
        "1990).",
    .constraints = ConstantList<Constraint>{{"C1", kTupleRule}, {"C2", "the axis is within the rank"}, {"C3", kCombineRule}},
    .operands = ConstantList<std::string_view>{"x..."},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis along which is combined"},
                                             {"reverse", AttributeKind::Boolean, "from the end"},
                                             {"combine", AttributeKind::String, "the function, as the text of a graph"}},
    .infer = infer,
    .gradient = ByDecomposition{.decompose = doubling},
    .lower = ScanLowering{.axis = [](const Graph&, const Node& node) { return lineAxis(node); },
                          .reverse = isReversed,
                          .combine = [](const Graph&, const Node& node) { return combineOf(node); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateTuples(c, Prefixes::All, isReversed(c.node)); },
    .cases = cases,
};

}  // namespace lockstep::graph::associative_scan_op
