// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention_pattern.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::graph {
namespace {

/// A score that is so low, or lower, has the weight 0 beside one of ordinary size.
constexpr double kHides = -1e9;

/// Attributes of a match besides those of the op: whether there are these operands after q, k and v, and how axes are permuted.
constexpr std::string_view kAdded = "added",  // to the scores
    kVisible = "visible",                     // bool: elsewhere they are -inf
    kAxes[] = {"q_axes", "k_axes", "v_axes"}, kResultAxes = "result_axes";

using Axes = std::vector<int64_t>;

struct Pattern {
  std::array<ValueId, 3> operands = {};  ///< q, k and v
  std::array<Axes, 3> axes = {};         ///< which of theirs are those of heads before rows and width
  Axes result_axes = {};                 ///< of the attention's result, for that of the pattern
  std::optional<ValueId> added = {}, visible = {};
  double scale = 1;
  bool causal = false;
};

Axes inOrder(size_t rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// The labels of an equation of two operands.
struct Labels {
  std::string a, b, result;
};
Labels labelsOf(const Node& einsum) {
  const std::string& text = einsum.attributes.get<std::string>("equation");
  const size_t comma = text.find(','), arrow = text.find("->");
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
}

/// Where each of `wanted` is in `labels`; none where they are not the same labels.
std::optional<Axes> places(std::string_view labels, std::string_view wanted) {
  if (labels.size() != wanted.size()) return std::nullopt;
  Axes axes;
  for (const char label : wanted) {
    const size_t place = labels.find(label);
    if (place == std::string_view::npos) return std::nullopt;
    axes.push_back(static_cast<int64_t>(place));
  }
  return axes;
}

/// The one label of `from` that is not in `others`.
std::optional<char> onlyIn(std::string_view from, std::string_view others) {
  std::optional<char> found;
  for (const char label : from) {
    if (others.find(label) != std::string_view::npos) continue;
    if (found) return std::nullopt;
    found = label;
  }
  return found;
}

class Matcher {
 public:
  Matcher(const Graph& graph, std::span<const uint32_t> readers) : graph_(graph), readers_(readers) {}

  /// `node`: the product of weights and values.
  [[nodiscard]] std::optional<Pattern> match(const Node& node) const {
    Pattern pattern;
    if (!isProduct(node) || !takeValues(node, pattern)) return std::nullopt;
    const Node* softmax = inner(node.operands[0]);
    if (softmax == nullptr || !(is(*softmax, "softmax") || is(*softmax, "softmax_causal"))) return std::nullopt;
    pattern.causal = is(*softmax, "softmax_causal");
    ValueId scores = softmax->operands[0];
    while (std::optional<ValueId> next = unmask(scores, pattern)) scores = *next;
    while (std::optional<ValueId> next = unscale(scores, pattern)) scores = *next;
    const Node* product = inner(scores);
    if (product == nullptr || !isProduct(*product) || !takeScores(*product, pattern)) return std::nullopt;
    return fits(pattern) ? std::optional(pattern) : std::nullopt;
  }

 private:
  static bool is(const Node& node, std::string_view op) { return *node.op->name == op; }
  static bool isProduct(const Node& node) { return is(node, "matmul") || (is(node, "einsum") && node.operands.size() == 2); }

  /// weights [..., T, S] and v: the axes of v and of the result.
  [[nodiscard]] bool takeValues(const Node& node, Pattern& pattern) const {
    pattern.operands[2] = node.operands[1];
    pattern.axes[2] = inOrder(graph_.shapeOf(node.operands[1]).rank());
    pattern.result_axes = inOrder(graph_.shapeOf(node.results[0]).rank());
    if (is(node, "matmul")) return true;
    const Labels labels = labelsOf(node);
    const std::optional<char> width = onlyIn(labels.b, labels.a);
    if (!width || labels.a.size() < 2) return false;
    const std::string heads = labels.a.substr(0, labels.a.size() - 2);
    const char row = labels.a[heads.size()], key = labels.a.back();
    const std::optional<Axes> values = places(labels.b, heads + key + *width);
    const std::optional<Axes> result = places(heads + row + *width, labels.result);
    if (!values || !result) return false;
    pattern.axes[2] = *values;
    pattern.result_axes = *result;
    return true;
  }

  /// The product that is the scores [..., T, S], before they are scaled and masked.
  [[nodiscard]] bool takeScores(const Node& node, Pattern& pattern) const {
    for (size_t i = 0; i < 2; ++i) {
      pattern.operands[i] = node.operands[i];
      pattern.axes[i] = inOrder(graph_.shapeOf(node.operands[i]).rank());
    }
    if (is(node, "matmul")) {
      std::swap(pattern.axes[1][pattern.axes[1].size() - 2], pattern.axes[1].back());
      return true;
    }
    const Labels labels = labelsOf(node);
    const std::optional<char> width = onlyIn(labels.a, labels.result);
    if (!width || labels.result.size() < 2) return false;
    const std::string heads = labels.result.substr(0, labels.result.size() - 2);
    const char row = labels.result[heads.size()], key = labels.result.back();
    const std::optional<Axes> q = places(labels.a, heads + row + *width), k = places(labels.b, heads + key + *width);
    if (!q || !k) return false;
    pattern.axes[0] = *q;
    pattern.axes[1] = *k;
    return true;
  }

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
      if (isProduct(*maker)) return true;
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
    std::array<std::vector<int64_t>, 3> leading;
    for (size_t i = 0; i < 3; ++i) {
      const Shape& shape = graph_.shapeOf(pattern.operands[i]);
      for (size_t axis = 0; axis + 2 < shape.rank(); ++axis) leading[i].push_back(shape.extent(static_cast<size_t>(pattern.axes[i][axis])));
    }
    return leading[0] == leading[1] && leading[0] == leading[2];
  }

  const Graph& graph_;
  std::span<const uint32_t> readers_;
};

ValueId permuted(Builder& b, ValueId x, const Axes& axes) { return axes == inOrder(axes.size()) ? x : b.permute(x, axes); }

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
  Spelled found{.operands = {pattern->operands.begin(), pattern->operands.end()},
                .attributes = {{"causal", pattern->causal}, {"scale", pattern->scale}}};
  for (size_t i = 0; i < 3; ++i) found.attributes.set(std::string(kAxes[i]), pattern->axes[i]);
  found.attributes.set(std::string(kResultAxes), pattern->result_axes);
  found.attributes.set(std::string(kAdded), pattern->added.has_value());
  found.attributes.set(std::string(kVisible), pattern->visible.has_value());
  for (const std::optional<ValueId>& mask : {pattern->added, pattern->visible}) {
    if (mask) found.operands.push_back(*mask);
  }
  return found;
}

ValueId buildAttention(Builder& b, const Spelled& spelled, const Shape& result) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < 3; ++i) operands.push_back(withHeads(b, permuted(b, spelled.operands[i], spelled.attributes.get<Axes>(kAxes[i]))));
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
  const ValueId out = b.make("scaled_dot_product_attention", operands, attributes);
  // The axes of the result without the heads that a matrix was given.
  const auto& axes = spelled.attributes.get<Axes>(kResultAxes);
  if (axes == inOrder(axes.size())) return b.reshape(out, result);
  std::vector<int64_t> extents(axes.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) extents[static_cast<size_t>(axes[axis])] = result.extent(axis);
  return b.permute(b.reshape(out, Shape(extents)), axes);
}

}  // namespace lockstep::graph
