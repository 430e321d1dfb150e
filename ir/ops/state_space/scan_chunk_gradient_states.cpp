// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/scan_chunks.h"
#include "ir/ops/support/scan_templates.h"

namespace lockstep::graph::scan_chunk_gradient_states_op {
namespace {

constexpr std::string_view kName = "scan_chunk_gradient_states";
constexpr auto kRoles = {ScanRole::OfChannels, ScanRole::OfChannels, ScanRole::Rates,    ScanRole::OfStates,
                         ScanRole::OfStates,   ScanRole::OfChannels, ScanRole::OfChunks, ScanRole::OfChunks};

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(const ScanLines lines, checkScanTemplate(kName, c, kRoles));
  const int64_t part = c.attributes.get<int64_t>("part");
  if (part < 1) return violated(kName, "C7", fmt::format("part is {}", part));
  const std::vector<int64_t> extents{(lines.channels + part - 1) / part, lines.batch, lines.length, lines.states};
  LS_CHECK(checkExtents(kName, "C7", extents));
  return std::vector{f32(Shape(extents)), f32(Shape(extents))};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const ScanLines lines = scanLines(graph.shapeOf(node.operands[0]), graph.shapeOf(node.operands[2]), node.attributes);
  const int64_t part = node.attributes.get<int64_t>("part");
  TemplateShape made = scanTemplate(graph, node, lines, {"u", "delta", "a", "b", "c", "d_y", "before", "after"}, {"d_b", "d_c"});
  made.numbers.emplace_back("part", static_cast<double>(part));
  made.rows = (lines.channels + part - 1) / part * lines.batch * lines.chunks() * lines.states;
  made.repeats = 2 * part;  // forward and back
  made.operations = 16 * lines.batch * lines.length * lines.channels * lines.states;
  return made;
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  ScanChunkGradients gradients = evaluateChunkGradients(c, c.node.attributes.get<int64_t>("part"));
  return {{c.results[0], std::move(gradients.b)}, {c.results[1], std::move(gradients.c)}};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const ScanLines& lines, int64_t part) {
    return OpCase{name,
                  scanTemplateOperands(lines, kRoles),
                  {{"chunk", lines.chunk}, {"zero_order_hold", lines.hold}, {"part", part}},
                  8e-6,
                  "an exponential and some roundings per step, which later steps make smaller"};
  };
  return {make("short", {.batch = 1, .length = 3, .channels = 2, .states = 2, .chunk = 16}, 4),
          make("odd", {.batch = 2, .length = 13, .channels = 5, .states = 3, .chunk = 4}, 2),
          make("hold", {.batch = 2, .length = 11, .channels = 3, .states = 2, .chunk = 4, .hold = true}, 3),
          make("wide", {.batch = 2, .length = 38, .channels = 16, .states = 16, .chunk = 16}, 5)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "The gradients of selective_scan towards b and c, for each part of the channels alone: their sum over the first axis is the "
        "gradient.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "operands over channels are [B, L, D]"},
                                            {"C3", "a is [D, N]"},
                                            {"C4", "operands over states are [B, L, N]"},
                                            {"C5", "chunk is at least 1"},
                                            {"C6", "states of chunks are [B, ceil(L / chunk), N, D], of at most 2^31 - 1 elements"},
                                            {"C7", "part is at least 1, and [ceil(D / part), B, L, N] has at most 2^31 - 1 elements"}},
    .operands = ConstantList<std::string_view>{"u", "delta", "a", "b", "c", "d_y", "before", "after"},
    .attributes = ConstantList<AttributeDef>{kScanChunk, kScanHold, AttributeDef{"part", AttributeKind::Integer, "channels of a part"}},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
};

}  // namespace lockstep::graph::scan_chunk_gradient_states_op
