// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"
#include "ir/ops/support/largest_smallest.h"
#include "ir/ops/support/tuple_lines.h"

namespace lockstep::graph::associative_reduce_op {
namespace {

int64_t lineAxis(const Node& node) { return node.attributes.get<int64_t>("axis"); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkTuples("associative_reduce", c));
  std::vector<Dim> dims = c.operands[0].shape.dims();
  dims.erase(dims.begin() + c.attributes.get<int64_t>("axis"));
  std::vector<TensorType> results;
  for (const TensorType& type : c.operands) results.push_back({type.dtype, Shape(dims)});
  return results;
}

/// Combines neighbours until one element is left: ordinary ops, which have gradients.
std::vector<ValueId> halving(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const int64_t axis = lineAxis(node);
  const auto at = static_cast<size_t>(axis);
  const Graph combine = combineOf(node);
  std::vector<ValueId> left(operands.begin(), operands.end());
  while (b.shapeOf(left[0]).extent(at) > 1) {
    std::vector<int64_t> extents = b.shapeOf(left[0]).extents(), pairs = extents;
    const int64_t length = extents[at], half = length / 2;
    extents[at] = pairs[at] = half;
    pairs.insert(pairs.begin() + axis + 1, 2);
    std::vector<ValueId> inputs;
    for (const int64_t side : {0, 1}) {
      for (const ValueId x : left) {
        const ValueId paired = b.reshape(narrowed(b, x, axis, 0, 2 * half), Shape(pairs));
        inputs.push_back(b.reshape(narrowed(b, paired, axis + 1, side, 1), Shape(extents)));
      }
    }
    std::vector<ValueId> combined = applyScalars(b, combine, inputs);
    for (size_t i = 0; i < left.size(); ++i) {
      if (length % 2 != 0) combined[i] = b.make("concat", {combined[i], narrowed(b, left[i], axis, length - 1, 1)}, {{"axis", axis}});
    }
    left = std::move(combined);
  }
  std::vector<int64_t> extents = b.shapeOf(left[0]).extents();
  extents.erase(extents.begin() + axis);
  for (ValueId& value : left) value = b.reshape(value, Shape(extents));
  return left;
}

std::vector<OpCase> cases() {
  const auto make = [](std::string_view name, std::vector<OperandCase> operands, const Graph& combine, int64_t axis) {
    return OpCase{name, std::move(operands), {{"axis", axis}, {"combine", print(combine)}}, 4e-6, "a few roundings per element"};
  };
  const auto pair = [](const Shape& shape) { return std::vector<OperandCase>{{f32(shape), 0.5, 1}, {f32(shape), 0.1, 1}}; };
  const auto placed = [](const Shape& shape) { return std::vector<OperandCase>{{i32(shape), -9, 9}, {i32(shape), 0, 99}}; };
  const auto counted = [](const Shape& shape) {
    return std::vector<OperandCase>{{f32(shape), 0.5, 2}, {f32(shape), -2, 2}, {f32(shape), 0.1, 1}};
  };
  return {make("log_sum", pair({3, 5, 37}), logSumCombine(), 2),
          make("log_sum_middle", pair({3, 70, 5}), logSumCombine(), 1),
          make("affine", pair({2, 301}), affineCombine(), 1),
          make("affine_first", pair({17, 9}), affineCombine(), 0),
          make("place", placed({4, 130}), bestCombine(DType::I32, "greater"), 1),
          make("place_first", placed({33, 70}), bestCombine(DType::I32, "greater"), 0),
          make("moments", counted({2, 257}), momentsCombine(), 1),
          make("vector", pair({65}), affineCombine(), 0),
          make("one", pair({4, 1}), affineCombine(), 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "associative_reduce",
    .summary = "The elements of a tuple of tensors along an axis, which is dropped, combined in their order by an associative function.",
    .constraints = ConstantList<Constraint>{{"C1", kTupleRule}, {"C2", "the axis is within the rank"}, {"C3", kCombineRule}},
    .operands = ConstantList<std::string_view>{"x..."},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis along which is combined"},
                                             {"combine", AttributeKind::String, "the function, as the text of a graph"}},
    .infer = infer,
    .gradient = ByDecomposition{.decompose = halving},
    .lower = ScanLowering{.axis = [](const Graph&, const Node& node) { return lineAxis(node); },
                          .reverse = [](const Node&) { return false; },
                          .combine = [](const Graph&, const Node& node) { return combineOf(node); },
                          .is_total = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateTuples(c, Prefixes::Last, false); },
    .cases = cases,
};

}  // namespace lockstep::graph::associative_reduce_op
