// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/quad_operands.h"

#include <algorithm>
#include <utility>

#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using graph::Shape;

namespace {

/// Whether neighbours along the last axis of the space are quads of an input, through views and element by element. `is_guarded`: below a
/// view that is past the edge somewhere, which is emitted as one index into an input.
bool readsQuads(const graph::Graph& body, graph::ValueId value, const graph::IndexMap& map, const Shape& space, bool is_guarded = false) {
  if (space.extent(2) % kQuad != 0) return false;
  const graph::Node& node = body.definition(value);
  if (graph::leafName(node) != nullptr)
    return laneForm(linearOffset(map, space, body.shapeOf(value)), space, kQuad) == LaneForm::Neighbours;
  if (const auto* view = std::get_if<graph::ViewLowering>(&*node.op->lower)) {
    graph::IndexMap path = compose(map, view->map(body, node), body.shapeOf(value));
    // A window is past the edge with all four channels of a pixel, or with none; and so are rows that begin and end with a quad.
    const auto isShared = [&](const graph::IndexGuard& guard) { return holdsTogether(guard, guard.expr, space, kQuad); };
    if (!path.guards.empty() && (is_guarded || !std::ranges::all_of(path.guards, isShared))) return false;
    is_guarded = is_guarded || !path.guards.empty();
    path.guards.clear();
    return readsQuads(body, node.operands[0], path, space, is_guarded);
  }
  return !is_guarded && std::holds_alternative<graph::ElementLowering>(*node.op->lower) &&
         std::ranges::any_of(node.operands, [&](graph::ValueId operand) {
           return body.shapeOf(operand) == body.shapeOf(value) && readsQuads(body, operand, map, space);
         });
}

bool hasStrideOne(const graph::IndexExpr& offset, int32_t axis) {
  return std::ranges::find(offset.terms, graph::IndexTerm{.coefficient = 1, .axis = axis, .inner = {}}) != offset.terms.end();
}

QuadOperand quadOperand(const graph::Graph& body, const graph::Node& node, std::string_view name, size_t operand, const Shape& space,
                        const graph::IndexMap& map) {
  const graph::ValueId value = node.operands[operand];
  QuadOperand straight{.name = name, .operand = operand, .space = space, .map = map};
  straight.by_quads = readsQuads(body, value, map, space);
  if (straight.by_quads) return straight;
  QuadOperand turned = straight;
  turned.along_rows = true;
  turned.space = Shape{space.extent(0), space.extent(2), space.extent(1)};
  graph::IndexMap swap = graph::identityMap(3);
  std::swap(swap.source[1], swap.source[2]);
  turned.map = compose(swap, map, space);
  turned.by_quads = readsQuads(body, value, turned.map, turned.space);
  const graph::IndexExpr offset = linearOffset(map, space, body.shapeOf(value));
  return turned.by_quads || (hasStrideOne(offset, 1) && !hasStrideOne(offset, 2)) ? turned : straight;
}

}  // namespace

std::pair<QuadOperand, QuadOperand> quadOperands(const graph::Graph& body, const ContractNode& contract) {
  const graph::ContractShape& shape = contract.shape;
  const graph::Node& node = body[contract.node];
  return {quadOperand(body, node, "a", 0, Shape{shape.batch, shape.m, shape.k}, shape.a),
          quadOperand(body, node, "b", 1, Shape{shape.batch, shape.k, shape.n}, shape.b)};
}

}  // namespace lockstep::passes
