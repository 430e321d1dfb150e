// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"

namespace lockstep::graph::linear_recurrence_op {
namespace {

constexpr std::string_view kName = "linear_recurrence";

int64_t lineAxis(const Node& node) { return node.attributes.get<int64_t>("axis"); }
bool isReversed(const Node& node) { return node.attributes.get<bool>("reverse"); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &a = c.operands[0], &x = c.operands[1];
  if (a.dtype != DType::F32 || a != x)
    return violated(kName, "C1", fmt::format("a is {} and b is {}, wanted f32 of one shape", toString(a), toString(x)));
  LS_CHECK(checkAxis(kName, "C2", c.attributes.get<int64_t>("axis"), a.shape.rank()));
  return std::vector{a, a};
}

/// The elements one place later in the direction of the scan, with `fill` at its begin; or one place earlier, with `fill` at its end.
ValueId shifted(Builder& b, const Node& node, ValueId x, bool later, double fill) {
  const int64_t axis = lineAxis(node), length = b.shapeOf(x).extent(static_cast<size_t>(axis));
  const bool up = later != isReversed(node);
  const ValueId padded = b.make("pad", {x}, {{"axis", axis}, {"before", int64_t{up}}, {"after", int64_t{!up}}, {"value", fill}});
  return b.make("narrow", {padded}, {{"axis", axis}, {"start", int64_t{!up}}, {"length", length}});
}

/// What flows back along the recurrence: g_t = d_t + a_(t+1) g_(t+1).
ValueId backward(Builder& b, const Node& node, ValueId a, ValueId d) {
  return b.makeAll(kName, {shifted(b, node, a, false, 0), d}, {{"axis", lineAxis(node)}, {"reverse", !isReversed(node)}})[1];
}

// h_0 = b_0 and h_t = a_t h_(t-1) + b_t, and the products p_t = a_t p_(t-1) from 1, each of which is such a recurrence.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId da, db;
  const auto flow = [&](size_t result, double begin) {
    if (!g.cotangents[result].valid()) return ValueId();
    const ValueId flowing = backward(b, g.node, g.operands[0], g.cotangents[result]);
    const ValueId share = b.mul(flowing, shifted(b, g.node, g.results[result], true, begin));
    da = da.valid() ? b.add(da, share) : share;
    return flowing;
  };
  flow(0, 1);
  db = flow(1, 0);
  return {da, db};
}

std::vector<Tensor> evaluateRecurrence(const EvaluateContext& c) {
  const Tensor &a = *c.operands[0], &x = *c.operands[1];
  const auto axis = static_cast<size_t>(lineAxis(c.node));
  const int64_t length = a.type.shape.extent(axis), stride = a.type.shape.strides()[axis];
  std::vector<Tensor> out{Tensor{c.results[0], a.data}, Tensor{c.results[1], x.data}};
  for (int64_t line = 0; line < static_cast<int64_t>(a.data.size()) / length; ++line) {
    const int64_t first = line / stride * stride * length + line % stride;
    double product = 1, state = 0;
    for (int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<size_t>(first + (isReversed(c.node) ? length - 1 - i : i) * stride);
      out[0].data[at] = product *= a.data[at];
      out[1].data[at] = state = i == 0 ? x.data[at] : a.data[at] * state + x.data[at];
    }
  }
  return out;
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const Shape& shape, int64_t axis, bool reverse = false) {
    return OpCase{name,
                  {{f32(shape), 0.5, 1}, {f32(shape), -1, 1}},
                  {{"axis", axis}, {"reverse", reverse}},
                  4e-6,
                  "products of factors of at most 1 and sums that these make shorter"};
  };
  return {make("last", {6, 5, 37}, 2),    make("middle", {6, 5, 37}, 1),
          make("first", {17, 70}, 0),     make("reverse", {3, 70}, 1, true),
          make("long_line", {2, 301}, 1), make("reverse_first", {33, 3}, 0, true),
          make("one", {4, 1}, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "The products of a up to and including each place along an axis, and the states h_t = a_t h_(t-1) + b_t with h_0 = b_0 (Blelloch "
        "1990); after an earlier state h they are h_t + product_t h.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32 of one shape"}, {"C2", "the axis is within the rank"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of time"},
                                             {"reverse", AttributeKind::Boolean, "from the end"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ScanLowering{.axis = [](const Graph&, const Node& node) { return lineAxis(node); },
                          .reverse = isReversed,
                          .combine =
                              [](const Graph&, const Node&) {
                                return makeCombine(std::array{DType::F32, DType::F32}, [](Builder& b, auto earlier, auto later) {
                                  return std::vector{b.mul(later[0], earlier[0]), b.add(b.mul(later[0], earlier[1]), later[1])};
                                });
                              }},
    .alias = NoAlias{},
    .evaluate = evaluateRecurrence,
    .cases = cases,
};

}  // namespace lockstep::graph::linear_recurrence_op
