// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/views.h"

#include <algorithm>
#include <tuple>
#include "passes/cost.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool sameAtom(const IndexTerm& a, const IndexTerm& b) { return a.axis == b.axis && a.inner == b.inner; }

/// c * (x / d % m) + c * m * (x / (d * m) [% m2]) = c * (x / d [% m * m2]): what a split followed by a merge of an axis leaves behind.
bool mergeOnce(IndexExpr& expr) {
  std::vector<IndexTerm>& terms = expr.terms;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = 0; j < terms.size(); ++j) {
      IndexTerm &low = terms[i], &high = terms[j];
      if (i == j || low.modulo == 0 || !sameAtom(low, high)) continue;
      if (high.divide != low.divide * low.modulo || high.coefficient != low.coefficient * low.modulo) continue;
      low.modulo = high.modulo == 0 ? 0 : low.modulo * high.modulo;
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
      return true;
    }
  }
  // An undivided sum spreads into the outer one.
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].axis >= 0 || terms[i].divide != 1 || terms[i].modulo != 0) continue;
    IndexTerm outer = terms[i];
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    expr.offset += outer.coefficient * outer.inner.front().offset;
    for (IndexTerm term : outer.inner.front().terms) {
      term.coefficient *= outer.coefficient;
      terms.push_back(std::move(term));
    }
    return true;
  }
  return false;
}

void sortTerms(IndexExpr& expr) {
  std::sort(expr.terms.begin(), expr.terms.end(), [](const IndexTerm& a, const IndexTerm& b) {
    return std::tie(a.axis, a.divide, a.modulo, a.coefficient) < std::tie(b.axis, b.divide, b.modulo, b.coefficient);
  });
}

}  // namespace

std::vector<ValueId> inputsOf(const Graph& body) {
  std::vector<ValueId> inputs;
  for (NodeId id : body.body().nodes) {
    if (leafName(body[id]) != nullptr) inputs.push_back(body[id].results[0]);
  }
  return inputs;
}

bool isView(const Graph& graph, ValueId value) { return std::holds_alternative<ViewLowering>(*graph.definition(value).op->lower); }

bool takesManyOperations(const Node& node) {
  const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
  return element != nullptr && element->operations != nullptr && element->operations(node) >= cost::kHeavyOperations;
}

bool widens(const Graph& graph, const Node& node) {
  return std::holds_alternative<ElementLowering>(*node.op->lower) && node.operands.size() == 1 &&
         isPacked(graph.typeOf(node.operands[0]).dtype) && graph.typeOf(node.results[0]).dtype == DType::F32;
}

ViewedValue throughViews(const Graph& graph, ValueId value) {
  ViewedValue viewed{.base = value, .map = identityMap(graph.shapeOf(value).rank())};
  while (leafName(graph.definition(viewed.base)) == nullptr && isView(graph, viewed.base)) {
    const Node& view = graph.definition(viewed.base);
    const IndexMap map{.source = std::get<ViewLowering>(*view.op->lower).map(graph, view).source, .guards = {}};
    viewed.map = compose(viewed.map, map, graph.shapeOf(viewed.base));
    viewed.base = view.operands[0];
  }
  return viewed;
}

ViewedValue throughWidened(const Graph& graph, ValueId value) {
  ViewedValue viewed = throughViews(graph, value);
  while (leafName(graph.definition(viewed.base)) == nullptr && widens(graph, graph.definition(viewed.base))) {
    const ValueId packed = graph.definition(viewed.base).operands[0];
    const ViewedValue below = throughViews(graph, packed);
    viewed = {.base = below.base, .map = compose(viewed.map, below.map, graph.shapeOf(packed))};
  }
  return viewed;
}

ValueId throughShapes(const Graph& graph, ValueId value) {
  for (;;) {
    const Node& node = graph.definition(value);
    const auto* view = std::get_if<ViewLowering>(&*node.op->lower);
    if (view == nullptr) return value;
    const Shape &shape = graph.shapeOf(value), &source = graph.shapeOf(node.operands[0]);
    if (shape.elementCount() != source.elementCount() || !isLinearIdentity(view->map(graph, node), shape, source)) return value;
    value = node.operands[0];
  }
}

ValueId viewInside(Graph& graph, std::vector<NodeId>& nodes, ValueId like, ValueId source) {
  const NodeId id(graph.nodes.size());
  const ValueId made(graph.values.size());
  const TensorType type = graph.typeOf(like);
  graph.values.push_back({type, id, 0, {}});
  graph.nodes.push_back({.op = &op("reshape"),
                         .operands = {source},
                         .results = {made},
                         .attributes = {{"shape", type.shape.extents()}},
                         .regions = {},
                         .location = graph.definition(like).location});
  nodes.push_back(id);
  return made;
}

int64_t leastSeen(const Graph& graph, ValueId value) {
  int64_t least = graph.shapeOf(value).elementCount();
  for (; leafName(graph.definition(value)) == nullptr && isView(graph, value); value = graph.definition(value).operands[0])
    least = std::min(least, graph.shapeOf(graph.definition(value).operands[0]).elementCount());
  return least;
}

IndexExpr linearOffset(const IndexMap& map, const Shape& shape, const Shape& source) {
  IndexExpr sum;
  std::vector<int64_t> strides = source.strides();
  for (size_t axis = 0; axis < source.rank(); ++axis) {
    sum.offset += strides[axis] * map.source[axis].offset;
    for (IndexTerm term : map.source[axis].terms) {
      if (term.axis >= 0 && shape.extent(static_cast<size_t>(term.axis)) == 1) continue;  // always zero
      term.coefficient *= strides[axis];
      sum.terms.push_back(std::move(term));
    }
  }
  while (mergeOnce(sum)) {
  }
  sortTerms(sum);
  return sum;
}

bool rowOffset(const Shape& shape, int64_t drop, IndexExpr& offset) {
  offset = {};
  size_t rank = shape.rank();
  int64_t below = 1;
  while (below < drop) {
    if (rank == 0) return false;
    below *= shape.extent(--rank);
  }
  if (below != drop) return false;
  std::vector<int64_t> strides = shape.strides();
  for (size_t axis = 0; axis < rank; ++axis) {
    if (shape.extent(axis) != 1)
      offset.terms.push_back({.coefficient = strides[axis] / drop, .axis = static_cast<int32_t>(axis), .inner = {}});
  }
  sortTerms(offset);
  return true;
}

bool isLinearIdentity(const IndexMap& map, const Shape& shape, const Shape& source) {
  if (!map.guards.empty() || shape.elementCount() != source.elementCount()) return false;
  IndexExpr expected;
  return rowOffset(shape, 1, expected) && linearOffset(map, shape, source) == expected;
}

bool isPartOfRows(const IndexMap& map, const Shape& shape, const Shape& source) {
  if (!map.guards.empty() || source.rank() == 0) return false;
  const int64_t wide = source.extent(source.rank() - 1), rows = source.elementCount() / wide;
  if (shape.elementCount() % rows != 0) return false;
  const int64_t columns = shape.elementCount() / rows;
  IndexExpr offset = linearOffset(map, shape, source), expected, of_rows;
  if (offset.offset < 0 || offset.offset + columns > wide) return false;
  if (!rowOffset(shape, columns, of_rows) || !rowOffset(shape, 1, expected)) return false;
  offset.offset = 0;
  for (IndexTerm& term : expected.terms) {
    if (term.coefficient < columns) continue;
    if (term.coefficient % columns != 0) return false;
    term.coefficient = term.coefficient / columns * wide;
  }
  return offset == expected;
}

bool isRowProjection(const IndexMap& map, const Shape& shape, const Shape& source, int64_t columns) {
  if (!map.guards.empty() || shape.elementCount() != source.elementCount() * columns) return false;
  IndexExpr expected;
  return rowOffset(shape, columns, expected) && linearOffset(map, shape, source) == expected;
}

bool isContiguousSlice(const IndexMap& map, const Shape& shape, const Shape& source, int64_t alignment, int64_t& start) {
  if (!map.guards.empty()) return false;
  IndexExpr offset = linearOffset(map, shape, source), expected;
  start = offset.offset;
  offset.offset = 0;
  return start % alignment == 0 && rowOffset(shape, 1, expected) && offset == expected;
}

std::optional<std::vector<ValueId>> packedParts(const Graph& graph, ValueId value) {
  const int64_t length = graph.shapeOf(value).elementCount();
  int64_t begin = 0;
  for (; isView(graph, value); value = graph.definition(value).operands[0]) {
    const Node& view = graph.definition(value);
    int64_t start = 0;
    const IndexMap map = std::get<ViewLowering>(*view.op->lower).map(graph, view);
    if (!isContiguousSlice(map, graph.shapeOf(value), graph.shapeOf(view.operands[0]), 1, start)) return std::nullopt;
    begin += start;
  }
  const Node& pack = graph.definition(value);
  if (!std::holds_alternative<AliasPack>(*pack.op->alias)) return std::nullopt;
  // Parts are in the order of their offsets.
  const auto& offsets = pack.attributes.get<std::vector<int64_t>>("offsets");
  const auto after = std::ranges::lower_bound(offsets, begin + length);
  auto first = std::ranges::upper_bound(offsets, begin);
  if (first != offsets.begin()) --first;  // it may reach into the slice
  const auto part = [&](auto offset) { return pack.operands.begin() + (offset - offsets.begin()); };
  return first < after ? std::vector<ValueId>(part(first), part(after)) : std::vector<ValueId>{};
}

}  // namespace lockstep::passes
