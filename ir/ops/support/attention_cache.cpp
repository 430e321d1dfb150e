// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace lockstep::graph {

namespace {

template <class Number>
Number optional(const Attributes& attributes, std::string_view name) {
  const Attribute* found = attributes.find(name);
  return found == nullptr ? Number{} : std::get<Number>(*found);
}

}  // namespace

int64_t windowOf(const Node& node) { return optional<int64_t>(node.attributes, "window"); }
double softCapOf(const Node& node) { return optional<double>(node.attributes, "soft_cap"); }
int64_t sharesOf(const Node& node) { return std::max<int64_t>(optional<int64_t>(node.attributes, kSharesAttribute), 1); }

Result<AttentionExtents> checkCachedAttention(std::string_view op, const InferContext& c) {
  Attributes plain{{"causal", true}, {"offset", int64_t{0}}, {"scale", c.attributes.get<double>("scale")}};
  LS_CHECK(checkAttention(op, {c.graph, c.operands.first(3), plain}, {}));
  const AttentionExtents e(c.operands[0].shape, c.operands[1].shape, c.operands[2].shape);
  const TensorType& length = c.operands[3];
  if (length.dtype != DType::I32 || (length.shape.rank() != 0 && length.shape != Shape(e.leading))) {
    return violated(op, "C5",
                    fmt::format("the length is {}, wanted {} or {}", toString(length), toString(i32({})), toString(i32(Shape(e.leading)))));
  }
  const auto window = optional<int64_t>(c.attributes, "window");
  const auto soft_cap = optional<double>(c.attributes, "soft_cap");
  if (window < 0 || window > INT32_MAX || !(soft_cap >= 0 && std::isfinite(soft_cap)))
    return violated(op, "C7", fmt::format("the window is {} and the soft cap {}", window, soft_cap));
  return e;
}

TemplateTensor lengthTensor(const AttentionExtents& e, const Shape& length) {
  const Shape space{e.batches()}, heads = e.with({e.heads});
  IndexMap of_heads;
  for (size_t axis = 0; axis < length.rank(); ++axis) of_heads.source.push_back(axisExpr(static_cast<int32_t>(axis)));
  return {.name = "length", .space = space, .map = compose(reshapeMap(space, heads), of_heads, heads)};
}

namespace {

constexpr double kLowest = -std::numeric_limits<float>::max();

/// The keys [first, end) that a query sees. Those from `own` on are not in the cache but operands of their own.
struct SeenKeys {
  int64_t head, first, own, end;
  [[nodiscard]] int64_t cached() const { return std::clamp(own, first, end) - first; }
};

/// What a share of the keys comes to: the sum of weighted values, that of the weights, and the highest score, by which weights are scaled.
struct WeighedKeys {
  std::vector<double> sums;
  double total = 0, highest = kLowest;
};

class CachedAttention {
 public:
  explicit CachedAttention(const EvaluateContext& c)
      : c_(c),
        e_(c.operands[0]->type.shape, c.operands[1]->type.shape, c.operands[2]->type.shape),
        scale_(c.node.attributes.get<double>("scale")),
        soft_cap_(softCapOf(c.node)),
        window_(windowOf(c.node)),
        shares_(sharesOf(c.node)) {}

  [[nodiscard]] Tensor evaluate() const {
    Tensor out{c_.results[0], {}};
    out.data.resize(static_cast<size_t>(out.type.shape.elementCount()));
    for (int64_t batch = 0; batch < e_.batches(); ++batch) {
      for (int64_t query = 0; query < e_.queries; ++query) {
        const int64_t row = batch * e_.queries + query;
        const SeenKeys seen = seenBy(batch, query);
        const std::vector<double> scores = scoresOf(row, seen);
        for (int64_t share = 0; share < shares_; ++share) store(out, row, share, weigh(seen, scores, share));
      }
    }
    return out;
  }

 private:
  [[nodiscard]] bool hasOwn() const { return c_.operands.size() > 4; }

  [[nodiscard]] SeenKeys seenBy(int64_t batch, int64_t query) const {
    const std::vector<double>& length = c_.operands[3]->data;
    // More keys than there are count as all of them.
    const auto named = static_cast<int64_t>(length[length.size() == 1 ? 0 : static_cast<size_t>(batch / e_.heads)]);
    const int64_t positions = std::min(named, e_.keys), first_own = positions - e_.queries;
    const int64_t end = std::clamp<int64_t>(first_own + query + 1, 0, e_.keys);
    return {.head = batch / e_.group(),
            .first = window_ == 0 ? 0 : std::max<int64_t>(end - window_, 0),
            .own = hasOwn() ? first_own : end,
            .end = end};
  }

  /// Of the keys (operand 1) or the values (operand 2), whose rows have `width` elements.
  [[nodiscard]] double element(size_t operand, const SeenKeys& seen, int64_t key, int64_t width, int64_t d) const {
    const bool is_own = key >= seen.own;
    const int64_t row = is_own ? seen.head * e_.queries + key - seen.own : seen.head * e_.keys + key;
    return c_.operands[is_own ? operand + 3 : operand]->data[static_cast<size_t>(row * width + d)];
  }

  [[nodiscard]] std::vector<double> scoresOf(int64_t row, const SeenKeys& seen) const {
    std::vector<double> scores;
    for (int64_t key = seen.first; key < seen.end; ++key) {
      double score = 0;
      for (int64_t d = 0; d < e_.width; ++d)
        score += c_.operands[0]->data[static_cast<size_t>(row * e_.width + d)] * element(1, seen, key, e_.width, d);
      score *= scale_;
      scores.push_back(soft_cap_ > 0 ? soft_cap_ * std::tanh(score / soft_cap_) : score);
    }
    return scores;
  }

  /// Shares are of the keys in the cache; the others belong to the first one.
  [[nodiscard]] WeighedKeys weigh(const SeenKeys& seen, const std::vector<double>& scores, int64_t share) const {
    const int64_t per_share = (seen.cached() + shares_ - 1) / shares_;
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < std::ssize(scores); ++i) {
      if ((i < seen.cached() ? i / per_share : 0) == share) keys.push_back(i);
    }
    WeighedKeys made{.sums = std::vector<double>(static_cast<size_t>(e_.value_width), 0)};
    for (const int64_t i : keys) made.highest = std::max(made.highest, scores[static_cast<size_t>(i)]);
    for (const int64_t i : keys) {
      const double power = std::exp(scores[static_cast<size_t>(i)] - made.highest);
      made.total += power;
      for (int64_t d = 0; d < e_.value_width; ++d)
        made.sums[static_cast<size_t>(d)] += power * element(2, seen, seen.first + i, e_.value_width, d);
    }
    return made;
  }

  /// A row of results; of several shares, those sums with the total and the highest score as a power of two, for join_shares.
  void store(Tensor& out, int64_t row, int64_t share, WeighedKeys made) const {
    if (shares_ == 1) {
      for (double& sum : made.sums) sum /= made.total;
    } else {
      made.sums.push_back(made.total);
      made.sums.push_back(std::max(made.highest * std::numbers::log2e, kLowest));
      if (std::isnan(made.total)) std::ranges::fill(made.sums, made.total);
    }
    const int64_t first = row * shares_ * std::ssize(made.sums) + share;
    for (int64_t d = 0; d < std::ssize(made.sums); ++d)
      out.data[static_cast<size_t>(first + d * shares_)] = made.sums[static_cast<size_t>(d)];
  }

  const EvaluateContext& c_;
  AttentionExtents e_;
  double scale_, soft_cap_;
  int64_t window_, shares_;
};

}  // namespace

std::vector<Tensor> evaluateCachedAttention(const EvaluateContext& c) { return {CachedAttention(c).evaluate()}; }

std::vector<OpCase> cachedAttentionCases() {
  const auto make = [](std::string_view name, const Shape& q, const Shape& k, int64_t value_width, const Shape& length, double least) {
    std::vector<int64_t> v = k.extents();
    v.back() = value_width;
    const auto keys = static_cast<double>(k.extent(k.rank() - 2));
    return OpCase{name,
                  {{f32(q)}, {f32(k)}, {f32(Shape(v))}, {i32(length), least, keys}},
                  {{"scale", 0.35}},
                  4e-6,
                  "two products, a softmax of scores below 16 and their roundings"};
  };
  const auto with = [](OpCase made, std::string_view name, int64_t window, double soft_cap) {
    made.name = name;
    made.attributes.set("window", window);
    made.attributes.set("soft_cap", soft_cap);
    return made;
  };
  return {with(make("", {2, 3, 1, 8}, {2, 3, 37, 8}, 8, {2}, 1), "window", 5, 0.0),
          with(make("", {2, 4, 3, 8}, {2, 2, 29, 8}, 8, {2}, 3), "capped", 0, 2.5),
          with(make("", {1, 2, 18, 4}, {1, 2, 23, 4}, 4, {1}, 18), "capped_prompt", 7, 1.5),
          make("token", {2, 3, 1, 8}, {2, 3, 37, 8}, 8, {}, 1),
          make("rows", {3, 4, 1, 4}, {3, 2, 21, 4}, 4, {3}, 1),
          make("several", {2, 6, 5, 5}, {2, 2, 19, 5}, 3, {2}, 5),
          make("wide", {1, 2, 2, 65}, {1, 1, 33, 65}, 67, {}, 2),
          make("heads_only", {2, 3, 4}, {2, 9, 4}, 4, {}, 3),
          make("longest", {1, 1, 1, 64}, {1, 1, 1031, 64}, 64, {}, 1031),
          make("prompt", {1, 2, 20, 4}, {1, 2, 23, 4}, 4, {1}, 20),
          make("many", {2, 2, 259, 16}, {2, 1, 301, 16}, 16, {2}, 259),
          make("two_axes", {2, 3, 2, 1, 4}, {2, 3, 1, 7, 4}, 4, {2, 3}, 1)};
}

}  // namespace lockstep::graph
