// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/scan_chunks.h"
#include "ir/ops/support/scan_templates.h"

namespace lockstep::graph::scan_chunk_outputs_op {
namespace {

constexpr std::string_view kName = "scan_chunk_outputs";
constexpr auto kRoles = {ScanRole::OfChannels, ScanRole::OfChannels, ScanRole::Rates,
                         ScanRole::OfStates,   ScanRole::OfStates,   ScanRole::OfChunks};

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkScanTemplate(kName, c, kRoles));
  return std::vector{c.operands[0]};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const ScanLines lines = scanLines(graph.shapeOf(node.operands[0]), graph.shapeOf(node.operands[2]), node.attributes);
  TemplateShape made = scanTemplate(graph, node, lines, {"u", "delta", "a", "b", "c", "before"}, {"y"});
  made.operations = 8 * lines.batch * lines.length * lines.channels * lines.states;
  return made;
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  const auto at = [&](size_t operand, int64_t index) { return c.operands[operand]->data[static_cast<size_t>(index)]; };
  const ScanLines lines = scanLines(c.operands[0]->type.shape, c.operands[2]->type.shape, c.node.attributes);
  const int64_t channels = lines.channels, states = lines.states;
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    const int64_t place = index[1] / lines.chunk, first = index[0] * lines.length, d = index[2];
    double y = 0;
    for (int64_t n = 0; n < states; ++n) {
      const double rate = at(2, d * states + n);
      double h = at(5, ((index[0] * lines.chunks() + place) * states + n) * channels + d);
      for (int64_t t = first + place * lines.chunk; t <= first + index[1]; ++t) {
        const double step = at(1, t * channels + d), beta = lines.hold && rate != 0 ? std::expm1(step * rate) / rate : step;
        h = std::exp(step * rate) * h + beta * at(3, t * states + n) * at(0, t * channels + d);
      }
      y += at(4, (first + index[1]) * states + n) * h;
    }
    return y;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const ScanLines& lines) {
    return OpCase{name,
                  scanTemplateOperands(lines, kRoles),
                  {{"chunk", lines.chunk}, {"zero_order_hold", lines.hold}},
                  4e-6,
                  "an exponential and some roundings per step, which later steps make smaller"};
  };
  return {make("short", {.batch = 1, .length = 3, .channels = 2, .states = 2, .chunk = 16}),
          make("odd", {.batch = 2, .length = 13, .channels = 5, .states = 3, .chunk = 4}),
          make("hold", {.batch = 2, .length = 11, .channels = 3, .states = 2, .chunk = 4, .hold = true}),
          make("wide", {.batch = 2, .length = 38, .channels = 16, .states = 16, .chunk = 16})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "The results of selective_scan, each chunk from the state before it.",
    .constraints = kScanTemplateConstraints,
    .operands = ConstantList<std::string_view>{"u", "delta", "a", "b", "c", "before"},
    .attributes = ConstantList<AttributeDef>{kScanChunk, kScanHold},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
};

}  // namespace lockstep::graph::scan_chunk_outputs_op
