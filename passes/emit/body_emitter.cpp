// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/body_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/fuse/views.h"

namespace lockstep::passes {

using graph::IndexExpr;
using graph::IndexMap;
using graph::IndexTerm;
using graph::Node;
using graph::Shape;
using kernel::Op;

namespace {

/// The expression is an axis of `shape` as it is, and no longer than `extent`.
bool isAxisOf(const IndexExpr& expr, const Shape& shape, int64_t extent) {
  if (expr.offset != 0 || expr.terms.size() != 1) return false;
  const IndexTerm& term = expr.terms.front();
  return term.axis >= 0 && term == graph::axisExpr(term.axis).terms.front() && shape.extent(static_cast<size_t>(term.axis)) <= extent;
}

/// What a position's numbers are; of one in a row its columns stand here.
enum PositionKind : int64_t { kFlat = 0, kAxes = -1, kProvenAxes = -2 };

uint32_t unsigned32(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value)); }

}  // namespace

/// The view of one element that an op's lowering gets.
class BodyEmitter::Element : public graph::ElementEmitter {
 public:
  Element(BodyEmitter& owner, const Node& node, PositionId position) : owner_(owner), node_(node), position_(position) {}
  kernel::Builder& builder() override { return owner_.builder_; }
  const graph::Graph& graph() override { return owner_.body_; }
  const Node& node() override { return node_; }
  std::span<const kernel::ValueId> index() override {
    if (index_.empty()) {
      for (size_t i = 0; i < owner_.positions_[position_].shape.rank(); ++i) index_.push_back(owner_.axis(position_, i));
    }
    return index_;
  }
  uint32_t width() override { return 1; }
  kernel::ValueId operand(size_t i) override { return owner_.value(node_.operands[i], position_); }
  kernel::ValueId operandAt(size_t i, std::vector<kernel::ValueId> index) override {
    return owner_.value(node_.operands[i], owner_.atAxes(owner_.body_.shapeOf(node_.operands[i]), std::move(index), false));
  }

 private:
  BodyEmitter& owner_;
  const Node& node_;
  PositionId position_;
  std::vector<kernel::ValueId> index_;
};

BodyEmitter::BodyEmitter(const graph::Graph& body, kernel::Builder& builder, const BodyBindings& bindings)
    : body_(body), builder_(builder), window_(bindings.window) {
  // What belongs to no node has the line of the result, but no node: kernels that differ in nothing else are one.
  if (!body.outputs.empty()) builder_.setLocation(locationOf(body.outputs.front().value));
  // Results first: a binding that is written is read_write for the input that shares it.
  for (size_t i = 0; i < bindings.results.size(); ++i) {
    const graph::TensorType& type = body.typeOf(body.outputs[i].value);
    result_memory_.push_back(declare(bindings.results[i], type, kernel::Access::ReadWrite, fmt::format("r{}", i), bindings));
  }
  for (graph::ValueId input : inputsOf(body)) {
    size_t i = inputs_.size();
    inputs_[input] = i;
    input_memory_.push_back(declare(bindings.inputs[i], body.typeOf(input), kernel::Access::Read, fmt::format("a{}", i), bindings));
  }
}

PositionId BodyEmitter::newPosition(Position position) {
  positions_.push_back(std::move(position));
  return static_cast<PositionId>(positions_.size() - 1);
}

PositionId BodyEmitter::known(std::vector<kernel::ValueId> numbers, const Shape& shape, int64_t kind,
                              const std::function<Position()>& position) {
  std::vector<int64_t> key = shape.extents();
  key.push_back(kind);
  auto [found, inserted] = known_positions_.try_emplace({std::move(numbers), std::move(key)}, 0);
  if (inserted) found->second = newPosition(position());
  return found->second;
}

PositionId BodyEmitter::amongNeighbours(PositionId id, kernel::ValueId number, const std::function<PositionId(kernel::ValueId)>& at) {
  const auto found = neighbours_.find(number);
  if (found == neighbours_.end() || positions_[id].first) return id;
  const Neighbour neighbour = found->second;
  const PositionId first = neighbour.lane == 0 ? id : at(neighbour.first);
  positions_[id].first = first;
  positions_[id].lane = neighbour.lane;
  positions_[id].width = neighbour.width;
  return id;
}

PositionId BodyEmitter::flat(const Shape& shape, kernel::ValueId linear) {
  const PositionId id = known({linear}, shape, kFlat, [&] { return Position{.shape = shape, .linear = linear, .row = {}, .column = {}}; });
  return amongNeighbours(id, linear, [&](kernel::ValueId first) { return flat(shape, first); });
}

PositionId BodyEmitter::atAxes(const Shape& shape, std::vector<kernel::ValueId> axes, bool proven) {
  const auto make = [&] { return Position{.shape = shape, .linear = {}, .row = {}, .column = {}, .columns = 0, .proven = proven}; };
  const auto last = axes.empty() ? neighbours_.end() : neighbours_.find(axes.back());
  const bool is_beside = last != neighbours_.end() && shape.extents().back() % last->second.width == 0;
  const PositionId id = is_beside ? known(axes, shape, proven ? kProvenAxes : kAxes, make) : newPosition(make());
  for (size_t i = 0; i < axes.size(); ++i) scopes_.back().axes[{id, i}] = axes[i];
  if (!is_beside) return id;
  return amongNeighbours(id, axes.back(), [&](kernel::ValueId first) {
    std::vector<kernel::ValueId> of_first = axes;
    of_first.back() = first;
    return atAxes(shape, std::move(of_first), proven);
  });
}

PositionId BodyEmitter::inRow(const Shape& shape, kernel::ValueId row, kernel::ValueId column, int64_t columns) {
  const PositionId id = known({row, column}, shape, columns,
                              [&] { return Position{.shape = shape, .linear = {}, .row = row, .column = column, .columns = columns}; });
  const auto neighbour = neighbours_.find(column);
  if (neighbour == neighbours_.end() || columns % neighbour->second.width != 0) return id;
  return amongNeighbours(id, column, [&](kernel::ValueId first) { return inRow(shape, row, first, columns); });
}

std::vector<kernel::ValueId> BodyEmitter::neighbours(kernel::ValueId place, int64_t width, int64_t count) {
  std::vector<kernel::ValueId> numbers{builder_.make(Op::Mul, {place, builder_.u32(unsigned32(width))})};
  const kernel::ValueId first = numbers.front();
  multiples_[first] = {place, width};
  for (int64_t lane = 0; lane < count; ++lane) {
    if (lane > 0) numbers.push_back(entryIndex(first, 1, lane));
    neighbours_[numbers.back()] = {first, width, lane};
  }
  return numbers;
}

BodyEmitter::Lanes BodyEmitter::lanesOf(PositionId id) {
  const Position position = positions_[id];
  if (position.first) return {LaneForm::Neighbours, *position.first, position.lane, position.width};
  if (!position.root || !positions_[*position.root].first) return {};
  const Position root = positions_[*position.root];
  Lanes lanes{.first = id, .lane = root.lane, .width = root.width};
  lanes.form = laneForm(linearOffset(position.map, root.shape, position.shape), root.shape, root.width);
  if (lanes.lane > 0 && lanes.form != LaneForm::Other) lanes.first = viewed(*root.first, position.shape, position.map, position.proven);
  return lanes;
}

kernel::ValueId BodyEmitter::quotientRemainder(kernel::ValueId value, int64_t divide, int64_t modulo) {
  if (divide != 1) value = builder_.make(Op::Div, {value, builder_.u32(unsigned32(divide))});
  if (modulo != 0) value = builder_.make(Op::Rem, {value, builder_.u32(unsigned32(modulo))});
  return value;
}

kernel::ValueId BodyEmitter::axis(PositionId id, size_t axis) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (auto found = scopes_[i].axes.find({id, axis}); found != scopes_[i].axes.end()) return found->second;
  }
  const Position position = positions_[id];
  int64_t extent = position.shape.extent(axis), stride = position.shape.strides()[axis];
  kernel::ValueId out;
  // Neighbours along the last axis, or in the same place of another one.
  const bool is_beside = position.first && stride == 1 && (extent % position.width == 0 || extent == position.shape.elementCount());
  if (extent == 1) {
    out = builder_.u32(0);
  } else if (position.lane > 0 && stride % position.width == 0) {
    out = this->axis(*position.first, axis);
  } else if (position.lane > 0 && is_beside) {
    out = entryIndex(this->axis(*position.first, axis), 1, position.lane);
  } else if (position.root) {
    out = expression(position.map.source[axis], *position.root);
  } else if (position.columns != 0) {
    if (position.columns % (stride * extent) == 0) {
      out = quotientRemainder(position.column, stride, stride * extent == position.columns ? 0 : extent);
    } else {
      // An axis may cross the ends of rows, as one of 10 does that a view splits into 5 rows of 2.
      const bool whole_rows = stride % position.columns == 0;
      const int64_t modulo = stride * extent == position.shape.elementCount() ? 0 : extent;
      out = whole_rows ? quotientRemainder(position.row, stride / position.columns, modulo) : quotientRemainder(linear(id), stride, modulo);
    }
  } else if (position.linear.valid()) {
    out = quotientRemainder(position.linear, stride, stride * extent == position.shape.elementCount() ? 0 : extent);
  } else {
    internalError("a position has neither axes nor a linear index");
  }
  if (is_beside && !neighbours_.contains(out))
    neighbours_[out] = {position.lane == 0 ? out : this->axis(*position.first, axis), position.width, position.lane};
  scopes_.back().axes[{id, axis}] = out;
  return out;
}

kernel::ValueId BodyEmitter::linear(PositionId id) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (auto found = scopes_[i].linears.find(id); found != scopes_[i].linears.end()) return found->second;
  }
  const Position position = positions_[id];
  kernel::ValueId sum;
  auto add = [&](kernel::ValueId term) { sum = sum.valid() ? builder_.make(Op::Add, {sum, term}) : term; };
  const Lanes lanes = lanesOf(id);
  if (position.linear.valid()) {
    sum = position.linear;
  } else if (lanes.lane > 0 && lanes.form == LaneForm::Neighbours) {
    sum = entryIndex(linear(lanes.first), 1, lanes.lane);
  } else if (position.root) {
    sum = expression(linearOffset(position.map, positions_[*position.root].shape, position.shape), *position.root);
  } else if (position.columns != 0) {
    sum = builder_.make(Op::Mul, {position.row, builder_.u32(unsigned32(position.columns))});
    add(position.column);
  } else {
    std::vector<int64_t> strides = position.shape.strides();
    for (size_t i = 0; i < position.shape.rank(); ++i) {
      if (position.shape.extent(i) == 1) continue;
      kernel::ValueId term = axis(id, i);
      if (strides[i] != 1) term = builder_.make(Op::Mul, {term, builder_.u32(unsigned32(strides[i]))});
      add(term);
    }
    if (!sum.valid()) sum = builder_.u32(0);
  }
  scopes_.back().linears[id] = sum;
  return sum;
}

kernel::ValueId BodyEmitter::expression(const IndexExpr& expr, PositionId position) {
  kernel::ValueId sum;
  for (const IndexTerm& term : expr.terms) {
    kernel::ValueId atom = term.axis >= 0 ? axis(position, static_cast<size_t>(term.axis)) : expression(term.inner.front(), position);
    atom = quotientRemainder(atom, term.divide, term.modulo);
    if (term.coefficient != 1) atom = builder_.make(Op::Mul, {atom, builder_.u32(unsigned32(term.coefficient))});
    sum = sum.valid() ? builder_.make(Op::Add, {sum, atom}) : atom;
  }
  if (!sum.valid()) return builder_.u32(unsigned32(expr.offset));
  if (expr.offset != 0) sum = builder_.make(Op::Add, {sum, builder_.u32(unsigned32(expr.offset))});
  return sum;
}

PositionId BodyEmitter::through(const IndexMap& map, const Shape& source, PositionId id) {
  IndexMap whole{.source = map.source, .guards = {}};
  const PositionId root = positions_[id].root.value_or(id);
  const Position from = positions_[root];
  if (root != id) whole = compose(positions_[id].map, whole, positions_[id].shape);
  // What all neighbours read at one place is made once.
  const bool is_same = from.lane > 0 && laneForm(linearOffset(whole, from.shape, source), from.shape, from.width) == LaneForm::Same;
  if (is_same) return through(whole, source, *from.first);
  if (isLinearIdentity(whole, from.shape, source)) {
    if (from.linear.valid()) return flat(source, from.linear);
    // The row structure survives when the source has the same rows.
    IndexExpr unused;
    if (from.columns != 0 && rowOffset(source, from.columns, unused)) return inRow(source, from.row, from.column, from.columns);
  }
  return viewed(root, source, std::move(whole), positions_[id].proven);
}

PositionId BodyEmitter::viewed(PositionId root, const Shape& source, IndexMap map, bool proven) {
  std::vector<PositionId>& views = views_[root];
  const auto found =
      std::ranges::find_if(views, [&](PositionId id) { return positions_[id].shape == source && positions_[id].map == map; });
  if (found != views.end()) return *found;
  Position position{.shape = source, .linear = {}, .row = {}, .column = {}};
  position.proven = proven;
  position.root = root;
  position.map = std::move(map);
  views.push_back(newPosition(std::move(position)));
  return views.back();
}

kernel::ValueId BodyEmitter::holds(graph::ValueId value, const IndexMap& map, PositionId position) {
  const PositionId root = positions_[position].root.value_or(position);
  const Position from = positions_[root], at = positions_[position];
  // Neighbours that ask the same ask once.
  std::vector<IndexExpr> shared;
  for (const graph::IndexGuard& guard : map.guards) {
    if (!from.first) break;
    IndexMap asked{.source = {guard.expr}, .guards = {}};
    if (root != position) asked = compose(at.map, asked, at.shape);
    if (holdsTogether(guard, asked.source[0], from.shape, from.width)) shared.push_back(asked.source[0]);
  }
  const bool is_shared = from.first && shared.size() == map.guards.size();
  const PositionId asker = is_shared ? *from.first : position;
  // The same view may be read at several places that follow from one root.
  const std::pair key{value, is_shared && root != position ? viewed(asker, at.shape, at.map, at.proven) : asker};
  for (size_t i = scopes_.size(); i-- > 0 && is_shared;) {
    if (const auto found = scopes_[i].held.find(key); found != scopes_[i].held.end()) return found->second;
  }
  kernel::ValueId inside;
  for (size_t i = 0; i < map.guards.size(); ++i) {
    // One unsigned comparison checks both ends: a position below `lo` wraps to a huge one.
    const graph::IndexGuard& guard = map.guards[i];
    IndexExpr shifted = is_shared ? shared[i] : guard.expr;
    shifted.offset -= guard.lo;
    kernel::ValueId here = builder_.make(Op::Lt, {expression(shifted, asker), builder_.u32(unsigned32(guard.hi - guard.lo))});
    inside = inside.valid() ? builder_.make(Op::And, {inside, here}) : here;
  }
  if (is_shared) scopes_.back().held[key] = inside;
  return inside;
}

kernel::ValueId BodyEmitter::guarded(graph::ValueId value, const IndexMap& map, PositionId position) {
  const kernel::ValueId inside = holds(value, map, position);
  const bool proven = positions_[position].proven;
  const graph::ValueId source = body_.definition(value).operands[0];
  // A view of memory is one index: where it is outside, element 0 is read and not used.
  graph::ValueId base = source;
  IndexMap path{.source = map.source, .guards = {}};
  while (!inputs_.contains(base) && isView(body_, base)) {
    const Node& view = body_.definition(base);
    IndexMap next = std::get<graph::ViewLowering>(*view.op->lower).map(body_, view);
    if (!next.guards.empty()) break;
    path = compose(path, next, body_.shapeOf(base));
    base = view.operands[0];
  }
  kernel::ValueId element;
  if (inputs_.contains(base)) {
    element = loadAt(base, through(path, body_.shapeOf(base), position), inside);
  } else {
    std::vector<kernel::ValueId> axes;
    for (size_t i = 0; i < map.source.size(); ++i) {
      kernel::ValueId at = expression(map.source[i], position);
      // An axis that the view leaves alone is in range anyway.
      bool safe = isAxisOf(map.source[i], body_.shapeOf(value), body_.shapeOf(source).extent(i));
      axes.push_back(safe ? at : builder_.make(Op::Select, {builder_.u32(0), at, inside}));
    }
    element = this->value(source, atAxes(body_.shapeOf(source), std::move(axes), proven));
  }
  return builder_.make(Op::Select, {graph::kernelConstant(builder_, body_.typeOf(source).dtype, map.fill), element, inside});
}

void BodyEmitter::define(graph::ValueId value, kernel::ValueId emitted) { scopes_.back().defined[value] = emitted; }

kernel::ValueId BodyEmitter::value(graph::ValueId value, PositionId position) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (auto found = scopes_[i].defined.find(value); found != scopes_[i].defined.end()) return found->second;
    if (auto found = scopes_[i].values.find({value, position}); found != scopes_[i].values.end()) return found->second;
  }
  const Node& node = body_.definition(value);
  const uint32_t outer = builder_.locationIndex();
  builder_.setOrigin(body_[value].node.value + 1);
  builder_.setLocation(locationOf(value));
  kernel::ValueId out;
  if (inputs_.contains(value)) {
    out = loadAt(value, position);
  } else if (const auto kept = kept_.find(value); kept != kept_.end()) {
    out = kept->second(position);
  } else if (const auto* view = std::get_if<graph::ViewLowering>(&*node.op->lower)) {
    IndexMap map = view->map(body_, node);
    graph::ValueId source = node.operands[0];
    out = map.guards.empty() ? this->value(source, through(map, body_.shapeOf(source), position)) : guarded(value, map, position);
  } else if (const auto* element = std::get_if<graph::ElementLowering>(&*node.op->lower)) {
    Element context(*this, node, position);
    out = element->emit(context);
  } else {
    internalError(fmt::format("emission met '{}' where its value is not defined", *node.op->name));
  }
  scopes_.back().values[{value, position}] = out;
  builder_.setLocationIndex(outer);
  return out;
}

Location BodyEmitter::locationOf(graph::ValueId value) const {
  const uint32_t location = body_.definition(value).location;
  return location == 0 ? Location{} : body_.locations[location - 1];
}

}  // namespace lockstep::passes
