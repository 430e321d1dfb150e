// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/ops/support/scan_chunks.h"
#include "ir/ops/support/scan_templates.h"

namespace lockstep::graph::scan_chunk_states_op {
namespace {

constexpr std::string_view kName = "scan_chunk_states";
constexpr auto kRoles = {ScanRole::OfChannels, ScanRole::OfChannels, ScanRole::Rates, ScanRole::OfStates};

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(const ScanLines lines, checkScanTemplate(kName, c, kRoles));
  return std::vector{f32(lines.ofChunks())};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const ScanLines lines = scanLines(graph.shapeOf(node.operands[0]), graph.shapeOf(node.operands[2]), node.attributes);
  TemplateShape made = scanTemplate(graph, node, lines, {"x", "delta", "a", "m"}, {"states"});
  made.numbers.emplace_back("reverse", node.attributes.get<bool>("reverse") ? 1.0 : 0.0);
  made.operations = 6 * lines.batch * lines.length * lines.channels * lines.states;
  return made;
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  const std::vector<double>&x = c.operands[0]->data, &delta = c.operands[1]->data, &a = c.operands[2]->data, &m = c.operands[3]->data;
  const ScanLines lines = scanLines(c.operands[0]->type.shape, c.operands[2]->type.shape, c.node.attributes);
  const bool reverse = c.node.attributes.get<bool>("reverse");
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    const int64_t first = index[1] * lines.chunk, last = std::min(lines.length, first + lines.chunk);
    const double rate = a[static_cast<size_t>(index[3] * lines.states + index[2])];
    double h = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t t = index[0] * lines.length + (reverse ? first + last - 1 - i : i);
      const auto of_channel = static_cast<size_t>(t * lines.channels + index[3]),
                 of_state = static_cast<size_t>(t * lines.states + index[2]);
      const double step = delta[of_channel], decay = std::exp(step * rate), input = m[of_state] * x[of_channel];
      const double beta = lines.hold && rate != 0 ? std::expm1(step * rate) / rate : step;
      h = reverse ? decay * (h + input) : decay * h + beta * input;
    }
    return h;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const ScanLines& lines, bool reverse = false) {
    return OpCase{name,
                  scanTemplateOperands(lines, kRoles),
                  {{"chunk", lines.chunk}, {"zero_order_hold", lines.hold}, {"reverse", reverse}},
                  4e-6,
                  "an exponential and some roundings per step, which later steps make smaller"};
  };
  return {make("short", {.batch = 1, .length = 3, .channels = 2, .states = 2, .chunk = 16}),
          make("odd", {.batch = 2, .length = 13, .channels = 5, .states = 3, .chunk = 4}),
          make("hold", {.batch = 2, .length = 11, .channels = 3, .states = 2, .chunk = 4, .hold = true}),
          make("wide", {.batch = 2, .length = 38, .channels = 16, .states = 16, .chunk = 16}),
          make("reverse", {.batch = 2, .length = 13, .channels = 5, .states = 3, .chunk = 4}, true),
          make("reverse_hold", {.batch = 1, .length = 9, .channels = 3, .states = 2, .chunk = 4, .hold = true}, true)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "The states at the ends of chunks, each from 0, as selective_scan has them for x and m; or reversed what flows back to before each "
        "chunk, for d_y and c.",
    .constraints = kScanTemplateConstraints,
    .operands = ConstantList<std::string_view>{"x", "delta", "a", "m"},
    .attributes = ConstantList<AttributeDef>{kScanChunk, kScanHold,
                                             AttributeDef{"reverse", AttributeKind::Boolean, "from the last step of a chunk to its first"}},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
};

}  // namespace lockstep::graph::scan_chunk_states_op
