// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/scan_chunks.h"

#include <cmath>

namespace lockstep::graph::selective_scan_op {
namespace {

constexpr std::string_view kName = "selective_scan";
/// Places of the operands.
enum Operand : size_t { kU, kDelta, kA, kB, kC, kInitial };

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkSelectiveScan(kName, c, kInitial));
  const Shape& u = c.operands[kU].shape;
  return std::vector{c.operands[kU], f32({u.extent(0), u.extent(2), c.operands[kA].shape.extent(1)})};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const SelectiveScanExtents e = selectiveScanExtents(b.shapeOf(operands[kU]), b.shapeOf(operands[kA]), node.attributes);
  const ScanForward scan = scanChunks(b, e, operands, initialState(b, e, operands, kInitial), true);
  return {scan.y, rowOf(b, scan.states, e.chunks())};
}

std::vector<ValueId> build(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  const SelectiveScanExtents e = selectiveScanExtents(b.shapeOf(operands[kU]), b.shapeOf(operands[kA]), node.attributes);
  if (e.length == 1) return {};  // a step of decoding: the decomposition is one map and a sum
  const ScanStates states = statesByTemplates(b, e, operands, kInitial);
  const Attributes attributes{{"chunk", e.chunk}, {"zero_order_hold", e.hold}};
  std::vector<ValueId> read(operands.begin(), operands.begin() + kInitial);
  read.push_back(states.before);
  return {b.make("scan_chunk_outputs", read, attributes), states.last};
}
constexpr TemplateChoice kChoice{.name = "selective_scan", .build = build, .saved_elements = scanChunkElements, .gain = TemplateGain::Time};

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  std::vector<ValueId> operands(g.operands.begin(), g.operands.begin() + kInitial);
  for (size_t i = 0; i < 2; ++i)
    operands.push_back(g.cotangents[i].valid() ? g.cotangents[i] : b.constant(0, Shape(b.shapeOf(g.results[i]))));
  // Whatever has a in it is computed again, once what flows back is there: no state is kept from the forward pass on.
  operands[kA] = b.make("barrier", {operands[kA], operands[kInitial], operands[kInitial + 1]});
  operands.insert(operands.end(), g.operands.begin() + kInitial, g.operands.end());
  return b.makeAll("selective_scan_gradient", operands, g.node.attributes);
}

std::vector<Tensor> evaluateScan(const EvaluateContext& c) {
  const std::vector<double>&u = c.operands[kU]->data, &delta = c.operands[kDelta]->data, &a = c.operands[kA]->data,
        &input = c.operands[kB]->data, &output = c.operands[kC]->data;
  const Shape& shape = c.operands[kU]->type.shape;
  const auto batch = static_cast<size_t>(shape.extent(0)), length = static_cast<size_t>(shape.extent(1)),
             channels = static_cast<size_t>(shape.extent(2)), states = a.size() / channels;
  const bool hold = c.node.attributes.get<bool>("zero_order_hold");
  Tensor y{c.results[0], std::vector<double>(u.size(), 0.0)}, last{c.results[1], std::vector<double>(batch * channels * states, 0.0)};
  for (size_t line = 0; line < last.data.size(); ++line) {
    const size_t n = line % states, d = line / states % channels, one = line / states / channels;
    double h = c.operands.size() > kInitial ? c.operands[kInitial]->data[line] : 0;
    for (size_t t = one * length; t < (one + 1) * length; ++t) {
      const double step = delta[t * channels + d], rate = a[d * states + n];
      const double beta = hold && rate != 0 ? std::expm1(step * rate) / rate : step;
      h = (h == 0 ? 0 : std::exp(step * rate) * h) + beta * input[t * states + n] * u[t * channels + d];
      y.data[t * channels + d] += output[t * states + n] * h;
    }
    last.data[line] = h;
  }
  return {std::move(y), std::move(last)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, int64_t batch, int64_t length, int64_t channels, int64_t states, int64_t chunk, bool hold = false,
                 bool has_initial = false) {
    OpCase made{name,
                selectiveScanOperands(batch, length, channels, states),
                {{"chunk", chunk}, {"zero_order_hold", hold}},
                4e-6,
                "an exponential and some roundings per step, which later steps make smaller"};
    if (has_initial) made.operands.push_back({f32({batch, channels, states}), -1, 1});
    return made;
  };
  return {make("one_step", 2, 1, 3, 2, 16, false, true), make("short", 1, 7, 3, 2, 16),
          make("chunks", 2, 12, 3, 4, 4, false, true),   make("odd_chunks", 2, 29, 5, 3, 4),
          make("hold", 2, 11, 3, 2, 4, true, true),      make("hold_one_chunk", 1, 6, 2, 3, 100, true),
          make("single_steps", 1, 5, 2, 2, 1),           make("wide", 2, 70, 16, 16, 16)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "h_t = exp(delta_t a) h_(t-1) + beta_t b_t u_t and y_t = sum of c_t h_t over the states: y [B, L, D] and the last h [B, D, N], "
        "while one "
        "state per chunk is kept of those between (Gu and Dao 2023, Mamba).",
    .constraints = kSelectiveScanConstraints,
    .operands = ConstantList<std::string_view>{"u", "delta", "a", "b", "c", "initial..."},
    .attributes = ConstantList<AttributeDef>{kScanChunk, kScanHold},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kChoice},
    .alias = NoAlias{},
    .evaluate = evaluateScan,
    .cases = cases,
};

}  // namespace lockstep::graph::selective_scan_op
