// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::dense_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  ConstantId id = c.attributes.get<ConstantId>("data");
  if (!id.valid() || id.index() >= c.graph.constants.size())
    return violated("dense", "C1", fmt::format("the graph has {} constants and none with the given number", c.graph.constants.size()));
  const Constant& constant = c.graph[id];
  LS_CHECK(checkExtents("dense", "C2", constant.type.shape.extents()));
  if (constant.data.size() != static_cast<size_t>(constant.type.shape.elementCount()))
    return violated("dense", "C3", fmt::format("the constant is {} and has {} elements", toString(constant.type), constant.data.size()));
  return std::vector{constant.type};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "dense",
    .summary = "A tensor whose elements are constants of the graph.",
    .constraints = ConstantList<Constraint>{{"C1", "data is a constant of the graph"},
                                            {"C2", "every extent is at least 1 and the element count is at most 2^31 - 1"},
                                            {"C3", "the constant has as many elements as its type"}},
    .operands = ConstantList<std::string_view>{},
    .attributes = ConstantList<AttributeDef>{{"data", AttributeKind::Constant, "the elements"}},
    .infer = infer,
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = StorageLowering{},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) { return std::vector{Tensor{c.results[0], c.graph[c.node.attributes.get<ConstantId>("data")].data}}; },
    .cases = noCases,
    .leaf = LeafKind::Data,
    .range = [](const RangeContext& c) -> std::vector<KnownRange> {
      if (isFloat(c.graph.typeOf(c.node.results[0]).dtype)) return {KnownRange()};
      const auto [lo, hi] = std::ranges::minmax(c.graph[c.node.attributes.get<ConstantId>("data")].data);
      return {IntegerRange{static_cast<int64_t>(lo), static_cast<int64_t>(hi)}};
    },
};

}  // namespace lockstep::graph::dense_op
