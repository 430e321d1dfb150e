// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "ir/graph/evaluate.h"
#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"

namespace lockstep::graph {
namespace {

constexpr std::string_view kName = "associative_scan";

int64_t axisOf(const Node& node) { return node.attributes.get<int64_t>("axis"); }
bool isReversed(const Node& node) { return node.attributes.get<bool>("reverse"); }
Result<Graph> readCombine(const Attributes& attributes) { return parse(attributes.get<std::string>("combine"), "combine"); }
Graph combineOf(const Node& node) { return std::move(*readCombine(node.attributes)); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  if (c.operands.empty()) return violated(kName, "C1", "there are no operands");
  std::vector<DType> types;
  for (const TensorType& type : c.operands) {
    if (!isNumber(type.dtype) || type.shape != c.operands[0].shape)
      return violated(
          kName, "C1",
          fmt::format("operand {} is {}, wanted numbers of the shape {}", types.size(), toString(type), toString(c.operands[0].shape)));
    types.push_back(type.dtype);
  }
  LS_CHECK(checkAxis(kName, "C2", c.attributes.get<int64_t>("axis"), c.operands[0].shape.rank()));
  const Result<Graph> combine = readCombine(c.attributes);
  if (!combine.ok()) return violated(kName, "C3", "combine is not a graph: " + combine.diagnostics().front().message);
  if (const Status fits = checkCombine(*combine, types); !fits.ok())
    return violated(kName, "C3", "combine: " + fits.diagnostics().front().message);
  return std::vector(c.operands.begin(), c.operands.end());
}

/// Doubles the distance over which elements are combined, until it is the length (Hillis and Steele 1986): ordinary ops, which have
/// gradients. A line takes as many rounds as its length has bits.
std::vector<ValueId> doubling(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const int64_t axis = axisOf(node), length = b.shapeOf(operands[0]).extent(static_cast<size_t>(axis));
  const bool reverse = isReversed(node);
  const Graph combine = combineOf(node);
  const auto part = [&](ValueId x, int64_t start, int64_t count) {
    return b.make("narrow", {x}, {{"axis", axis}, {"start", start}, {"length", count}});
  };
  std::vector<ValueId> prefixes(operands.begin(), operands.end());
  for (int64_t distance = 1; distance < length; distance *= 2) {
    const int64_t rest = length - distance;
    std::vector<ValueId> inputs;
    for (const ValueId x : prefixes) inputs.push_back(part(x, reverse ? distance : 0, rest));
    for (const ValueId x : prefixes) inputs.push_back(part(x, reverse ? 0 : distance, rest));
    const std::vector<ValueId> combined = applyScalars(b, combine, inputs);
    for (size_t i = 0; i < prefixes.size(); ++i) {
      const ValueId done = part(prefixes[i], reverse ? rest : 0, distance);
      prefixes[i] = b.make("concat", reverse ? std::vector{combined[i], done} : std::vector{done, combined[i]}, {{"axis", axis}});
    }
  }
  return prefixes;
}

/// Element by element, all lines at a time.
std::vector<Tensor> evaluateScan(const EvaluateContext& c) {
  const Shape& shape = c.operands[0]->type.shape;
  const auto axis = static_cast<size_t>(axisOf(c.node));
  const int64_t length = shape.extent(axis), stride = shape.strides()[axis], lines = shape.elementCount() / length;
  const size_t count = c.operands.size();
  Builder b;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < 2 * count; ++i) {
    inputs.push_back(b.make(
        "input", {}, {{"name", fmt::format("x{}", i)}, {"dtype", c.results[i % count].dtype}, {"shape", std::vector<int64_t>{lines}}}));
  }
  for (const ValueId result : applyScalars(b, combineOf(c.node), inputs)) b.output(OutputKind::Result, "", result);
  const auto place = [&](int64_t line, int64_t step) {
    const int64_t n = isReversed(c.node) ? length - 1 - step : step;
    return static_cast<size_t>(line / stride * stride * length + line % stride + n * stride);
  };
  std::vector<Tensor> out, prefix;
  for (size_t i = 0; i < count; ++i) out.push_back({c.results[i], c.operands[i]->data});
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Tensor> element;
    for (size_t i = 0; i < count; ++i) {
      element.push_back({{c.results[i].dtype, {lines}}, {}});
      for (int64_t line = 0; line < lines; ++line) element[i].data.push_back(c.operands[i]->data[place(line, step)]);
    }
    if (step > 0) {
      LeafValues leaves;
      for (size_t i = 0; i < 2 * count; ++i) leaves.emplace(fmt::format("x{}", i), i < count ? prefix[i] : element[i - count]);
      element = evaluate(b.graph(), leaves).orThrow();
    }
    prefix = std::move(element);
    for (size_t i = 0; i < count; ++i) {
      for (int64_t line = 0; line < lines; ++line) out[i].data[place(line, step)] = prefix[i].data[static_cast<size_t>(line)];
    }
  }
  return out;
}

std::vector<OpCase> cases() {
  // The sum and its exponential weights: (m, s) combined to the larger m and both s relative to it.
  const Graph log_sum = makeCombine(std::array{DType::F32, DType::F32}, [](Builder& b, auto x, auto y) {
    const ValueId larger = b.make("max", {x[0], y[0]});
    const auto scaled = [&](auto& tuple) { return b.mul(tuple[1], b.make("exp", {b.sub(tuple[0], larger)})); };
    return std::vector{larger, b.add(scaled(x), scaled(y))};
  });
  // Affine maps of the line, which do not commute.
  const Graph affine = makeCombine(std::array{DType::F32, DType::F32}, [](Builder& b, auto x, auto y) {
    return std::vector{b.mul(y[0], x[0]), b.add(b.mul(y[0], x[1]), y[1])};
  });
  const Graph last = makeCombine(std::array{DType::I32}, [](Builder&, auto, auto y) { return std::vector{y[0]}; });
  auto make = [](std::string_view name, std::vector<OperandCase> operands, const Graph& combine, int64_t axis, bool reverse = false) {
    return OpCase{name,
                  std::move(operands),
                  {{"axis", axis}, {"reverse", reverse}, {"combine", print(combine)}},
                  4e-6,
                  "a few roundings per element"};
  };
  const auto pair = [](const Shape& shape) { return std::vector<OperandCase>{{f32(shape), 0.5, 1}, {f32(shape), 0.1, 1}}; };
  return {make("log_sum", pair({3, 5, 37}), log_sum, 2),  make("log_sum_middle", pair({3, 70, 5}), log_sum, 1),
          make("affine", pair({2, 301}), affine, 1),      make("affine_reverse", pair({17, 9}), affine, 0, true),
          make("last", {{i32({4, 130}), 0, 9}}, last, 1), make("one", pair({4, 1}), affine, 1)};
}

}  // namespace

extern const OpDef kAssociativeScanOp;
constexpr OpDef kAssociativeScanOp{
    .name = kName,
    .summary =
        "The elements of a tuple of tensors up to and including each place along an axis, combined by an associative function (Blelloch "
        "1990).",
    .constraints = ConstantList<Constraint>{{"C1", "operands have numbers and one shape, and there is one"},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "combine is a graph of element operations on two tuples of scalars that gives one"}},
    .operands = ConstantList<std::string_view>{"x..."},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis along which is combined"},
                                             {"reverse", AttributeKind::Boolean, "from the end"},
                                             {"combine", AttributeKind::String, "the function, as the text of a graph"}},
    .infer = infer,
    .gradient = ByDecomposition{.decompose = doubling},
    .lower = ScanLowering{.axis = [](const Graph&, const Node& node) { return axisOf(node); },
                          .reverse = isReversed,
                          .combine = [](const Graph&, const Node& node) { return combineOf(node); }},
    .alias = NoAlias{},
    .evaluate = evaluateScan,
    .cases = cases,
};

}  // namespace lockstep::graph
