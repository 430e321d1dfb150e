// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::graph {

namespace {

/// Of a head that a workgroup has on its own: scores, and positions of either side.
constexpr int64_t kShortScores = 32 * 32, kShortLength = 64;

}  // namespace

AttentionExtents::AttentionExtents(const Shape& q, const Shape& k, const Shape& v) {
  const size_t rank = q.rank();
  heads = q.extent(rank - 3);
  kv_heads = k.extent(rank - 3);
  queries = q.extent(rank - 2);
  keys = k.extent(rank - 2);
  width = q.extent(rank - 1);
  value_width = v.extent(rank - 1);
  for (size_t axis = 0; axis + 3 < rank; ++axis) leading.push_back(q.extent(axis));
}

int64_t AttentionExtents::batches() const { return std::accumulate(leading.begin(), leading.end(), heads, std::multiplies<>()); }

Shape AttentionExtents::with(std::initializer_list<int64_t> last) const {
  std::vector<int64_t> extents = leading;
  extents.insert(extents.end(), last);
  return Shape(extents);
}

AttentionExtents attentionExtents(const Graph& graph, const Node& node) {
  return {graph.shapeOf(node.operands[0]), graph.shapeOf(node.operands[1]), graph.shapeOf(node.operands[2])};
}

int64_t scoreElements(const Graph& graph, const Node& node) { return attentionExtents(graph, node).scores().elementCount(); }

bool isShort(const AttentionExtents& e) { return e.queries * e.keys <= kShortScores && std::max(e.queries, e.keys) <= kShortLength; }

DType lowOf(const Node& node) {
  const Attribute* low = node.attributes.find(kLowAttribute);
  return low == nullptr ? DType::F32 : std::get<DType>(*low);
}

namespace {

bool fits(const TensorType& mask, const AttentionExtents& e) {
  const Shape scores = e.scores();
  return mask.dtype == DType::F32 && broadcastShapes(mask.shape, scores) == scores;
}

}  // namespace

Status checkAttention(std::string_view op, const InferContext& c, std::initializer_list<AttentionPart> parts) {
  const TensorType &q = c.operands[0], &k = c.operands[1], &v = c.operands[2];
  const auto shapes = [&] { return fmt::format("q is {}, k is {} and v is {}", toString(q), toString(k), toString(v)); };
  if (q.dtype != DType::F32 || k.dtype != DType::F32 || v.dtype != DType::F32) return violated(op, "C1", shapes() + ", wanted f32");
  const size_t rank = q.shape.rank();
  bool leading = rank >= 3 && k.shape.rank() == rank && v.shape.rank() == rank;
  for (size_t axis = 0; leading && axis + 3 < rank; ++axis) leading = q.shape[axis] == k.shape[axis] && q.shape[axis] == v.shape[axis];
  if (!leading) return violated(op, "C2", shapes());
  const AttentionExtents e(q.shape, k.shape, v.shape);
  if (e.width != k.shape.extent(rank - 1) || e.keys != v.shape.extent(rank - 2) || e.kv_heads != v.shape.extent(rank - 3))
    return violated(op, "C3", shapes());
  if (e.heads % e.kv_heads != 0) return violated(op, "C4", fmt::format("{} heads of k do not divide {} heads of q", e.kv_heads, e.heads));
  const int64_t offset = c.attributes.get<int64_t>("offset");
  if (offset < 0 || offset > INT32_MAX - e.queries)
    return violated(op, "C5", fmt::format("offset is {}, wanted at least 0 and a last position below 2^31", offset));
  if (!std::isfinite(c.attributes.get<double>("scale")))
    return violated(op, "C6", fmt::format("scale is {}, wanted a finite number", c.attributes.get<double>("scale")));
  const size_t fixed = 3 + parts.size();
  if (c.operands.size() > fixed + 1 || (c.operands.size() == fixed + 1 && !fits(c.operands[fixed], e))) {
    return violated(op, "C7",
                    fmt::format("there are {} masks, the last {}, wanted one that broadcasts to {}", c.operands.size() - fixed,
                                toString(c.operands.back()), toString(f32(e.scores()))));
  }
  size_t operand = 3;
  for (const AttentionPart part : parts) {
    const TensorType wanted = f32(part == AttentionPart::Out ? e.out() : e.rows());
    const TensorType& given = c.operands[operand++];
    if (given != wanted) return violated(op, "C8", fmt::format("operand {} is {}, wanted {}", operand, toString(given), toString(wanted)));
  }
  return Success{};
}

namespace {

/// From an index of the scores to one of what broadcasts to them.
IndexMap broadcastMap(const Shape& scores, const Shape& mask) {
  IndexMap map;
  const size_t further = scores.rank() - mask.rank();
  for (size_t axis = 0; axis < mask.rank(); ++axis)
    map.source.push_back(mask.extent(axis) == 1 ? IndexExpr{} : axisExpr(static_cast<int32_t>(axis + further)));
  return map;
}

TemplateTensor tensorOf(std::string_view name, const AttentionExtents& e, const Shape& tensor) {
  if (name == "mask") {
    const Shape space{e.batches(), e.queries, e.keys};
    return {.name = name, .space = space, .map = compose(reshapeMap(space, e.scores()), broadcastMap(e.scores(), tensor), e.scores())};
  }
  // All others are rows of queries or keys, with or without a width.
  const bool of_keys = name == "k" || name == "v" || name == "dk" || name == "dv",
             has_width = name != "lse" && name != "d_lse" && name != "delta";
  const int64_t batches = of_keys ? e.kvBatches() : e.batches(), rows = of_keys ? e.keys : e.queries;
  const Shape space = has_width ? Shape{batches, rows, tensor.extent(tensor.rank() - 1)} : Shape{batches, rows};
  return {.name = name, .space = space, .map = reshapeMap(space, tensor), .along_last = has_width};
}

}  // namespace

std::vector<TemplateTensor> attentionTensors(std::initializer_list<std::string_view> names, const AttentionExtents& e, const Graph& graph,
                                             std::span<const ValueId> values) {
  std::vector<TemplateTensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) tensors.push_back(tensorOf(names.begin()[i], e, graph.shapeOf(values[i])));
  return tensors;
}

std::vector<std::pair<std::string, double>> attentionNumbers(const AttentionExtents& e, const Node& node, bool masked) {
  return {{"batches", static_cast<double>(e.batches())},
          {"group", static_cast<double>(e.group())},
          {"queries", static_cast<double>(e.queries)},
          {"keys", static_cast<double>(e.keys)},
          {"width", static_cast<double>(e.width)},
          {"value_width", static_cast<double>(e.value_width)},
          {"causal", node.attributes.get<bool>("causal") ? 1.0 : 0.0},
          {"offset", static_cast<double>(node.attributes.get<int64_t>("offset"))},
          {"scale", node.attributes.get<double>("scale")},
          {"masked", masked ? 1.0 : 0.0}};
}

AttentionReader::AttentionReader(const EvaluateContext& c, size_t mask)
    : context_(c),
      extents_(c.operands[0]->type.shape, c.operands[1]->type.shape, c.operands[2]->type.shape),
      mask_(mask),
      scale_(c.node.attributes.get<double>("scale")),
      offset_(c.node.attributes.get<int64_t>("offset")),
      causal_(c.node.attributes.get<bool>("causal")) {}

double AttentionReader::q(int64_t batch, int64_t query, int64_t d) const {
  return context_.operands[0]->data[static_cast<size_t>((batch * extents_.queries + query) * extents_.width + d)];
}
double AttentionReader::k(int64_t batch, int64_t key, int64_t d) const {
  return context_.operands[1]->data[static_cast<size_t>((batch / extents_.group() * extents_.keys + key) * extents_.width + d)];
}
double AttentionReader::v(int64_t batch, int64_t key, int64_t d) const {
  return context_.operands[2]->data[static_cast<size_t>((batch / extents_.group() * extents_.keys + key) * extents_.value_width + d)];
}

double AttentionReader::masked(int64_t batch, int64_t query, int64_t key) const {
  if (context_.operands.size() <= mask_) return 0;
  const Tensor& mask = *context_.operands[mask_];
  std::vector<int64_t> index = extents_.scores().extents();
  index[index.size() - 1] = key;
  index[index.size() - 2] = query;
  for (size_t axis = index.size() - 2; axis-- > 0;) {
    const int64_t extent = index[axis];
    index[axis] = batch % extent;
    batch /= extent;
  }
  std::vector<int64_t> at(index.end() - static_cast<ptrdiff_t>(mask.type.shape.rank()), index.end());
  for (size_t axis = 0; axis < at.size(); ++axis) at[axis] = std::min(at[axis], mask.type.shape.extent(axis) - 1);
  return ElementReader(mask)(at);
}

std::vector<double> AttentionReader::scores(int64_t batch, int64_t query) const {
  const int64_t seen = causal_ ? std::min(extents_.keys, query + offset_ + 1) : extents_.keys;
  std::vector<double> scores;
  for (int64_t key = 0; key < seen; ++key) {
    double score = 0;
    for (int64_t d = 0; d < extents_.width; ++d) score += q(batch, query, d) * k(batch, key, d);
    scores.push_back(score * scale_ + masked(batch, query, key));
  }
  return scores;
}

std::vector<Tensor> evaluateAttention(const EvaluateContext& c) {
  const AttentionReader reader(c, 3);
  const AttentionExtents& e = reader.extents();
  Tensor out{c.results[0], {}}, lse{c.results[1], {}};
  for (int64_t batch = 0; batch < e.batches(); ++batch) {
    for (int64_t query = 0; query < e.queries; ++query) {
      const std::vector<double> scores = reader.scores(batch, query);
      const double highest = *std::ranges::max_element(scores);
      double total = 0;
      std::vector<double> sums(static_cast<size_t>(e.value_width), 0);
      for (size_t key = 0; key < scores.size(); ++key) {
        const double power = std::exp(scores[key] - highest);
        total += power;
        for (size_t d = 0; d < sums.size(); ++d) sums[d] += power * reader.v(batch, static_cast<int64_t>(key), static_cast<int64_t>(d));
      }
      for (const double sum : sums) out.data.push_back(sum / total);
      lse.data.push_back(highest + std::log(total));
    }
  }
  return {std::move(out), std::move(lse)};
}

AttentionGradients evaluateAttentionGradients(const AttentionReader& reader, const AttentionBackward& backward) {
  const AttentionExtents& e = reader.extents();
  const auto zeros = [](int64_t count) { return std::vector<double>(static_cast<size_t>(count), 0.0); };
  AttentionGradients out;
  out.dq.data = zeros(e.batches() * e.queries * e.width);
  out.dk.data = zeros(e.kvBatches() * e.keys * e.width);
  out.dv.data = zeros(e.kvBatches() * e.keys * e.value_width);
  if (backward.keeps_scores) out.dscores = zeros(e.batches() * e.queries * e.keys);
  for (int64_t batch = 0; batch < e.batches(); ++batch) {
    for (int64_t query = 0; query < e.queries; ++query) {
      const int64_t row = batch * e.queries + query;
      const auto incoming = [&](int64_t d) { return backward.d_out.data[static_cast<size_t>(row * e.value_width + d)]; };
      const std::vector<double> p = backward.weights(batch, query, reader.scores(batch, query));
      std::vector<double> dp(p.size(), 0);
      for (size_t key = 0; key < p.size(); ++key) {
        for (int64_t d = 0; d < e.value_width; ++d) dp[key] += incoming(d) * reader.v(batch, static_cast<int64_t>(key), d);
      }
      const double along = backward.delta(batch, query, p, dp);
      for (size_t key = 0; key < p.size(); ++key) {
        const double ds = p[key] * (dp[key] - along);
        const auto number = static_cast<int64_t>(key);
        const int64_t of_key = batch / e.group() * e.keys + number;
        if (backward.keeps_scores) out.dscores[static_cast<size_t>(row * e.keys + number)] = ds;
        for (int64_t d = 0; d < e.width; ++d) {
          out.dq.data[static_cast<size_t>(row * e.width + d)] += reader.scale() * ds * reader.k(batch, number, d);
          out.dk.data[static_cast<size_t>(of_key * e.width + d)] += reader.scale() * ds * reader.q(batch, query, d);
        }
        for (int64_t d = 0; d < e.value_width; ++d) out.dv.data[static_cast<size_t>(of_key * e.value_width + d)] += p[key] * incoming(d);
      }
    }
  }
  return out;
}

AttentionGradients evaluateAttentionGradients(const EvaluateContext& c) {
  const AttentionReader reader(c, 6);
  const auto row = [&](size_t operand, int64_t batch, int64_t query) {
    return c.operands[operand]->data[static_cast<size_t>(batch * reader.extents().queries + query)];
  };
  const auto weights = [&](int64_t batch, int64_t query, const std::vector<double>& scores) {
    std::vector<double> p;
    for (const double score : scores) p.push_back(std::exp(score - row(4, batch, query)));
    return p;
  };
  const auto delta = [&](int64_t batch, int64_t query, const std::vector<double>&, const std::vector<double>&) {
    return row(5, batch, query);
  };
  return evaluateAttentionGradients(reader, {.d_out = *c.operands[3], .weights = weights, .delta = delta});
}

std::vector<OpCase> attentionCases(std::initializer_list<AttentionPart> parts) {
  const auto make = [&](std::string_view name, const Shape& q, const Shape& k, const Shape& v, bool causal, int64_t offset) {
    OpCase made{name,
                {{f32(q)}, {f32(k)}, {f32(v)}},
                {{"causal", causal}, {"offset", offset}, {"scale", parts.size() == 0 ? 0.35 : 0.15}},
                4e-6,
                "two products, a softmax of scores below 16 and their roundings"};
    const AttentionExtents e(q, k, v);
    for (const AttentionPart part : parts) made.operands.push_back({f32(part == AttentionPart::Out ? e.out() : e.rows())});
    return made;
  };
  const auto withMask = [](OpCase made, Shape mask) {
    made.operands.push_back({f32(std::move(mask))});
    return made;
  };
  return {make("full", {2, 3, 7, 5}, {2, 3, 9, 5}, {2, 3, 9, 4}, false, 0),
          make("causal", {2, 2, 9, 8}, {2, 2, 9, 8}, {2, 2, 9, 8}, true, 0),
          make("grouped", {2, 6, 5, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, true, 0),
          make("cached", {2, 4, 3, 4}, {2, 2, 8, 4}, {2, 2, 8, 4}, true, 5),
          make("one_query", {3, 4, 1, 4}, {3, 1, 6, 4}, {3, 1, 6, 4}, true, 5),
          make("more_queries", {1, 2, 7, 4}, {1, 2, 4, 4}, {1, 2, 4, 4}, true, 1),
          make("heads_only", {2, 5, 4}, {2, 5, 4}, {2, 5, 4}, true, 0),
          make("wide", {1, 2, 3, 65}, {1, 1, 33, 65}, {1, 1, 33, 67}, false, 0),
          withMask(make("mask", {2, 2, 4, 5}, {2, 2, 6, 5}, {2, 2, 6, 3}, false, 0), {4, 6}),
          withMask(make("mask_of_heads", {2, 4, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, true, 1), {4, 1, 5}),
          withMask(make("mask_of_batch", {3, 2, 3, 4}, {3, 2, 5, 4}, {3, 2, 5, 4}, false, 0), {3, 1, 1, 5})};
}

}  // namespace lockstep::graph
