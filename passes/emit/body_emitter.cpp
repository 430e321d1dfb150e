// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/body_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/packed_element.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using graph::DType;
using graph::IndexExpr;
using graph::IndexMap;
using graph::IndexTerm;
using graph::Node;
using graph::Shape;
using kernel::Op;

namespace {

kernel::TypeId memoryType(kernel::Builder& b, DType dtype) { return b.types().scalar(graph::memoryScalar(dtype)); }

/// The expression is an axis of `shape` as it is, and no longer than `extent`.
bool isAxisOf(const IndexExpr& expr, const Shape& shape, int64_t extent) {
  if (expr.offset != 0 || expr.terms.size() != 1) return false;
  const IndexTerm& term = expr.terms.front();
  return term.axis >= 0 && term == graph::axisExpr(term.axis).terms.front() && shape.extent(static_cast<size_t>(term.axis)) <= extent;
}

/// What so many elements take.
int64_t wordsOf(DType dtype, int64_t elements) {
  const int64_t per_word = graph::elementsPerWord(dtype);
  return (elements + per_word - 1) / per_word;
}

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
  std::map<uint32_t, kernel::ValueId> variables;  // by binding
  auto declare = [&](const std::vector<uint32_t>& numbers, const graph::TensorType& type, kernel::Access access, const std::string& name) {
    Windows windows;
    int64_t left = wordsOf(type.dtype, type.shape.elementCount());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t words = i + 1 < numbers.size() ? window_ : left;
      left -= words;
      kernel::ValueId& variable = variables[numbers[i]];
      if (!variable.valid()) {
        variable = builder_.global({.name = numbers.size() == 1 ? name : fmt::format("{}_{}", name, i),
                                    .value = {},
                                    .type = builder_.types().array(memoryType(builder_, type.dtype), static_cast<uint32_t>(words)),
                                    .space = kernel::AddressSpace::Storage,
                                    .access = access,
                                    .group = 0,
                                    .binding = numbers[i],
                                    .initializer = {}});
      }
      windows.push_back(variable);
    }
    return windows;
  };
  // Results first: a binding that is written is read_write for the input that shares it.
  for (size_t i = 0; i < bindings.results.size(); ++i) {
    result_windows_.push_back(
        declare(bindings.results[i], body.typeOf(body.outputs[i].value), kernel::Access::ReadWrite, fmt::format("r{}", i)));
  }
  for (graph::ValueId input : inputsOf(body)) {
    size_t i = inputs_.size();
    inputs_[input] = i;
    input_windows_.push_back(declare(bindings.inputs[i], body.typeOf(input), kernel::Access::Read, fmt::format("a{}", i)));
  }
}

PositionId BodyEmitter::newPosition(Position position) {
  positions_.push_back(std::move(position));
  return static_cast<PositionId>(positions_.size() - 1);
}

PositionId BodyEmitter::flat(const Shape& shape, kernel::ValueId linear) {
  auto [found, inserted] = flat_positions_.try_emplace({linear, shape.extents()}, 0);
  if (inserted) found->second = newPosition({.shape = shape, .linear = linear, .row = {}, .column = {}});
  return found->second;
}

PositionId BodyEmitter::atAxes(const Shape& shape, std::vector<kernel::ValueId> axes, bool proven) {
  PositionId id = newPosition({.shape = shape, .linear = {}, .row = {}, .column = {}, .columns = 0, .proven = proven});
  for (size_t i = 0; i < axes.size(); ++i) scopes_.back().axes[{id, i}] = axes[i];
  return id;
}

PositionId BodyEmitter::inRow(const Shape& shape, kernel::ValueId row, kernel::ValueId column, int64_t columns) {
  return newPosition({.shape = shape, .linear = {}, .row = row, .column = column, .columns = columns});
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
  if (extent == 1) {
    out = builder_.u32(0);
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
  if (position.linear.valid()) {
    sum = position.linear;
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
  if (isLinearIdentity(whole, from.shape, source)) {
    if (from.linear.valid()) return flat(source, from.linear);
    // The row structure survives when the source has the same rows.
    IndexExpr unused;
    if (from.columns != 0 && rowOffset(source, from.columns, unused)) return inRow(source, from.row, from.column, from.columns);
  }
  for (PositionId known = root + 1; known < positions_.size(); ++known) {
    if (positions_[known].root == root && positions_[known].shape == source && positions_[known].map == whole) return known;
  }
  Position position{.shape = source, .linear = {}, .row = {}, .column = {}};
  position.proven = positions_[id].proven;
  position.root = root;
  position.map = std::move(whole);
  return newPosition(std::move(position));
}

void BodyEmitter::inWindow(const Windows& windows, kernel::ValueId index,
                           const std::function<void(kernel::ValueId, kernel::ValueId)>& use) {
  if (windows.size() == 1) return use(windows.front(), index);
  kernel::ValueId number = builder_.make(Op::Div, {index, builder_.u32(unsigned32(window_))});
  kernel::ValueId inside = builder_.make(Op::Rem, {index, builder_.u32(unsigned32(window_))});
  std::function<void(size_t)> from = [&](size_t i) {
    if (i + 1 == windows.size()) return use(windows[i], inside);
    kernel::ValueId here = builder_.make(Op::Eq, {number, builder_.u32(unsigned32(static_cast<int64_t>(i)))});
    builder_.ifThen(here, [&] { use(windows[i], inside); }, [&] { from(i + 1); });
  };
  from(0);
}

kernel::ValueId BodyEmitter::loadWord(graph::ValueId input, kernel::ValueId index, bool proven) {
  const Windows& windows = input_windows_[inputs_.at(input)];
  kernel::ValueId loaded, held;
  if (windows.size() > 1) held = builder_.var(memoryType(builder_, body_.typeOf(input).dtype), "element");
  inWindow(windows, index, [&](kernel::ValueId window, kernel::ValueId at) {
    loaded = builder_.load(builder_.access(window, {at}, proven));
    if (held.valid()) builder_.store(held, loaded);
  });
  return held.valid() ? builder_.load(held) : loaded;
}

BodyEmitter::WordPlace BodyEmitter::wordPlace(kernel::ValueId linear, int64_t per_word) {
  const kernel::ValueId count = builder_.u32(unsigned32(per_word));
  const auto known = neighbours_.find(linear);
  if (known == neighbours_.end() || known->second.width % per_word != 0)
    return {builder_.make(Op::Div, {linear, count}), builder_.make(Op::Rem, {linear, count})};
  const auto& [place, width, lane] = known->second;
  const int64_t words = width / per_word, number = lane / per_word;
  const kernel::ValueId element = builder_.u32(unsigned32(lane % per_word));
  const std::array<int64_t, 3> key{static_cast<int64_t>(place.value), words, number};
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (const auto found = scopes_[i].word_indices.find(key); found != scopes_[i].word_indices.end()) return {found->second, element};
  }
  kernel::ValueId word = place;
  if (words > 1) word = builder_.make(Op::Mul, {word, builder_.u32(unsigned32(words))});
  if (number > 0) word = builder_.make(Op::Add, {word, builder_.u32(unsigned32(number))});
  scopes_.back().word_indices[key] = word;
  return {word, element};
}

kernel::ValueId BodyEmitter::loadPacked(graph::ValueId input, kernel::ValueId linear, bool proven) {
  const DType dtype = body_.typeOf(input).dtype;
  const int64_t per_word = graph::elementsPerWord(dtype);
  const WordPlace at = wordPlace(linear, per_word);
  kernel::ValueId word;
  for (size_t i = scopes_.size(); i-- > 0 && !word.valid();) {
    if (const auto found = scopes_[i].words.find({input, at.word}); found != scopes_[i].words.end()) word = found->second;
  }
  if (!word.valid()) scopes_.back().words[{input, at.word}] = word = loadWord(input, at.word, proven);
  return graph::emitDecoded(builder_, dtype, word, at.place);
}

kernel::ValueId BodyEmitter::load(graph::ValueId input, kernel::ValueId linear, bool proven) {
  const DType dtype = body_.typeOf(input).dtype;
  if (graph::isPacked(dtype)) return loadPacked(input, linear, proven);
  const kernel::ValueId loaded = loadWord(input, linear, proven);
  return dtype == DType::Bool ? builder_.make(Op::Ne, {loaded, builder_.u32(0)}) : loaded;
}

kernel::ValueId BodyEmitter::guarded(graph::ValueId value, const IndexMap& map, PositionId position) {
  kernel::ValueId inside;
  for (const graph::IndexGuard& guard : map.guards) {
    // One unsigned comparison checks both ends: a position below `lo` wraps to a huge one.
    IndexExpr shifted = guard.expr;
    shifted.offset -= guard.lo;
    kernel::ValueId here = builder_.make(Op::Lt, {expression(shifted, position), builder_.u32(unsigned32(guard.hi - guard.lo))});
    inside = inside.valid() ? builder_.make(Op::And, {inside, here}) : here;
  }
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
    kernel::ValueId at = linear(through(path, body_.shapeOf(base), position));
    element = load(base, builder_.make(Op::Select, {builder_.u32(0), at, inside}), proven);
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
    out = load(value, linear(position), positions_[position].proven);
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

void BodyEmitter::store(size_t index, PositionId position, kernel::ValueId emitted) {
  if (graph::isPacked(body_.typeOf(body_.outputs[index].value).dtype)) internalError("an element of a packed result was stored alone");
  if (builder_.typeOf(emitted).isBool()) emitted = builder_.make(Op::Select, {builder_.u32(0), builder_.u32(1), emitted});
  inWindow(result_windows_[index], linear(position),
           [&](kernel::ValueId window, kernel::ValueId at) { builder_.store(builder_.access(window, {at}, true), emitted); });
}

void BodyEmitter::storeVector(kernel::ValueId place, int64_t width, int64_t count) {
  pushScope();
  const kernel::ValueId first = builder_.make(Op::Mul, {place, builder_.u32(unsigned32(width))});
  std::vector<kernel::ValueId> linears;
  for (int64_t lane = 0; lane < count; ++lane) {
    linears.push_back(lane == 0 ? first : builder_.make(Op::Add, {first, builder_.u32(unsigned32(lane))}));
    neighbours_[linears.back()] = {place, width, lane};
  }
  std::vector<std::vector<kernel::ValueId>> values(body_.outputs.size());
  for (const kernel::ValueId linear : linears) {
    for (size_t i = 0; i < values.size(); ++i) {
      const graph::ValueId result = body_.outputs[i].value;
      values[i].push_back(value(result, flat(body_.shapeOf(result), linear)));
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const graph::ValueId result = body_.outputs[i].value;
    const DType dtype = body_.typeOf(result).dtype;
    const int64_t per_word = graph::elementsPerWord(dtype);
    for (int64_t lane = 0; lane < count; lane += per_word) {
      const kernel::ValueId linear = linears[static_cast<size_t>(lane)];
      if (per_word == 1) {
        store(i, flat(body_.shapeOf(result), linear), values[i][static_cast<size_t>(lane)]);
        continue;
      }
      const std::span all(values[i]);
      const kernel::ValueId word =
          packed(dtype, all.subspan(static_cast<size_t>(lane), static_cast<size_t>(std::min(per_word, count - lane))));
      inWindow(result_windows_[i], wordPlace(linear, per_word).word,
               [&](kernel::ValueId window, kernel::ValueId at) { builder_.store(builder_.access(window, {at}, true), word); });
    }
  }
  popScope();
}

/// A word of up to as many elements as it holds, the first one in the lowest bits.
kernel::ValueId BodyEmitter::packed(DType dtype, std::span<const kernel::ValueId> elements) {
  const auto bits = static_cast<uint32_t>(8 * graph::byteSize(dtype));
  kernel::ValueId word;
  for (size_t i = 0; i < elements.size(); ++i) {
    kernel::ValueId part = graph::emitEncoded(builder_, dtype, elements[i]);
    if (i > 0) part = builder_.make(Op::Shl, {part, builder_.u32(bits * static_cast<uint32_t>(i))});
    word = i == 0 ? part : builder_.make(Op::Or, {word, part});
  }
  return word;
}

void BodyEmitter::storeAll(std::span<const kernel::ValueId> linears) {
  struct Stored {
    size_t result;
    PositionId position;
    kernel::ValueId value;
  };
  pushScope();
  std::vector<Stored> all;
  for (const kernel::ValueId linear : linears) {
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const PositionId position = flat(body_.shapeOf(body_.outputs[i].value), linear);
      all.push_back({i, position, value(body_.outputs[i].value, position)});
    }
  }
  for (const Stored& stored : all) store(stored.result, stored.position, stored.value);
  popScope();
}

}  // namespace lockstep::passes
