// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::skew_op {
namespace {

/// The operand is [..., P..., K...], the result [..., R..., K...]; one list entry for each pair of axes.
struct Spec {
  explicit Spec(const Attributes& attributes)
      : extents(attributes.get<std::vector<int64_t>>("extents")),
        stride(attributes.get<std::vector<int64_t>>("stride")),
        dilation(attributes.get<std::vector<int64_t>>("dilation")),
        padding(attributes.get<std::vector<int64_t>>("padding")),
        input_dilation(attributes.get<std::vector<int64_t>>("input_dilation")) {}
  std::vector<int64_t> extents, stride, dilation, padding, input_dilation;
};

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  Spec spec(c.attributes);
  size_t n = spec.extents.size();
  for (const std::vector<int64_t>* list : {&spec.stride, &spec.dilation, &spec.padding, &spec.input_dilation}) {
    if (list->size() != n || n == 0 || 2 * n > x.shape.rank())
      return violated("skew", "C1", fmt::format("lists of {} and {} numbers for an operand of rank {}", n, list->size(), x.shape.rank()));
  }
  std::vector<int64_t> extents = x.shape.extents();
  size_t lead = extents.size() - 2 * n;
  for (size_t i = 0; i < n; ++i) {
    auto big = [](int64_t number) { return number >= int64_t{1} << 30 || number <= -(int64_t{1} << 30); };
    if (spec.stride[i] < 1 || spec.input_dilation[i] < 1 || big(spec.stride[i]) || big(spec.input_dilation[i]) || big(spec.dilation[i]) ||
        big(spec.padding[i])) {
      return violated("skew", "C2",
                      fmt::format("stride {}, input_dilation {}, dilation {} and padding {}", spec.stride[i], spec.input_dilation[i],
                                  spec.dilation[i], spec.padding[i]));
    }
    extents[lead + i] = spec.extents[i];
  }
  LS_CHECK(checkExtents("skew", "C3", extents));
  LS_CHECK(checkValue("skew", "C4", c.attributes.get<double>("fill"), x.dtype));
  return std::vector{TensorType{x.dtype, Shape(extents)}};
}

// The map between (P, K) and (R, K) is one to one where it exists, so the adjoint solves it for the other side.
std::vector<ValueId> gradient(const GradientContext& g) {
  Spec spec(g.node.attributes);
  std::vector<int64_t> x = g.builder.shapeOf(g.operands[0]).extents(), extents, dilation, padding;
  size_t lead = x.size() - 2 * spec.extents.size();
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    extents.push_back(x[lead + i]);
    dilation.push_back(-spec.dilation[i]);
    padding.push_back(-spec.padding[i]);
  }
  return {g.builder.make("skew", {g.cotangents[0]},
                         {{"extents", extents},
                          {"stride", spec.input_dilation},
                          {"dilation", dilation},
                          {"padding", padding},
                          {"input_dilation", spec.stride},
                          {"fill", 0.0}})};
}

IndexMap map(const Graph& graph, const Node& node) {
  Spec spec(node.attributes);
  const Shape &source = graph.shapeOf(node.operands[0]), &result = graph.shapeOf(node.results[0]);
  size_t n = spec.extents.size(), lead = source.rank() - 2 * n;
  IndexMap map = identityMap(source.rank());
  map.fill = node.attributes.get<double>("fill");
  for (size_t i = 0; i < n; ++i) {
    size_t axis = lead + i, kernel = lead + n + i;
    int64_t lo = -spec.padding[i], hi = lo;
    IndexExpr at;
    at.offset = -spec.padding[i];
    for (auto [of, coefficient] : {std::pair{axis, spec.stride[i]}, std::pair{kernel, spec.dilation[i]}}) {
      if (coefficient == 0 || result.extent(of) == 1) continue;
      at.terms.push_back({.coefficient = coefficient, .axis = static_cast<int32_t>(of), .inner = {}});
      (coefficient < 0 ? lo : hi) += coefficient * (result.extent(of) - 1);
    }
    int64_t dilated = (source.extent(axis) - 1) * spec.input_dilation[i] + 1;
    if (lo < 0 || hi >= dilated) map.guards.push_back({at, 0, dilated});
    if (spec.input_dilation[i] > 1) map.guards.push_back({divMod(at, INT64_MAX, 1, spec.input_dilation[i]), 0, 1});
    map.source[axis] = divMod(at, INT64_MAX, spec.input_dilation[i], 0);
  }
  return map;
}

std::vector<Tensor> evaluateSkew(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  Spec spec(c.node.attributes);
  const Shape& source = c.operands[0]->type.shape;
  size_t n = spec.extents.size(), lead = source.rank() - 2 * n;
  double fill = c.node.attributes.get<double>("fill");
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    bool exists = true;
    for (size_t i = 0; i < n; ++i) {
      int64_t at = index[lead + i] * spec.stride[i] + index[lead + n + i] * spec.dilation[i] - spec.padding[i];
      index[lead + i] = at / spec.input_dilation[i];
      exists = exists && at >= 0 && at % spec.input_dilation[i] == 0 && index[lead + i] < source.extent(lead + i);
    }
    return exists ? x(index) : fill;
  });
}

std::vector<OpCase> cases() {
  using List = std::vector<int64_t>;
  auto make = [](std::string_view name, Shape x, List extents, List stride, List dilation, List padding, List input_dilation, double fill) {
    return OpCase{name,
                  {{f32(std::move(x))}},
                  {{"extents", std::move(extents)},
                   {"stride", std::move(stride)},
                   {"dilation", std::move(dilation)},
                   {"padding", std::move(padding)},
                   {"input_dilation", std::move(input_dilation)},
                   {"fill", fill}},
                  0,
                  kExactReason};
  };
  return {make("inside", {2, 7, 3}, {5}, {1}, {1}, {0}, {1}, 0), make("padded", {7, 3}, {8}, {1}, {2}, {3}, {1}, -1.5),
          make("two", {2, 5, 6, 3, 2}, {4, 3}, {2, 1}, {1, 3}, {1, 0}, {1, 1}, 0), make("back", {2, 5, 3}, {11}, {1}, {-2}, {-1}, {2}, 0),
          make("divided", {4, 3, 2}, {9}, {2}, {3}, {1}, {3}, 2)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "skew",
    .summary = "Axes P of [..., P..., K...] read at (r stride + k dilation - padding) / input_dilation: [..., extents..., K...].",
    .constraints = ConstantList<Constraint>{{"C1", "the lists have one number for each pair of the last axes"},
                                            {"C2", "stride and input_dilation are at least 1, all numbers are below 2^30"},
                                            {"C3", "the element count is at most 2^31 - 1"},
                                            {"C4", "the fill is a value of the element type"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes =
        ConstantList<AttributeDef>{{"extents", AttributeKind::Integers, "of the axes r"},
                                   {"stride", AttributeKind::Integers, "times r"},
                                   {"dilation", AttributeKind::Integers, "times k, may be negative"},
                                   {"padding", AttributeKind::Integers, "is taken off"},
                                   {"input_dilation", AttributeKind::Integers, "divides; where it leaves a remainder there is no element"},
                                   {"fill", AttributeKind::Float, "value where there is no element"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluateSkew,
    .cases = cases,
};

}  // namespace lockstep::graph::skew_op
