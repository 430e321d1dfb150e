// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/channels_last.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Fewer than these neighbours are no reason to move anything.
constexpr int64_t kNeighbours = 2;
/// Fewer channels would leave most columns of a tile empty.
constexpr int64_t kLeastChannels = 8;

/// By axis of [B, S..., C], the axis of [B, C, S...].
std::vector<int64_t> lastOrder(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

/// Whether an index of an image depends on its axes S.
bool asksForPixels(const IndexExpr& expr) {
  return std::ranges::any_of(expr.terms,
                             [](const IndexTerm& term) { return term.axis >= 2 || std::ranges::any_of(term.inner, asksForPixels); });
}

enum class Order : uint8_t { First, Last, Either };

class ChannelMover {
 public:
  explicit ChannelMover(const Graph& graph) : in_(graph), rewriter_(graph) {}

  Graph run() {
    for (const NodeId id : in_.body().nodes) {
      const Node& node = in_[id];
      b().setLocation(node.location);
      if (!widenLast(node) && !turnProduct(node) && !moveElements(node) && !moveReduction(node)) rewriter_.copy(node);
    }
    for (const Output& output : in_.outputs) rewriter_.copyOutput(output);
    return removeDead(rewriter_.take());
  }

 private:
  Builder& b() { return rewriter_.builder(); }

  /// A view of numbers of 16 bits that were widened is widened itself: then no arithmetic is below the edge of a window.
  bool widenLast(const Node& node) {
    if (!std::holds_alternative<ViewLowering>(*node.op->lower)) return false;
    const Node below = b().graph().definition(rewriter_[node.operands[0]]);
    if (leafName(below) != nullptr || !widens(b().graph(), below)) return false;
    const ValueId view = b().make(*node.op->name, {below.operands[0]}, node.attributes);
    rewriter_.set(node.results[0], b().make(*below.op->name, {view}, below.attributes));
    return true;
  }

  /// How an image lies in memory, as the new graph has it.
  Order orderOf(ValueId image) {
    const Shape shape = b().shapeOf(image);
    const ViewedValue viewed = throughWidened(b().graph(), image);
    if (leafKind(b().graph().definition(viewed.base)) == LeafKind::Constant) return Order::Either;
    const std::vector<int64_t> order = lastOrder(shape.rank());
    std::vector<int64_t> extents;
    IndexMap turned;
    turned.source.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      extents.push_back(shape.extent(static_cast<size_t>(order[i])));
      turned.source[static_cast<size_t>(order[i])] = axisExpr(static_cast<int32_t>(i));
    }
    // One value per channel, or per channel and image, has no pixels that could lie in any order, however large the buffer that it is in.
    if (std::ranges::none_of(viewed.map.source, asksForPixels)) return Order::Either;
    if (readsNeighbours(b().graph(), viewed.base, compose(turned, viewed.map, shape), Shape(extents))) return Order::Last;
    return cost::kSmallerBy * b().shapeOf(viewed.base).elementCount() <= shape.elementCount() ? Order::Either : Order::First;
  }

  /// An image with several channels and pixels.
  static bool isImage(const Shape& shape) {
    if (std::ranges::any_of(shape.dims(), [](const Dim& dim) { return dim.isSymbol(); })) return false;
    return shape.rank() >= 3 && shape.extent(1) % kNeighbours == 0 && shape.elementCount() > shape.extent(0) * shape.extent(1);
  }

  /// Whether the channels of all of these that have any order are last, and there is one.
  bool areLast(const std::vector<ValueId>& images) {
    bool some = false;
    for (const ValueId image : images) {
      const Order order = orderOf(image);
      if (order == Order::First) return false;
      some = some || order == Order::Last;
    }
    return some;
  }

  /// Weights [(G,) O, I] as a copy [(G,) I, O] in memory, of 16 bits where they are of such numbers: these are widened last.
  ValueId copied(ValueId weights) {
    const Node made = b().graph().definition(weights);
    const bool is_widened = leafName(made) == nullptr && widens(b().graph(), made);
    const ValueId copy = b().make("barrier", {b().swapLastAxes(is_widened ? made.operands[0] : weights)});
    return is_widened ? b().make(*made.op->name, {copy}, made.attributes) : copy;
  }

  /// An input, what elements make of one (a cast in mixed precision), or an image of so few channels that their order does not matter.
  bool comesFromOutside(ValueId value) {
    const Shape shape = b().shapeOf(value);
    if (shape.rank() >= 3 && shape.extent(1) < kLeastChannels) return true;
    for (;;) {
      const Node& node = b().graph().definition(value);
      if (leafName(node) != nullptr) return true;
      if (!std::holds_alternative<ElementLowering>(*node.op->lower) || node.operands.size() != 1) return false;
      value = throughViews(b().graph(), node.operands[0]).base;
    }
  }

  /// Whether a product should read its right operand, [B, (G,) I, P], by rows of I. What was computed may lie in the other order, because
  /// it met something that does; an image from outside does not, and what follows is better off with the new one.
  bool suitsRows(ValueId old) {
    const ValueId right = rewriter_[old];
    const ViewedValue viewed = throughWidened(b().graph(), right);
    if (comesFromOutside(viewed.base)) return true;
    const Shape shape = b().shapeOf(right);
    const size_t rank = shape.rank();
    std::vector<int64_t> extents = shape.extents();
    std::swap(extents[rank - 1], extents[rank - 2]);
    IndexMap swap = identityMap(rank);
    std::swap(swap.source[rank - 1], swap.source[rank - 2]);
    return readsNeighbours(b().graph(), viewed.base, compose(swap, viewed.map, shape), Shape(extents));
  }

  /// [(G,) O, I] [B, (G,) I, P].
  bool turnProduct(const Node& node) {
    static const OpDef* const matmul = &op("matmul");
    if (node.op != matmul) return false;
    const Shape a = in_.shapeOf(node.operands[0]), right = in_.shapeOf(node.operands[1]);
    const bool is_grouped = a.rank() == 3;
    if (right.rank() != a.rank() + 1 || (a.rank() != 2 && !is_grouped)) return false;
    if (std::ranges::any_of(right.dims(), [](const Dim& dim) { return dim.isSymbol(); })) return false;
    const int64_t groups = is_grouped ? a.extent(0) : 1, out = a.extent(a.rank() - 2), inner = a.extent(a.rank() - 1);
    const int64_t batch = right.extent(0), positions = right.extent(right.rank() - 1);
    // A single row is a vector, and a large product with one a sum by rows or columns (thinProducts).
    if (out < kLeastChannels && (out > 1 || is_grouped)) return false;
    if (is_grouped && right.extent(1) != groups) return false;
    // The axes of the result are those of the operands, turned in the same way.
    if (!suitsRows(node.operands[1])) return false;
    const std::vector<int64_t> turn = is_grouped ? std::vector<int64_t>{1, 0, 3, 2} : std::vector<int64_t>{0, 2, 1};
    const auto shape = [&](std::vector<int64_t> extents) {
      if (is_grouped) extents.insert(extents.begin(), groups);
      return Shape(extents);
    };
    const ValueId rows = b().reshape(b().permute(rewriter_[node.operands[1]], turn), shape({batch * positions, inner}));
    ValueId weights = rewriter_[node.operands[0]];
    if (out > 1 && batch * positions * groups * inner * out >= cost::kLeastQuadProducts) {
      const auto [known, is_new] = copies_.try_emplace(node.operands[0]);
      if (is_new) known->second = copied(weights);
      weights = known->second;
    } else {
      weights = b().swapLastAxes(weights);
    }
    const ValueId product = b().make("matmul", {rows, weights}, node.attributes);
    b().name(product, in_[node.results[0]].name);
    rewriter_.set(node.results[0], b().permute(b().reshape(product, shape({batch, positions, out})), turn));
    return true;
  }

  /// [B, S..., C] of [B, C, S...].
  ValueId moved(ValueId image) {
    const auto known = moved_.find(image);
    return known != moved_.end() ? known->second : b().permute(image, lastOrder(b().shapeOf(image).rank()));
  }

  bool moveElements(const Node& node) {
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    // The one op that asks where it is and has operands of its own shape.
    static const OpDef* const by_position = &op("where_causal");
    if (element == nullptr || element->scalar_only || node.op == by_position || widens(in_, node)) return false;
    if (node.operands.empty() || node.results.size() != 1) return false;
    const Shape shape = in_.shapeOf(node.results[0]);
    if (!isImage(shape)) return false;
    if (std::ranges::any_of(node.operands, [&](ValueId operand) { return in_.shapeOf(operand) != shape; })) return false;
    const std::vector<ValueId> operands = rewriter_.mapped(node.operands);
    if (!areLast(operands)) return false;
    std::vector<ValueId> last;
    for (const ValueId operand : operands) last.push_back(moved(operand));
    finish(node, b().make(*node.op->name, last, node.attributes), lastOrder(shape.rank()));
    return true;
  }

  bool moveReduction(const Node& node) {
    const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower);
    if (reduce == nullptr || node.operands.size() != 1 || !isImage(in_.shapeOf(node.operands[0]))) return false;
    const ValueId operand = rewriter_[node.operands[0]];
    if (!areLast({operand})) return false;
    const std::vector<int64_t> axes = reduce->axes(in_, node), order = lastOrder(in_.shapeOf(node.operands[0]).rank());
    const auto isReduced = [&](int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); };
    std::vector<int64_t> now, kept;  // in the new order: axes that go; of those that stay, where they were
    for (size_t i = 0; i < order.size(); ++i) {
      if (isReduced(order[i])) now.push_back(static_cast<int64_t>(i));
      if (!isReduced(order[i]) || reduce->keep_dims(node)) kept.push_back(order[i]);
    }
    // What is left of the axes before one of these is its place in the result.
    std::vector<int64_t> sorted = kept;
    std::ranges::sort(sorted);
    for (int64_t& axis : kept) axis = std::ranges::find(sorted, axis) - sorted.begin();
    Attributes attributes = node.attributes;
    attributes.set("axes", std::move(now));
    finish(node, b().make(*node.op->name, {moved(operand)}, std::move(attributes)), kept);
    return true;
  }

  /// `order`: by axis of the new result, that of the old one.
  void finish(const Node& node, ValueId last, const std::vector<int64_t>& order) {
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    const ValueId first = std::ranges::is_sorted(back) ? last : b().permute(last, back);
    if (first != last && order == lastOrder(order.size())) moved_[first] = last;
    rewriter_.set(node.results[0], first);
    b().name(last, in_[node.results[0]].name);
  }

  const Graph& in_;
  Rewriter rewriter_;
  std::map<ValueId, ValueId> moved_;   // by image [B, C, S...]
  std::map<ValueId, ValueId> copies_;  // of weights, by the old value
};

}  // namespace

Graph channelsLast(const Graph& graph) { return ChannelMover(graph).run(); }

}  // namespace lockstep::passes
