// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention_pattern.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace lockstep::graph {
namespace {

/// A score that is so low, or lower, has the weight 0 beside one of ordinary size.
constexpr double kHides = -1e9;

/// Attributes of a match besides those of the op: whether there are these operands after q, k transposed and v.
constexpr std::string_view kAdded = "added",  // to the scores
    kVisible = "visible";                     // bool: elsewhere they are -inf

struct Pattern {
  ValueId q, k_transposed, v;
  std::optional<ValueId> added = {}, visible = {};
  double scale = 1;
  bool causal = false;
};

class Matcher {
 public:
  Matcher(const Graph& graph, std::span<const uint32_t> readers) : graph_(graph), readers_(readers) {}

  /// `node`: the product of weights and values.
  [[nodiscard]] std::optional<Pattern> match(const Node& node) const {
    if (!is(node, "matmul")) return std::nullopt;
    const Node* softmax = inner(node.operands[0]);
    if (softmax == nullptr || !(is(*softmax, "softmax") || is(*softmax, "softmax_causal"))) return std::nullopt;
    Pattern pattern{.q = {}, .k_transposed = {}, .v = node.operands[1], .causal = is(*softmax, "softmax_causal")};
    ValueId scores = softmax->operands[0];
    while (std::optional<ValueId> next = unmask(scores, pattern)) scores = *next;
    while (std::optional<ValueId> next = unscale(scores, pattern)) scores = *next;
    const Node* product = inner(scores);
    if (product == nullptr || !is(*product, "matmul")) return std::nullopt;
    pattern.q = product->operands[0];
    pattern.k_transposed = product->operands[1];
    return fits(pattern) ? std::optional(pattern) : std::nullopt;
  }

 private:
  static bool is(const Node& node, std::string_view op) { return *node.op->name == op; }

  /// Who makes a value that has one reader; null where it has more.
  [[nodiscard]] const Node* inner(ValueId value) const { return readers_[value.index()] == 1 ? &graph_.definition(value) : nullptr; }

  [[nodiscard]] ValueId withoutBroadcast(ValueId value) const {
    while (is(graph_.definition(value), "broadcast_to")) value = graph_.definition(value).operands[0];
    return value;
  }
  /// The number that all elements of a value are.
  [[nodiscard]] std::optional<double> number(ValueId value) const {
    const Node& maker = graph_.definition(withoutBroadcast(value));
    return leafKind(maker) == LeafKind::Constant ? std::optional(maker.attributes.get<double>("value")) : std::nullopt;
  }
  /// Whether a value comes from a product by what match() looks through.
  [[nodiscard]] bool isScores(ValueId value) const {
    for (const Node* maker = inner(value); maker != nullptr; maker = inner(maker->operands[0])) {
      if (is(*maker, "matmul")) return true;
      if (!is(*maker, "mul") && !is(*maker, "div") && !is(*maker, "where_causal") && !is(*maker, "add")) return false;
    }
    return false;
  }

  /// The scores without what hides some of them or is added to them.
  std::optional<ValueId> unmask(ValueId scores, Pattern& pattern) const {
    const Node* maker = inner(scores);
    if (maker == nullptr) return std::nullopt;
    if (is(*maker, "where_causal") && maker->attributes.get<double>("fill") <= kHides) {
      pattern.causal = true;
      return maker->operands[0];
    }
    if (is(*maker, "where") && number(maker->operands[2]) == -std::numeric_limits<double>::infinity() && !pattern.visible) {
      pattern.visible = withoutBroadcast(maker->operands[0]);
      return maker->operands[1];
    }
    if (is(*maker, "add") && !pattern.added) {
      const size_t which = isScores(maker->operands[0]) ? 0 : 1;
      if (!isScores(maker->operands[which])) return std::nullopt;
      pattern.added = withoutBroadcast(maker->operands[1 - which]);
      return maker->operands[which];
    }
    return std::nullopt;
  }

  std::optional<ValueId> unscale(ValueId scores, Pattern& pattern) const {
    const Node* maker = inner(scores);
    if (maker == nullptr || !(is(*maker, "mul") || is(*maker, "div"))) return std::nullopt;
    const bool divides = is(*maker, "div");
    for (const size_t which : {size_t{1}, size_t{0}}) {
      const std::optional<double> factor = number(maker->operands[which]);
      if (!factor || (divides && which == 0)) continue;
      const double scale = divides ? pattern.scale / *factor : pattern.scale * *factor;
      if (!std::isfinite(scale)) return std::nullopt;
      pattern.scale = scale;
      return maker->operands[1 - which];
    }
    return std::nullopt;
  }

  /// Equal leading axes: products broadcast them, attention does not.
  [[nodiscard]] bool fits(const Pattern& pattern) const {
    const std::vector<int64_t> q = graph_.shapeOf(pattern.q).extents(), k = graph_.shapeOf(pattern.k_transposed).extents(),
                               v = graph_.shapeOf(pattern.v).extents();
    if (q.size() != k.size() || q.size() != v.size()) return false;
    const auto leading = static_cast<std::ptrdiff_t>(q.size()) - 2;
    return std::equal(q.begin(), q.begin() + leading, k.begin()) && std::equal(q.begin(), q.begin() + leading, v.begin());
  }

  const Graph& graph_;
  std::span<const uint32_t> readers_;
};

/// A matrix as the heads of one sequence.
ValueId withHeads(Builder& b, ValueId x) {
  std::vector<int64_t> extents = b.shapeOf(x).extents();
  if (extents.size() > 2) return x;
  extents.insert(extents.begin(), 1);
  return b.reshape(x, Shape(extents));
}

}  // namespace

std::optional<Spelled> findAttention(const Graph& graph, const Node& last, std::span<const uint32_t> readers) {
  const std::optional<Pattern> pattern = Matcher(graph, readers).match(last);
  if (!pattern) return std::nullopt;
  Spelled found{.operands = {pattern->q, pattern->k_transposed, pattern->v},
                .attributes = {{"causal", pattern->causal}, {"scale", pattern->scale}}};
  found.attributes.set(std::string(kAdded), pattern->added.has_value());
  found.attributes.set(std::string(kVisible), pattern->visible.has_value());
  for (const std::optional<ValueId>& mask : {pattern->added, pattern->visible}) {
    if (mask) found.operands.push_back(*mask);
  }
  return found;
}

ValueId buildAttention(Builder& b, const Spelled& spelled, const Shape& result) {
  std::vector<ValueId> operands{withHeads(b, spelled.operands[0]), withHeads(b, b.swapLastAxes(spelled.operands[1])),
                                withHeads(b, spelled.operands[2])};
  const bool added = spelled.attributes.get<bool>(kAdded), visible = spelled.attributes.get<bool>(kVisible);
  std::optional<ValueId> mask;
  if (added) mask = spelled.operands[3];
  if (visible) {
    const Shape shape = b.shapeOf(spelled.operands.back());
    const ValueId hidden =
        b.make("where", {spelled.operands.back(), b.constant(0, shape), b.constant(-std::numeric_limits<double>::infinity(), shape)});
    mask = mask ? b.add(*mask, hidden) : hidden;
  }
  if (mask) operands.push_back(*mask);
  const Attributes attributes{
      {"causal", spelled.attributes.get<bool>("causal")}, {"offset", int64_t{0}}, {"scale", spelled.attributes.get<double>("scale")}};
  return b.reshape(b.make("scaled_dot_product_attention", operands, attributes), result);
}

}  // namespace lockstep::graph
