// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/scan_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::graph {
namespace {

TemplateTensor tensorOf(std::string_view name, const Shape& shape) {
  return {.name = name, .space = shape, .map = identityMap(shape.rank())};
}

}  // namespace

ScanLines scanLines(const Shape& x, const Shape& a, const Attributes& attributes) {
  return {.batch = x.extent(0),
          .length = x.extent(1),
          .channels = x.extent(2),
          .states = a.extent(1),
          .chunk = attributes.get<int64_t>("chunk"),
          .hold = attributes.get<bool>("zero_order_hold")};
}

Result<ScanLines> checkScanTemplate(std::string_view op, const InferContext& c, std::initializer_list<ScanRole> roles) {
  const Shape &x = c.operands[0].shape, &a = c.operands[2].shape;
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated(op, "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  if (x.rank() != 3) return violated(op, "C2", fmt::format("the first operand is {}, wanted [B, L, D]", toString(x)));
  if (a.rank() != 2 || a.extent(0) != x.extent(2))
    return violated(op, "C3", fmt::format("a is {}, wanted [{}, N]", toString(a), x.extent(2)));
  if (c.attributes.get<int64_t>("chunk") < 1) return violated(op, "C5", fmt::format("chunk is {}", c.attributes.get<int64_t>("chunk")));
  const ScanLines lines = scanLines(x, a, c.attributes);
  size_t i = 0;
  for (const ScanRole role : roles) {
    const Shape& shape = c.operands[i++].shape;
    const bool channels = role == ScanRole::OfChannels, states = role == ScanRole::OfStates;
    if (role == ScanRole::Rates) continue;
    const Shape wanted = channels ? lines.ofChannels() : states ? lines.ofStates() : lines.ofChunks();
    if (shape != wanted)
      return violated(op,
                      channels ? "C2"
                      : states ? "C4"
                               : "C6",
                      fmt::format("operand {} is {}, wanted {}", i, toString(shape), toString(wanted)));
  }
  LS_CHECK(checkExtents(op, "C6", lines.ofChunks().extents()));
  return lines;
}

TemplateShape scanTemplate(const Graph& graph, const Node& node, const ScanLines& lines, std::initializer_list<std::string_view> operands,
                           std::initializer_list<std::string_view> results) {
  TemplateShape shape{.operands = {},
                      .results = {},
                      .numbers = {{"batches", static_cast<double>(lines.batch)},
                                  {"length", static_cast<double>(lines.length)},
                                  {"channels", static_cast<double>(lines.channels)},
                                  {"states", static_cast<double>(lines.states)},
                                  {"chunk", static_cast<double>(lines.chunk)},
                                  {"hold", lines.hold ? 1.0 : 0.0}},
                      .form = TemplateForm::Stream,
                      .rows = lines.batch * lines.chunks() * lines.channels,
                      .length = lines.chunk,
                      .repeats = lines.states};
  size_t i = 0;
  for (const std::string_view name : operands) shape.operands.push_back(tensorOf(name, graph.shapeOf(node.operands[i++])));
  i = 0;
  for (const std::string_view name : results) shape.results.push_back(tensorOf(name, graph.shapeOf(node.results[i++])));
  return shape;
}

ScanChunkGradients evaluateChunkGradients(const EvaluateContext& context, int64_t part) {
  enum Operand : size_t { kU, kDelta, kA, kB, kC, kDY, kBefore, kAfter };
  const auto data = [&](size_t operand) -> const std::vector<double>& { return context.operands[operand]->data; };
  const ScanLines lines = scanLines(context.operands[kU]->type.shape, context.operands[kA]->type.shape, context.node.attributes);
  const auto length = static_cast<size_t>(lines.length), channels = static_cast<size_t>(lines.channels),
             states = static_cast<size_t>(lines.states), chunk = static_cast<size_t>(lines.chunk);
  const auto batch = static_cast<size_t>(lines.batch), chunks = static_cast<size_t>(lines.chunks());
  const size_t parts = (channels + static_cast<size_t>(part) - 1) / static_cast<size_t>(part), of_states = batch * length * states;
  ScanChunkGradients out{.u = std::vector<double>(data(kU).size(), 0.0),
                         .delta = std::vector<double>(data(kU).size(), 0.0),
                         .rates = std::vector<double>(data(kBefore).size(), 0.0),
                         .b = std::vector<double>(parts * of_states, 0.0),
                         .c = std::vector<double>(parts * of_states, 0.0)};
  for (size_t line = 0; line < data(kBefore).size(); ++line) {
    const size_t d = line % channels, n = line / channels % states, place = line / states / channels % chunks,
                 one = line / states / channels / chunks;
    const size_t first = one * length + place * chunk, last = one * length + std::min(length, (place + 1) * chunk);
    const size_t shift = d / static_cast<size_t>(part) * of_states;
    const double rate = data(kA)[d * states + n];
    std::vector<double> h{data(kBefore)[line]};
    for (size_t t = first; t < last; ++t) {
      const double step = data(kDelta)[t * channels + d], z = step * rate;
      const double beta = lines.hold && rate != 0 ? std::expm1(z) / rate : step;
      h.push_back(std::exp(z) * h.back() + beta * data(kB)[t * states + n] * data(kU)[t * channels + d]);
      out.c[shift + t * states + n] += data(kDY)[t * channels + d] * h.back();
    }
    double flow = data(kAfter)[line];
    for (size_t t = last; t-- > first;) {
      const double step = data(kDelta)[t * channels + d], z = step * rate, decay = std::exp(z), x = data(kU)[t * channels + d];
      const double beta = lines.hold && rate != 0 ? std::expm1(z) / rate : step, b = data(kB)[t * states + n];
      const double g = flow + data(kC)[t * states + n] * data(kDY)[t * channels + d], of_decay = g * decay * h[t - first];
      out.u[t * channels + d] += g * beta * b;
      out.delta[t * channels + d] += rate * of_decay + g * b * x * (lines.hold ? decay : 1);
      out.b[shift + t * states + n] += g * beta * x;
      out.rates[line] += step * of_decay;
      if (lines.hold) out.rates[line] += g * b * x * (std::abs(z) < 1e-4 ? step * step * (0.5 + z / 3) : (step * decay - beta) / rate);
      flow = decay * g;
    }
  }
  return out;
}

std::vector<OperandCase> scanTemplateOperands(const ScanLines& lines, std::initializer_list<ScanRole> roles) {
  std::vector<OperandCase> operands;
  for (const ScanRole role : roles) {
    switch (role) {
      case ScanRole::OfChannels:
        operands.push_back({f32(lines.ofChannels()), operands.size() == 1 ? 0.01 : -1.0, 1});
        break;
      case ScanRole::Rates:
        operands.push_back({f32({lines.channels, lines.states}), -2, -0.05});
        break;
      case ScanRole::OfStates:
        operands.push_back({f32(lines.ofStates()), -1, 1});
        break;
      case ScanRole::OfChunks:
        operands.push_back({f32(lines.ofChunks()), -1, 1});
        break;
    }
  }
  return operands;
}

}  // namespace lockstep::graph
