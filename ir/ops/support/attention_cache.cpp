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

struct ShareOfRow {
  int64_t row, share, shares;
};
void storeShare(Tensor& out, ShareOfRow place, std::vector<double> sums, double total, double highest) {
  out.data.resize(static_cast<size_t>(out.type.shape.elementCount()));
  sums.push_back(total);
  sums.push_back(std::max(highest * std::numbers::log2e, kLowest));
  const int64_t first = place.row * place.shares * std::ssize(sums) + place.share;
  for (int64_t d = 0; d < std::ssize(sums); ++d)
    out.data[static_cast<size_t>(first + d * place.shares)] = std::isnan(total) ? total : sums[static_cast<size_t>(d)];
}

}  // namespace

std::vector<Tensor> evaluateCachedAttention(const EvaluateContext& c) {
  const AttentionExtents e(c.operands[0]->type.shape, c.operands[1]->type.shape, c.operands[2]->type.shape);
  const std::vector<double>&q = c.operands[0]->data, &k = c.operands[1]->data, &v = c.operands[2]->data, &length = c.operands[3]->data;
  const auto scale = c.node.attributes.get<double>("scale");
  const double soft_cap = softCapOf(c.node);
  const int64_t window = windowOf(c.node), shares = sharesOf(c.node);
  // The last keys and values may come as operands of their own, in place of those of the cache.
  const bool has_own = c.operands.size() > 4;
  const auto element = [&](size_t own, const std::vector<double>& cache, int64_t head, int64_t key, int64_t first_own, int64_t row,
                           int64_t d) {
    if (!has_own || key < first_own) return cache[static_cast<size_t>((head * e.keys + key) * row + d)];
    return c.operands[own]->data[static_cast<size_t>((head * e.queries + key - first_own) * row + d)];
  };
  Tensor out{c.results[0], {}};
  for (int64_t batch = 0; batch < e.batches(); ++batch) {
    // More keys than there are count as all of them.
    const auto named = static_cast<int64_t>(length[length.size() == 1 ? 0 : static_cast<size_t>(batch / e.heads)]);
    const int64_t positions = std::min(named, e.keys);
    const int64_t head = batch / e.group(), first_own = positions - e.queries;
    for (int64_t query = 0; query < e.queries; ++query) {
      const int64_t seen = std::clamp<int64_t>(positions - e.queries + query + 1, 0, e.keys), row = batch * e.queries + query;
      const int64_t first = window == 0 ? 0 : std::max<int64_t>(seen - window, 0);
      const int64_t cached = std::max<int64_t>((has_own ? std::clamp<int64_t>(first_own, 0, seen) : seen) - first, 0);
      const int64_t per_share = (cached + shares - 1) / shares;
      std::vector<double> scores;
      for (int64_t key = first; key < seen; ++key) {
        double score = 0;
        for (int64_t d = 0; d < e.width; ++d)
          score += q[static_cast<size_t>(row * e.width + d)] * element(4, k, head, key, first_own, e.width, d);
        score *= scale;
        scores.push_back(soft_cap > 0 ? soft_cap * std::tanh(score / soft_cap) : score);
      }
      for (int64_t share = 0; share < shares; ++share) {
        const auto isOfShare = [&](int64_t key) { return (key - first < cached ? (key - first) / per_share : 0) == share; };
        double highest = kLowest, total = 0;
        std::vector<double> sums(static_cast<size_t>(e.value_width), 0);
        for (int64_t key = first; key < seen; ++key) {
          if (isOfShare(key)) highest = std::max(highest, scores[static_cast<size_t>(key - first)]);
        }
        for (int64_t key = first; key < seen; ++key) {
          if (!isOfShare(key)) continue;
          const double power = std::exp(scores[static_cast<size_t>(key - first)] - highest);
          total += power;
          for (int64_t d = 0; d < e.value_width; ++d)
            sums[static_cast<size_t>(d)] += power * element(5, v, head, key, first_own, e.value_width, d);
        }
        if (shares == 1) {
          for (const double sum : sums) out.data.push_back(sum / total);
        } else {
          storeShare(out, {row, share, shares}, std::move(sums), total, highest);
        }
      }
    }
  }
  return {std::move(out)};
}

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
