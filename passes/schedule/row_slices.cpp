// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_slices.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph/builder.h"
#include "ir/graph/kernel_scalar.h"
#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// The axis that is cut: the first one that counts anything. The rank when there is none.
size_t leadingAxis(const Shape& shape) {
  size_t axis = 0;
  while (axis < shape.rank() && shape.extent(axis) == 1) ++axis;
  return axis;
}

bool mentions(const IndexExpr& expr, size_t axis) {
  return std::any_of(expr.terms.begin(), expr.terms.end(), [&](const IndexTerm& term) {
    return term.axis >= 0 ? static_cast<size_t>(term.axis) == axis : mentions(term.inner.front(), axis);
  });
}

/// Emits one element to see whether the op asks where it is: its value then depends on more than the operands.
class PositionProbe : public ElementEmitter {
 public:
  PositionProbe(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    builder_.enterFunction(builder_.function("probe", builder_.types().voidType()));
    index_.assign(graph.shapeOf(node.results[0]).rank(), builder_.u32(0));
  }
  bool asks() {
    (void)std::get<ElementLowering>(*node_.op->lower).emit(*this);
    return asked_;
  }
  kernel::Builder& builder() override { return builder_; }
  const Graph& graph() override { return graph_; }
  const Node& node() override { return node_; }
  std::span<const kernel::ValueId> index() override {
    asked_ = true;
    return index_;
  }
  uint32_t width() override { return 1; }
  kernel::ValueId operand(size_t i) override { return kernelConstant(builder_, graph_.typeOf(node_.operands[i]).dtype, 0); }
  kernel::ValueId operandAt(size_t i, std::vector<kernel::ValueId>) override {
    asked_ = true;
    return operand(i);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  kernel::Builder builder_;
  std::vector<kernel::ValueId> index_;
  bool asked_ = false;
};

struct State {
  const Graph& body;
  std::vector<std::optional<bool>> cut;  // by value

  /// Notes how `value` is needed, and what follows for its operands. False when that cannot be.
  bool need(ValueId value, bool in_slices) {
    std::optional<bool>& known = cut[value.index()];
    if (known.has_value()) return *known == in_slices;
    const Node& node = body.definition(value);
    for (const ValueId result : node.results) cut[result.index()] = in_slices;
    if (!in_slices) return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return need(operand, false); });
    size_t lead = leadingAxis(body.shapeOf(value));
    if (lead == body.shapeOf(value).rank()) return false;
    if (std::holds_alternative<StorageLowering>(*node.op->lower)) return node.operands.empty();
    if (std::holds_alternative<ElementLowering>(*node.op->lower)) {
      return !PositionProbe(body, node).asks() && needAll(node);
    }
    if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) return needView(node, view->map(body, node), lead);
    if (const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower)) {
      std::vector<int64_t> axes = reduce->axes(body, node);
      auto operand_lead = static_cast<int64_t>(leadingAxis(body.shapeOf(node.operands[0])));
      return std::find(axes.begin(), axes.end(), operand_lead) == axes.end() && need(node.operands[0], true);
    }
    if (const auto* scan = std::get_if<ScanLowering>(&*node.op->lower)) {
      const auto operand_lead = static_cast<int64_t>(leadingAxis(body.shapeOf(node.operands[0])));
      return scan->axis(body, node) != operand_lead && needAll(node);
    }
    return false;
  }

  /// All operands, in slices.
  bool needAll(const Node& node) {
    return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return need(operand, true); });
  }

  bool needView(const Node& node, const IndexMap& map, size_t lead) {
    ValueId operand = node.operands[0];
    const Shape &shape = body.shapeOf(node.results[0]), &source = body.shapeOf(operand);
    if (isLinearIdentity(map, shape, source)) return need(operand, true);
    auto asks = [&](const IndexExpr& expr) { return mentions(expr, lead); };
    bool guarded = std::any_of(map.guards.begin(), map.guards.end(), [&](const IndexGuard& guard) { return asks(guard.expr); });
    if (guarded) return false;
    // Every row reads the same elements: a bias, a scalar.
    if (std::none_of(map.source.begin(), map.source.end(), asks)) return need(operand, false);
    if (isRowProjection(map, shape, source, shape.elementCount() / source.elementCount())) return need(operand, true);
    // Row i reads row i, in an order of its own.
    size_t source_lead = leadingAxis(source);
    bool same_rows = source_lead < source.rank() && source.extent(source_lead) == shape.extent(lead) &&
                     map.source[source_lead] == axisExpr(static_cast<int32_t>(lead));
    return same_rows && std::count_if(map.source.begin(), map.source.end(), asks) == 1 && need(operand, true);
  }
};

Shape share(const Shape& shape, int64_t rows, int64_t of) {
  std::vector<int64_t> extents = shape.extents();
  size_t lead = leadingAxis(shape);
  extents[lead] = extents[lead] / of * rows;
  return Shape(extents);
}

}  // namespace

std::optional<RowCut> cutRows(const Graph& body) {
  State state{body, std::vector<std::optional<bool>>(body.values.size())};
  for (const Output& output : body.outputs) {
    if (!state.need(output.value, true)) return std::nullopt;
  }
  RowCut out{0, std::vector<bool>(body.values.size(), false)};
  for (size_t i = 0; i < body.values.size(); ++i) {
    if (!state.cut[i].value_or(false)) continue;
    const Shape& shape = body.shapeOf(ValueId(i));
    out.cut[i] = true;
    out.rows = std::gcd(out.rows, shape.extent(leadingAxis(shape)));
  }
  return out;
}

std::optional<Graph> sliceRows(const Graph& body, const RowCut& cut, int64_t rows) {
  Builder builder;
  builder.mutableGraph().constants = body.constants;
  builder.mutableGraph().locations = body.locations;
  std::map<ValueId, ValueId> map;
  for (NodeId id : body.body().nodes) {
    const Node& node = body[id];
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(map.at(operand));
    const bool is_cut = cut.cut[node.results[0].index()];
    Attributes attributes = node.attributes;
    if (attributes.find("shape") != nullptr && is_cut)
      attributes.set("shape", share(body.shapeOf(node.results[0]), rows, cut.rows).extents());
    builder.setLocation(node.location);
    auto made = builder.tryMake(*node.op, operands, std::move(attributes));
    if (!made.ok()) return std::nullopt;
    for (size_t i = 0; i < node.results.size(); ++i) {
      TensorType type = body.typeOf(node.results[i]);
      if (is_cut) type.shape = share(type.shape, rows, cut.rows);
      if (builder.typeOf((*made)[i]) != type) return std::nullopt;
      map[node.results[i]] = (*made)[i];
    }
  }
  for (const Output& output : body.outputs) builder.output(output.kind, output.name, map.at(output.value));
  return builder.take();
}

}  // namespace lockstep::passes
