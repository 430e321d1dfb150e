// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/scan_chunks.h"

namespace lockstep::graph::selective_scan_gradient_op {
namespace {

constexpr std::string_view kName = "selective_scan_gradient";
/// Places of the operands.
enum Operand : size_t { kU, kDelta, kA, kB, kC, kDY, kDFinal, kInitial };

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkSelectiveScan(kName, c, kInitial));
  const Shape& u = c.operands[kU].shape;
  const Shape state{u.extent(0), u.extent(2), c.operands[kA].shape.extent(1)};
  if (c.operands[kDY].shape != u || c.operands[kDFinal].shape != state)
    return violated(kName, "C8",
                    fmt::format("d_y is {} and d_final is {}, wanted {} and {}", toString(c.operands[kDY].shape),
                                toString(c.operands[kDFinal].shape), toString(u), toString(state)));
  std::vector<TensorType> types(c.operands.begin(), c.operands.begin() + kDY);
  if (c.operands.size() > kInitial) types.push_back(c.operands[kInitial]);
  return types;
}

/// The gradients of one chunk, from the state before it and what flows back into the state after it.
Graph backwardBody(const SelectiveScanExtents& e) {
  Builder b;
  const auto leaf = [&](const std::string& name, const Shape& shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", shape.extents()}});
  };
  const Shape of_channels{e.batch, e.chunk, e.channels}, of_states{e.batch, e.chunk, e.states};
  const ValueId after = leaf(carryName(0), e.state()), u = leaf(sliceName(0), of_channels), delta = leaf(sliceName(1), of_channels),
                input = leaf(sliceName(2), of_states), output = leaf(sliceName(3), of_states), dy = leaf(sliceName(4), of_channels),
                before = leaf(sliceName(5), e.state()), a = leaf(captureName(0), Shape{e.channels, e.states});
  const ScanChunk chunk(b, e, {.u = u, .delta = delta, .a = a, .b = input});
  const auto along = [](int64_t start, int64_t length) { return Attributes{{"axis", int64_t{1}}, {"start", start}, {"length", length}}; };
  const auto padded = [&](ValueId x, int64_t front, int64_t back) {
    if (front + back == 0) return x;
    return b.make("pad", {x}, {{"axis", int64_t{1}}, {"before", front}, {"after", back}, {"value", 0.0}});
  };
  const ValueId states = chunk.statesAfter(before), decay = chunk.decay();
  const ValueId wide_dy = chunk.ofChannels(dy), wide_u = chunk.ofChannels(u), wide_b = chunk.ofStates(input);
  // g_t = c_t dy_t + exp(delta_(t+1) a) g_(t+1), where the last one gets what flows back.
  ValueId earlier = chunk.ofState(before), g = b.add(b.mul(chunk.ofStates(output), wide_dy), padded(chunk.ofState(after), e.chunk - 1, 0));
  if (e.chunk > 1) {
    earlier = b.make("concat", {earlier, b.make("narrow", {states}, along(0, e.chunk - 1))}, {{"axis", int64_t{1}}});
    const ValueId next_decay = padded(b.make("narrow", {decay}, along(1, e.chunk - 1)), 0, 1);
    g = b.makeAll("linear_recurrence", {next_decay, g}, {{"axis", int64_t{1}}, {"reverse", true}})[1];
  }
  const ValueId g_input = b.mul(g, chunk.beta());
  const ValueId g_decay = b.mul(g, b.mul(decay, earlier)), g_bu = b.mul(g, b.mul(wide_b, wide_u));

  b.output(OutputKind::Result, carryName(0), b.mul(chunk.stateAt(decay, 0), chunk.stateAt(g, 0)));
  size_t results = 0;
  const auto result = [&](ValueId value) { b.output(OutputKind::Result, resultName(results++), value); };
  result(b.sum(b.mul(g_input, wide_b), 3, false));
  result(b.sum(b.add(b.mul(g_decay, b.broadcastTo(a, e.wide())), b.mul(g_bu, chunk.betaByDelta())), 3, false));
  ValueId to_a = b.mul(g_decay, chunk.ofChannels(delta));
  if (e.hold) to_a = b.add(to_a, b.mul(g_bu, chunk.betaByA()));
  result(b.make("sum", {to_a}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}}));
  result(b.sum(b.mul(g_input, wide_u), 2, false));
  result(b.sum(b.mul(wide_dy, states), 2, false));
  return b.take();
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const SelectiveScanExtents e = selectiveScanExtents(b.shapeOf(operands[kU]), b.shapeOf(operands[kA]), node.attributes);
  const ValueId states = scanChunks(b, e, operands, initialState(b, e, operands, kInitial), false).states;
  LoopOperands loop{.carries = {operands[kDFinal]}, .held = {}, .slices = {}, .captures = {operands[kA]}};
  for (const size_t place : {kU, kDelta, kB, kC, kDY}) loop.slices.push_back(inChunks(b, e, operands[place]));
  loop.slices.push_back(rowsOf(b, states, 0, e.chunks()));
  const std::vector<ValueId> made = loopChunks(b, e, loop, true, backwardBody(e));
  std::vector<ValueId> results{fromChunks(b, e, made[1]), fromChunks(b, e, made[2]), b.sum(made[3], 0, false), fromChunks(b, e, made[4]),
                               fromChunks(b, e, made[5])};
  if (operands.size() > kInitial) results.push_back(rowOf(b, made[0], 0));
  return results;
}

/// Channels that an invocation of a template adds up: many are few partial sums, few are many invocations.
constexpr int64_t kPart = 128;

std::vector<ValueId> build(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  const SelectiveScanExtents e = selectiveScanExtents(b.shapeOf(operands[kU]), b.shapeOf(operands[kA]), node.attributes);
  if (e.length == 1) return {};
  const Attributes attributes{{"chunk", e.chunk}, {"zero_order_hold", e.hold}};
  Attributes reversed = attributes, parted = attributes;
  reversed.set("reverse", true);
  parted.set("part", kPart);
  const ValueId before = statesByTemplates(b, e, operands, kInitial).before;
  // What flows back to before each chunk, from its own steps and from those after it.
  ValueId all = b.make("scan_chunk_states", {operands[kDY], operands[kDelta], operands[kA], operands[kC]}, reversed);
  ValueId decay = decayOfChunks(b, e, operands[kDelta], operands[kA]);
  const auto padded = [&](ValueId x) {
    return b.make("pad", {x}, {{"axis", int64_t{1}}, {"before", int64_t{0}}, {"after", int64_t{1}}, {"value", 0.0}});
  };
  const bool from_end = !isZero(b, operands[kDFinal]);
  if (from_end) {
    all = b.make("concat", {all, asChunk(b, e, operands[kDFinal])}, {{"axis", int64_t{1}}});
    decay = padded(decay);
  }
  if (b.shapeOf(all).extent(1) > 1) all = b.makeAll("linear_recurrence", {decay, all}, {{"axis", int64_t{1}}, {"reverse", true}})[1];
  const auto part = [&](int64_t start, int64_t length) {
    return b.make("narrow", {all}, {{"axis", int64_t{1}}, {"start", start}, {"length", length}});
  };
  ValueId after;
  if (from_end) {
    after = part(1, e.chunks());
  } else {
    after = e.chunks() > 1 ? padded(part(1, e.chunks() - 1)) : b.constant(0, Shape(b.shapeOf(all)));
  }
  const std::vector<ValueId> read{operands[kU], operands[kDelta], operands[kA], operands[kB], operands[kC], operands[kDY], before, after};
  const std::vector<ValueId> of_channels = b.makeAll("scan_chunk_gradient", read, attributes);
  const std::vector<ValueId> of_states = b.makeAll("scan_chunk_gradient_states", read, parted);
  const ValueId to_a = b.swapLastAxes(b.make("sum", {of_channels[2]}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}}));
  std::vector<ValueId> results{of_channels[0], of_channels[1], to_a, b.sum(of_states[0], 0, false), b.sum(of_states[1], 0, false)};
  if (operands.size() > kInitial) results.push_back(ofOneChunk(b, e, part(0, 1)));
  return results;
}
constexpr TemplateChoice kChoice{.name = "selective_scan", .build = build, .saved_elements = scanChunkElements, .gain = TemplateGain::Time};

/// One state of one channel after the other, with all of its values in memory.
std::vector<Tensor> evaluateGradient(const EvaluateContext& c) {
  const auto data = [&](size_t operand) -> const std::vector<double>& { return c.operands[operand]->data; };
  const Shape& shape = c.operands[kU]->type.shape;
  const auto batch = static_cast<size_t>(shape.extent(0)), length = static_cast<size_t>(shape.extent(1)),
             channels = static_cast<size_t>(shape.extent(2)), states = data(kA).size() / channels;
  const bool hold = c.node.attributes.get<bool>("zero_order_hold");
  std::vector<Tensor> out;
  for (const TensorType& type : c.results) out.push_back({type, std::vector<double>(static_cast<size_t>(type.shape.elementCount()), 0.0)});
  for (size_t line = 0; line < batch * channels * states; ++line) {
    const size_t n = line % states, d = line / states % channels, one = line / states / channels, of_a = d * states + n;
    const double rate = data(kA)[of_a];
    std::vector<double> h{c.operands.size() > kInitial ? data(kInitial)[line] : 0};
    const auto betaOf = [&](double step) { return hold && rate != 0 ? std::expm1(step * rate) / rate : step; };
    for (size_t t = one * length; t < (one + 1) * length; ++t) {
      const double step = data(kDelta)[t * channels + d];
      const double input = betaOf(step) * data(kB)[t * states + n] * data(kU)[t * channels + d];
      h.push_back(h.back() == 0 ? input : std::exp(step * rate) * h.back() + input);
    }
    double flow = data(kDFinal)[line];
    for (size_t i = length; i-- > 0;) {
      const size_t t = one * length + i, at = t * channels + d, of_state = t * states + n;
      const double step = data(kDelta)[at], decay = std::exp(step * rate), beta = betaOf(step), bu = data(kB)[of_state] * data(kU)[at];
      const double g = flow + data(kC)[of_state] * data(kDY)[at];
      out[0].data[at] += g * beta * data(kB)[of_state];
      out[1].data[at] += g * (rate * decay * h[i] + (hold ? decay : 1) * bu);
      out[2].data[of_a] += g * step * decay * h[i];
      // The derivative of beta by a, and its limit where that has no digits left.
      const double z = step * rate;
      if (hold) out[2].data[of_a] += g * bu * (std::abs(z) < 1e-4 ? step * step * (0.5 + z / 3 + z * z / 8) : (step * decay - beta) / rate);
      out[3].data[of_state] += g * beta * data(kU)[at];
      out[4].data[of_state] += h[i + 1] * data(kDY)[at];
      flow = decay * g;
    }
    if (c.operands.size() > kInitial) out[5].data[line] = flow;
  }
  return out;
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, int64_t batch, int64_t length, int64_t channels, int64_t states, int64_t chunk, bool hold = false,
                 bool has_initial = false) {
    OpCase made{name,
                selectiveScanOperands(batch, length, channels, states),
                {{"chunk", chunk}, {"zero_order_hold", hold}},
                8e-6,
                "two recurrences of an exponential and some roundings per step, then sums"};
    made.operands.push_back({f32({batch, length, channels}), -1, 1});
    made.operands.push_back({f32({batch, channels, states}), -1, 1});
    if (has_initial) made.operands.push_back({f32({batch, channels, states}), -1, 1});
    return made;
  };
  return {make("one_step", 2, 1, 3, 2, 16, false, true),
          make("chunks", 2, 12, 3, 4, 4, false, true),
          make("odd_chunks", 2, 23, 5, 3, 4),
          make("hold", 2, 11, 3, 2, 4, true, true),
          make("hold_one_chunk", 1, 6, 2, 3, 100, true),
          make("single_steps", 1, 5, 2, 2, 1),
          make("wide", 2, 38, 16, 16, 16)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "The gradients of selective_scan towards u, delta, a, b, c and the initial state, from those of its results; states are computed "
        "again "
        "from one per chunk.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "u is [B, L, D], and delta has its shape"},
                                            {"C3", "a is [D, N]"},
                                            {"C4", "b and c are [B, L, N]"},
                                            {"C5", "there is one initial state at most, [B, D, N]"},
                                            {"C6", "chunk is at least 1"},
                                            {"C7", "states [ceil(L / chunk) + 1, B, D, N] have at most 2^31 - 1 elements"},
                                            {"C8", "d_y is as u, and d_final [B, D, N]"}},
    .operands = ConstantList<std::string_view>{"u", "delta", "a", "b", "c", "d_y", "d_final", "initial..."},
    .attributes = ConstantList<AttributeDef>{kScanChunk, kScanHold},
    .infer = infer,
    .gradient = ByDecomposition{},
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kChoice},
    .alias = NoAlias{},
    .evaluate = evaluateGradient,
    .cases = cases,
};

}  // namespace lockstep::graph::selective_scan_gradient_op
