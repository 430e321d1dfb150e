// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::reshape_op {
namespace {

/// An open axis whose positions are `inner` elements apart in the axis is inner times its stride apart in row-major order, under any shape.
std::optional<std::vector<Opened>> openReshape(const OpenContext& c) {
  const Shape& from = c.shapeOf(0);
  const Shape to(c.node.attributes.get<std::vector<int64_t>>("shape"));
  const OpenAxes& open = c.operands[0].axes;
  OpenAxes axes(to.rank(), 0);
  for (size_t axis = 0; axis < open.size(); ++axis) {
    if (open[axis] == 0) continue;
    const int64_t inner = fromFirst(open[axis], from.extent(axis), c.capacity);
    const int64_t apart = inner * from.strides()[axis];
    const auto holds = [&](size_t target) {
      const int64_t stride = to.strides()[target];
      return apart % stride == 0 && stride * to.extent(target) % (apart * c.capacity) == 0;
    };
    size_t target = 0;
    while (target < to.rank() && !holds(target)) ++target;
    if (target == to.rank() || axes[target] != 0) return std::nullopt;
    axes[target] = apart / to.strides()[target];
  }
  return c.made({c.operands[0].value}, axes);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "reshape",
    .summary = "The same elements in row-major order under another shape.",
    .constraints = ConstantList<Constraint>{{"C1", "every extent is at least 1 and the element count is at most 2^31 - 1"},
                                            {"C2", "the element counts are equal"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"shape", AttributeKind::Integers, "the new shape, without -1"}},
    .infer = [](const InferContext& c) -> Result<std::vector<TensorType>> {
      const auto& extents = c.attributes.get<std::vector<int64_t>>("shape");
      LS_CHECK(checkExtents("reshape", "C1", extents));
      Shape shape(extents);
      if (shape.elementCount() != c.operands[0].shape.elementCount()) {
        return violated("reshape", "C2",
                        fmt::format("{} has {} elements and {} has {}", toString(c.operands[0].shape), c.operands[0].shape.elementCount(),
                                    toString(shape), shape.elementCount()));
      }
      return std::vector{TensorType{c.operands[0].dtype, shape}};
    },
    .gradient = GradientFn(
        [](const GradientContext& g) { return std::vector{g.builder.reshape(g.cotangents[0], Shape(g.builder.shapeOf(g.operands[0])))}; }),
    .lower =
        ViewLowering{.map = [](const Graph& graph,
                               const Node& node) { return reshapeMap(graph.shapeOf(node.results[0]), graph.shapeOf(node.operands[0])); }},
    .alias = AliasView{},
    .evaluate = [](const EvaluateContext& c) { return std::vector{Tensor{c.results[0], c.operands[0]->data}}; },
    .cases =
        [] {
          auto make = [](std::string_view name, Shape from, std::vector<int64_t> to) {
            return OpCase{name, {{f32(std::move(from))}}, {{"shape", std::move(to)}}};
          };
          return std::vector{make("flatten", {2, 6, 3}, {36}), make("split", {6, 8}, {3, 2, 2, 4}), make("regroup", {2, 6, 3}, {4, 9}),
                             make("scalar", {1, 1}, {})};
        },
    .algebra = {.last_counts = true},
    .lift =
        [](const LiftContext& c) {
          std::vector<int64_t> extents = c.node.attributes.get<std::vector<int64_t>>("shape");
          extents.insert(extents.begin(), c.rows);
          return c.builder.reshape(c.operands[0], Shape(extents));
        },
    .open = openReshape,
};

}  // namespace lockstep::graph::reshape_op
