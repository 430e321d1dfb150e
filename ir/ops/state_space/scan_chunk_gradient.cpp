// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/scan_chunks.h"
#include "ir/ops/support/scan_templates.h"

namespace lockstep::graph::scan_chunk_gradient_op {
namespace {

constexpr std::string_view kName = "scan_chunk_gradient";
constexpr auto kRoles = {ScanRole::OfChannels, ScanRole::OfChannels, ScanRole::Rates,    ScanRole::OfStates,
                         ScanRole::OfStates,   ScanRole::OfChannels, ScanRole::OfChunks, ScanRole::OfChunks};

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(const ScanLines lines, checkScanTemplate(kName, c, kRoles));
  return std::vector{c.operands[0], c.operands[1], f32(lines.ofChunks())};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const ScanLines lines = scanLines(graph.shapeOf(node.operands[0]), graph.shapeOf(node.operands[2]), node.attributes);
  TemplateShape made = scanTemplate(graph, node, lines, {"u", "delta", "a", "b", "c", "d_y", "before", "after"}, {"d_u", "d_delta", "d_a"});
  made.repeats = 2 * lines.states;  // forward and back
  made.operations = 20 * lines.batch * lines.length * lines.channels * lines.states;
  return made;
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  ScanChunkGradients gradients = evaluateChunkGradients(c, c.operands[0]->type.shape.extent(2));
  return {{c.results[0], std::move(gradients.u)}, {c.results[1], std::move(gradients.delta)}, {c.results[2], std::move(gradients.rates)}};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const ScanLines& lines) {
    return OpCase{name,
                  scanTemplateOperands(lines, kRoles),
                  {{"chunk", lines.chunk}, {"zero_order_hold", lines.hold}},
                  8e-6,
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
    .summary =
        "The gradients of selective_scan towards u, delta and a, the last one per chunk, from the state before each chunk and what flows "
        "back after it.",
    .constraints = kScanTemplateConstraints,
    .operands = ConstantList<std::string_view>{"u", "delta", "a", "b", "c", "d_y", "before", "after"},
    .attributes = ConstantList<AttributeDef>{kScanChunk, kScanHold},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
};

}  // namespace lockstep::graph::scan_chunk_gradient_op
