// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"

namespace lockstep::graph {
namespace {

constexpr std::string_view kName = "scaled_dot_product_attention";

/// q [..., H, T, D], k [..., Hkv, S, D], v [..., Hkv, S, E].
struct Extents {
  Extents(const Shape& q, const Shape& k, const Shape& v) {
    size_t rank = q.rank();
    heads = q.extent(rank - 3);
    kv_heads = k.extent(rank - 3);
    queries = q.extent(rank - 2);
    keys = k.extent(rank - 2);
    width = q.extent(rank - 1);
    value_width = v.extent(rank - 1);
    for (size_t axis = 0; axis + 3 < rank; ++axis) leading.push_back(q.extent(axis));
  }
  [[nodiscard]] int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] Shape with(std::initializer_list<int64_t> last) const {
    std::vector<int64_t> extents = leading;
    extents.insert(extents.end(), last);
    return Shape(extents);
  }
  [[nodiscard]] Shape scores() const { return with({heads, queries, keys}); }
  std::vector<int64_t> leading;
  int64_t heads, kv_heads, queries, keys, width, value_width;
};

bool fits(const TensorType& mask, const Extents& e) {
  const Shape scores = e.scores();
  return mask.dtype == DType::F32 && broadcastShapes(mask.shape, scores) == scores;
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &q = c.operands[0], &k = c.operands[1], &v = c.operands[2];
  auto shapes = [&] { return fmt::format("q is {}, k is {} and v is {}", toString(q), toString(k), toString(v)); };
  if (q.dtype != DType::F32 || k.dtype != DType::F32 || v.dtype != DType::F32) return violated(kName, "C1", shapes() + ", wanted f32");
  size_t rank = q.shape.rank();
  bool leading = rank >= 3 && k.shape.rank() == rank && v.shape.rank() == rank;
  for (size_t axis = 0; leading && axis + 3 < rank; ++axis) leading = q.shape[axis] == k.shape[axis] && q.shape[axis] == v.shape[axis];
  if (!leading) return violated(kName, "C2", shapes());
  Extents e(q.shape, k.shape, v.shape);
  if (e.width != k.shape.extent(rank - 1) || e.keys != v.shape.extent(rank - 2) || e.kv_heads != v.shape.extent(rank - 3))
    return violated(kName, "C3", shapes());
  if (e.heads % e.kv_heads != 0)
    return violated(kName, "C4", fmt::format("{} heads of k do not divide {} heads of q", e.kv_heads, e.heads));
  int64_t offset = c.attributes.get<int64_t>("offset");
  if (offset < 0 || offset > INT32_MAX - e.queries)
    return violated(kName, "C5", fmt::format("offset is {}, wanted at least 0 and a last position below 2^31", offset));
  if (!std::isfinite(c.attributes.get<double>("scale")))
    return violated(kName, "C6", fmt::format("scale is {}, wanted a finite number", c.attributes.get<double>("scale")));
  LS_CHECK(checkExtents(kName, "C7", e.with({e.heads, e.queries, e.keys}).extents()));
  if (c.operands.size() > 4 || (c.operands.size() == 4 && !fits(c.operands[3], e))) {
    return violated(kName, "C8",
                    fmt::format("there are {} masks, the last {}, wanted one that broadcasts to {}", c.operands.size() - 3,
                                toString(c.operands.back()), toString(f32(e.scores()))));
  }
  return std::vector{f32(e.with({e.heads, e.queries, e.value_width}))};
}

ValueId grouped(Builder& b, const Extents& e, ValueId x, int64_t width) {
  return b.reshape(x, e.with({e.kv_heads, e.group() * e.queries, width}));
}

/// Where a key lies behind the query: bool [group * T, S], broadcast to `shape`.
ValueId hidden(Builder& b, const Extents& e, int64_t offset, const Shape& shape) {
  ValueId numbers = b.make("arange", {}, {{"n", e.queries}, {"dtype", DType::I32}});
  ValueId row = b.broadcastTo(b.reshape(numbers, Shape{1, e.queries, 1}), Shape{e.group(), e.queries, e.keys});
  row = b.broadcastTo(b.reshape(row, Shape{e.group() * e.queries, e.keys}), shape);
  if (offset != 0) row = b.add(row, static_cast<double>(offset));
  ValueId column = b.broadcastTo(b.make("arange", {}, {{"n", e.keys}, {"dtype", DType::I32}}), shape);
  return b.make("greater", {column, row});
}

/// softmax(scale q k^T + mask) as [..., Hkv, group * T, S]: the heads of one group are rows of one product, so k is never copied. The same
/// nodes in the forward and in the backward computation, so that common subexpressions merge.
ValueId probabilities(Builder& b, const Node& node, const Extents& e, ValueId grouped_q, std::span<const ValueId> operands) {
  ValueId k = operands[1];
  ValueId scores = b.mul(b.make("matmul", {grouped_q, b.swapLastAxes(k)}), node.attributes.get<double>("scale"));
  if (operands.size() > 3) scores = b.add(scores, grouped(b, e, b.broadcastTo(operands[3], e.scores()), e.keys));
  int64_t offset = node.attributes.get<int64_t>("offset");
  if (node.attributes.get<bool>("causal") && offset < e.keys - 1) {
    Shape shape = b.shapeOf(scores);
    ValueId behind = hidden(b, e, offset, shape);
    scores = b.make("where", {behind, b.constant(-std::numeric_limits<double>::infinity(), shape), scores});
  }
  return b.make("softmax", {scores});
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Extents e(b.shapeOf(operands[0]), b.shapeOf(operands[1]), b.shapeOf(operands[2]));
  ValueId p = probabilities(b, node, e, grouped(b, e, operands[0], e.width), operands);
  return {b.reshape(b.make("matmul", {p, operands[2]}), e.with({e.heads, e.queries, e.value_width}))};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId k = g.operands[1], v = g.operands[2];
  Extents e(b.shapeOf(g.operands[0]), b.shapeOf(k), b.shapeOf(v));
  ValueId q = grouped(b, e, g.operands[0], e.width), dy = grouped(b, e, g.cotangents[0], e.value_width);
  ValueId p = probabilities(b, g.node, e, q, g.operands);
  ValueId dv = b.make("matmul", {b.swapLastAxes(p), dy}), dp = b.make("matmul", {dy, b.swapLastAxes(v)});
  ValueId along = b.sum(b.mul(dp, p), -1, true);
  ValueId dscores = b.mul(b.sub(dp, along), p);
  ValueId ds = b.mul(dscores, g.node.attributes.get<double>("scale"));
  ValueId dq = b.reshape(b.make("matmul", {ds, k}), Shape(b.shapeOf(g.operands[0])));
  ValueId dk = b.make("matmul", {b.swapLastAxes(ds), q});
  if (g.operands.size() == 3) return {dq, dk, dv};
  return {dq, dk, dv, b.sumToShape(b.reshape(dscores, e.scores()), Shape(b.shapeOf(g.operands[3])))};
}

std::vector<Tensor> evaluateAttention(const EvaluateContext& c) {
  ElementReader q(*c.operands[0]), k(*c.operands[1]), v(*c.operands[2]);
  Extents e(c.operands[0]->type.shape, c.operands[1]->type.shape, c.operands[2]->type.shape);
  double scale = c.node.attributes.get<double>("scale");
  int64_t offset = c.node.attributes.get<int64_t>("offset");
  bool causal = c.node.attributes.get<bool>("causal");
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    size_t head = index.size() - 3, row = index.size() - 2, column = index.size() - 1;
    int64_t query = index[row], out = index[column];
    std::vector<int64_t> of_key = index;
    of_key[head] = index[head] / e.group();
    auto masked = [&](int64_t at_query, int64_t at_key) {
      if (c.operands.size() < 4) return 0.0;
      const Tensor& mask = *c.operands[3];
      std::vector<int64_t> at(index.end() - static_cast<ptrdiff_t>(mask.type.shape.rank()), index.end());
      if (!at.empty()) at.back() = at_key;
      if (at.size() > 1) at[at.size() - 2] = at_query;
      for (size_t axis = 0; axis < at.size(); ++axis) at[axis] = std::min(at[axis], mask.type.shape.extent(axis) - 1);
      return ElementReader(mask)(at);
    };
    int64_t seen = causal ? std::min(e.keys, query + offset + 1) : e.keys;
    std::vector<double> scores;
    for (int64_t key = 0; key < seen; ++key) {
      of_key[row] = key;
      double score = 0;
      for (int64_t d = 0; d < e.width; ++d) {
        index[column] = of_key[column] = d;
        score += q(index) * k(of_key);
      }
      scores.push_back(score * scale + masked(query, key));
    }
    double highest = *std::ranges::max_element(scores), total = 0, sum = 0;
    of_key[column] = out;
    for (int64_t key = 0; key < seen; ++key) {
      of_key[row] = key;
      double power = std::exp(scores[static_cast<size_t>(key)] - highest);
      total += power;
      sum += power * v(of_key);
    }
    return sum / total;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape q, Shape k, Shape v, bool causal, int64_t offset) {
    return OpCase{name,
                  {{f32(std::move(q))}, {f32(std::move(k))}, {f32(std::move(v))}},
                  {{"causal", causal}, {"offset", offset}, {"scale", 0.35}},
                  4e-6,
                  "two products, a softmax of scores below 16 and their roundings"};
  };
  auto withMask = [](OpCase made, Shape mask) {
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
          withMask(make("mask", {2, 2, 4, 5}, {2, 2, 6, 5}, {2, 2, 6, 3}, false, 0), {4, 6}),
          withMask(make("mask_of_heads", {2, 4, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, true, 1), {4, 1, 5}),
          withMask(make("mask_of_batch", {3, 2, 3, 4}, {3, 2, 5, 4}, {3, 2, 5, 4}, false, 0), {3, 1, 1, 5})};
}

}  // namespace

extern const OpDef kScaledDotProductAttentionOp;
constexpr OpDef kScaledDotProductAttentionOp{
    .name = kName,
    .summary =
        "softmax(scale q k^T + mask) v over heads [..., H, T, D]; each head of k and v serves H/Hkv heads of q (Vaswani and others 2017).",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "operands have one rank of at least 3 and the same axes before the heads"},
                                            {"C3", "k has the width of q, v has the heads and rows of k"},
                                            {"C4", "the heads of k divide the heads of q"},
                                            {"C5", "offset is at least 0, positions are below 2^31"},
                                            {"C6", "scale is finite"},
                                            {"C7", "the element count of the scores is at most 2^31 - 1"},
                                            {"C8", "there is at most one mask, f32, which broadcasts to the scores [..., H, T, S]"}},
    .operands = ConstantList<std::string_view>{"q", "k", "v", "mask..."},
    .attributes = ConstantList<AttributeDef>{{"causal", AttributeKind::Boolean, "query t sees keys 0 .. t + offset only"},
                                             {"offset", AttributeKind::Integer, "position of the first query among the keys"},
                                             {"scale", AttributeKind::Float, "of the scores, usually 1 / sqrt(D)"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateAttention,
    .cases = cases,
    .mixed = MixedRole::Composed,
};

}  // namespace lockstep::graph
