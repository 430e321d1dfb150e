// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/lanes.h"

#include <algorithm>
#include <vector>

#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// x / divide % modulo, where x has a form; `step` elements long is every run of equal x.
LaneForm dividedForm(LaneForm form, int64_t step, const IndexTerm& term, int64_t width) {
  if (form == LaneForm::Same || (form == LaneForm::Neighbours && step * term.divide % width == 0)) return LaneForm::Same;
  return form == LaneForm::Neighbours && term.divide == 1 && term.modulo % width == 0 ? form : LaneForm::Other;
}

LaneForm termForm(const IndexTerm& term, const Shape& shape, int64_t width) {
  if (term.axis < 0) return dividedForm(laneForm(term.inner.front(), shape, width), 1, term, width);
  const auto axis = static_cast<size_t>(term.axis);
  const int64_t stride = shape.strides()[axis], extent = shape.extent(axis);
  // Runs of equal x / divide begin anew in each row of the axes outside.
  const bool rows_are_aligned = stride * extent % width == 0 || stride * extent == shape.elementCount();
  if (stride * term.divide % width == 0 && rows_are_aligned) return LaneForm::Same;
  // Neighbours of a long axis: of a shorter one they may be in several rows.
  const bool in_one_row = stride == 1 && (extent % width == 0 || extent == shape.elementCount());
  return in_one_row ? dividedForm(LaneForm::Neighbours, 1, term, width) : LaneForm::Other;
}

/// The last axes that a sum goes over one element after the other, as one: its number of elements. Their terms leave the sum.
int64_t takeContiguous(IndexExpr& offset, const Shape& shape) {
  int64_t elements = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    if (shape.extent(axis) == 1) continue;
    const IndexTerm wanted{.coefficient = elements, .axis = static_cast<int32_t>(axis), .inner = {}};
    const auto found = std::ranges::find(offset.terms, wanted);
    if (found == offset.terms.end()) break;
    offset.terms.erase(found);
    elements *= shape.extent(axis);
  }
  return elements;
}

}  // namespace

LaneForm laneForm(const IndexExpr& offset, const Shape& shape, int64_t width) {
  IndexExpr rest = offset;
  const int64_t contiguous = takeContiguous(rest, shape);
  if (contiguous > 1 && contiguous % width != 0 && contiguous != shape.elementCount()) return LaneForm::Other;
  int64_t neighbours = contiguous > 1 ? 1 : 0;
  bool is_aligned = rest.offset % width == 0;
  for (const IndexTerm& term : rest.terms) {
    const LaneForm form = termForm(term, shape, width);
    if (form == LaneForm::Other || (form == LaneForm::Neighbours && term.coefficient != 1)) return LaneForm::Other;
    if (form == LaneForm::Neighbours) ++neighbours;
    if (form == LaneForm::Same) is_aligned = is_aligned && term.coefficient % width == 0;
  }
  if (neighbours == 0) return LaneForm::Same;
  return neighbours == 1 && is_aligned ? LaneForm::Neighbours : LaneForm::Other;
}

namespace {

/// Goes from the results of a body to its inputs.
class Walk {
 public:
  Walk(const Graph& body, int64_t width) : body_(body), width_(width) {}

  /// Whether all elements of a value may be made `width` at once.
  bool all(ValueId value) {
    shape_ = body_.shapeOf(value);
    seen_.clear();
    return visit(value, identityMap(shape_.rank()));
  }

 private:
  bool visit(ValueId value, const IndexMap& map) {
    if (std::ranges::find(seen_, std::pair(value, map)) != seen_.end()) return true;
    seen_.emplace_back(value, map);
    const Node& node = body_.definition(value);
    if (leafName(node) != nullptr) {
      const bool is_small = body_.shapeOf(value).elementCount() < shape_.elementCount();
      return is_small ||
             (map.guards.empty() && laneForm(linearOffset(map, shape_, body_.shapeOf(value)), shape_, width_) == LaneForm::Neighbours);
    }
    if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower))
      return visit(node.operands[0], compose(map, view->map(body_, node), body_.shapeOf(value)));
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    if (element == nullptr) return false;
    if (element->scalar_only && !node.operands.empty()) return selectsRows(node, *element, map);
    return std::ranges::all_of(node.operands, [&](ValueId operand) { return visit(operand, map); });
  }

  /// Of an op that computes which row of its first operand it reads: whether neighbours of the body are neighbours in such a row. Its other
  /// operands are smaller.
  bool selectsRows(const Node& node, const ElementLowering& element, const IndexMap& map) {
    const Shape &made = body_.shapeOf(node.results[0]), &source = body_.shapeOf(node.operands[0]);
    if (element.selects_rows == nullptr || !element.selects_rows(body_, node) || !map.guards.empty()) return false;
    const bool whole_rows = source.extents().back() % width_ == 0 && source.extents().back() == made.extents().back();
    if (!whole_rows || laneForm(linearOffset(map, shape_, made), shape_, width_) != LaneForm::Neighbours) return false;
    Walk rows(body_, width_);
    return rows.all(node.operands[0]);
  }

  const Graph& body_;
  int64_t width_;
  Shape shape_;
  std::vector<std::pair<ValueId, IndexMap>> seen_;
};

}  // namespace

bool holdsTogether(const IndexGuard& guard, const IndexExpr& expr, const Shape& shape, int64_t width) {
  const LaneForm form = laneForm(expr, shape, width);
  return form == LaneForm::Same || (form == LaneForm::Neighbours && guard.lo % width == 0 && guard.hi % width == 0);
}

bool readsNeighbours(const Graph& graph, ValueId value, const IndexMap& map, const Shape& space) {
  return laneForm(linearOffset(map, space, graph.shapeOf(value)), space, 2) == LaneForm::Neighbours;
}

bool readsNeighbours(const Graph& body, int64_t width) {
  Walk walk(body, width);
  return std::ranges::all_of(body.outputs, [&](const Output& output) { return walk.all(output.value); });
}

}  // namespace lockstep::passes
