// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/tuple_lines.h"

#include <fmt/format.h>

#include <array>

#include "ir/graph/evaluate.h"
#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"

namespace lockstep::graph {
namespace {

Result<Graph> readCombine(const Attributes& attributes) { return parse(attributes.get<std::string>("combine"), "combine"); }

}  // namespace

Status checkTuples(std::string_view op, const InferContext& c) {
  if (c.operands.empty()) return violated(op, "C1", "there are no operands");
  std::vector<DType> types;
  for (const TensorType& type : c.operands) {
    if (!isNumber(type.dtype) || type.shape != c.operands[0].shape)
      return violated(
          op, "C1",
          fmt::format("operand {} is {}, wanted numbers of the shape {}", types.size(), toString(type), toString(c.operands[0].shape)));
    types.push_back(type.dtype);
  }
  LS_CHECK(checkAxis(op, "C2", c.attributes.get<int64_t>("axis"), c.operands[0].shape.rank()));
  const Result<Graph> combine = readCombine(c.attributes);
  if (!combine.ok()) return violated(op, "C3", "combine is not a graph: " + combine.diagnostics().front().message);
  if (const Status fits = checkCombine(*combine, types); !fits.ok())
    return violated(op, "C3", "combine: " + fits.diagnostics().front().message);
  return Success{};
}

Graph combineOf(const Node& node) { return std::move(*readCombine(node.attributes)); }

ValueId narrowed(Builder& builder, ValueId x, int64_t axis, int64_t start, int64_t count) {
  return builder.make("narrow", {x}, {{"axis", axis}, {"start", start}, {"length", count}});
}

std::vector<Tensor> evaluateTuples(const EvaluateContext& c, Prefixes kept, bool is_reversed) {
  const Shape& shape = c.operands[0]->type.shape;
  const auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
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
    const int64_t n = is_reversed ? length - 1 - step : step;
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
    for (size_t i = 0; i < count && kept == Prefixes::All; ++i) {
      for (int64_t line = 0; line < lines; ++line) out[i].data[place(line, step)] = prefix[i].data[static_cast<size_t>(line)];
    }
  }
  for (size_t i = 0; i < count && kept == Prefixes::Last; ++i) out[i].data = std::move(prefix[i].data);
  return out;
}

Graph logSumCombine() {
  return makeCombine(std::array{DType::F32, DType::F32}, [](Builder& b, auto x, auto y) {
    const ValueId larger = b.make("max", {x[0], y[0]});
    const auto scaled = [&](auto& tuple) { return b.mul(tuple[1], b.make("exp", {b.sub(tuple[0], larger)})); };
    return std::vector{larger, b.add(scaled(x), scaled(y))};
  });
}

Graph affineCombine() {
  return makeCombine(std::array{DType::F32, DType::F32},
                     [](Builder& b, auto x, auto y) { return std::vector{b.mul(y[0], x[0]), b.add(b.mul(y[0], x[1]), y[1])}; });
}

Graph momentsCombine() {
  return makeCombine(std::array{DType::F32, DType::F32, DType::F32}, [](Builder& b, auto x, auto y) {
    const ValueId n = b.add(x[0], y[0]), apart = b.sub(y[1], x[1]), share = b.make("div", {y[0], n});
    const ValueId between = b.mul(b.mul(b.mul(apart, apart), x[0]), share);
    return std::vector{n, b.add(x[1], b.mul(apart, share)), b.add(b.add(x[2], y[2]), between)};
  });
}

}  // namespace lockstep::graph
