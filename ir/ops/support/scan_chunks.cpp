// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/scan_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace lockstep::graph {
namespace {

enum Operand : size_t { kU, kDelta, kA, kB, kC };

/// Below it expm1(z) / z is 1 + z / 2 to the last bit of f32, and to 12 digits of f64.
constexpr double kTiny = 1e-6;
/// Below it the derivative of expm1(z) / z is summed up as a series; above it loses two bits at most to cancellation.
constexpr double kSmall = 0.5;
constexpr int kSeriesTerms = 11;  ///< the next one is below 1e-12 of the sum

ValueId below(Builder& b, ValueId z, double bound) { return b.make("less", {b.make("abs", {z}), b.constant(bound, b.typeOf(z))}); }

/// expm1(z) / z. The divisor is never 0, so that gradients of the other branch are numbers.
ValueId phi(Builder& b, ValueId z) {
  const ValueId tiny = below(b, z, kTiny), one = b.constant(1, b.typeOf(z));
  const ValueId divisor = b.make("where", {tiny, one, z});
  return b.make("where", {tiny, b.add(b.mul(z, 0.5), 1), b.div(b.make("expm1", {z}), divisor)});
}

/// Its derivative, (e^z - phi(z)) / z = sum over k of z^k / (k! (k + 2)).
ValueId phiDerivative(Builder& b, ValueId z, ValueId exponential) {
  const ValueId small = below(b, z, kSmall), zero = b.constant(0, b.typeOf(z)), one = b.constant(1, b.typeOf(z));
  // Each branch sees only arguments that are its own.
  const ValueId inner = b.make("where", {small, z, zero}), divisor = b.make("where", {small, one, z});
  double factorial = 1;
  for (int k = 2; k < kSeriesTerms; ++k) factorial *= k;
  ValueId series;
  for (int k = kSeriesTerms - 1; k >= 0; --k) {
    const double coefficient = 1 / (factorial * (k + 2));
    series = series.valid() ? b.add(b.mul(series, inner), coefficient) : b.constant(coefficient, b.typeOf(z));
    factorial /= std::max(k, 1);
  }
  const ValueId quotient = b.div(b.sub(exponential, b.div(b.make("expm1", {z}), divisor)), divisor);
  return b.make("where", {small, series, quotient});
}

}  // namespace

SelectiveScanExtents selectiveScanExtents(const Shape& u, const Shape& a, const Attributes& attributes) {
  return {.batch = u.extent(0),
          .length = u.extent(1),
          .channels = u.extent(2),
          .states = a.extent(1),
          .chunk = std::min(attributes.get<int64_t>("chunk"), u.extent(1)),
          .hold = attributes.get<bool>("zero_order_hold")};
}

Status checkSelectiveScan(std::string_view op, const InferContext& c, size_t initial) {
  const Shape &u = c.operands[kU].shape, &delta = c.operands[kDelta].shape, &a = c.operands[kA].shape;
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated(op, "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  if (u.rank() != 3 || delta != u)
    return violated(op, "C2", fmt::format("u is {} and delta is {}, wanted one shape [B, L, D]", toString(u), toString(delta)));
  if (a.rank() != 2 || a.extent(0) != u.extent(2))
    return violated(op, "C3", fmt::format("a is {}, wanted [{}, N]", toString(a), u.extent(2)));
  const Shape of_states{u.extent(0), u.extent(1), a.extent(1)};
  for (const size_t place : {kB, kC}) {
    if (c.operands[place].shape == of_states) continue;
    return violated(op, "C4",
                    fmt::format("{} is {}, wanted {}", place == kB ? "b" : "c", toString(c.operands[place].shape), toString(of_states)));
  }
  const Shape state{u.extent(0), u.extent(2), a.extent(1)};
  if (c.operands.size() > initial + 1 || (c.operands.size() > initial && c.operands[initial].shape != state))
    return violated(op, "C5",
                    fmt::format("there are {} initial states, the first one {}, wanted one, {}", c.operands.size() - initial,
                                toString(c.operands[initial].shape), toString(state)));
  if (c.attributes.get<int64_t>("chunk") < 1) return violated(op, "C6", fmt::format("chunk is {}", c.attributes.get<int64_t>("chunk")));
  const SelectiveScanExtents e = selectiveScanExtents(u, a, c.attributes);
  return checkExtents(op, "C7", {e.chunks() + 1, e.batch, e.channels, e.states});
}

ScanChunk::ScanChunk(Builder& builder, const SelectiveScanExtents& extents, const Inputs& inputs)
    : b_(builder), e_(extents), in_(inputs), delta_(ofChannels(in_.delta)) {
  z_ = b_.mul(delta_, b_.broadcastTo(in_.a, e_.wide()));
  decay_ = b_.make("exp", {z_});
  beta_ = e_.hold ? b_.mul(delta_, phi(b_, z_)) : delta_;
}

ValueId ScanChunk::ofChannels(ValueId x) const {
  return b_.broadcastTo(b_.reshape(x, Shape{e_.batch, e_.chunk, e_.channels, 1}), e_.wide());
}
ValueId ScanChunk::ofStates(ValueId x) const { return b_.broadcastTo(b_.reshape(x, Shape{e_.batch, e_.chunk, 1, e_.states}), e_.wide()); }
ValueId ScanChunk::ofState(ValueId h) const { return b_.reshape(h, Shape{e_.batch, 1, e_.channels, e_.states}); }

ValueId ScanChunk::stateAt(ValueId states, int64_t step) const {
  return b_.reshape(b_.make("narrow", {states}, {{"axis", int64_t{1}}, {"start", step}, {"length", int64_t{1}}}), e_.state());
}

ValueId ScanChunk::betaByDelta() const { return e_.hold ? decay_ : b_.constant(1, e_.wide()); }

ValueId ScanChunk::betaByA() const { return e_.hold ? b_.mul(b_.mul(delta_, delta_), phiDerivative(b_, z_, decay_)) : ValueId(); }

ValueId ScanChunk::statesAfter(ValueId before) const {
  const ValueId input = b_.mul(b_.mul(beta_, ofChannels(in_.u)), ofStates(in_.b));
  if (e_.chunk == 1) return b_.add(input, b_.mul(decay_, ofState(before)));
  const std::vector<ValueId> alone = b_.makeAll("linear_recurrence", {decay_, input}, {{"axis", int64_t{1}}, {"reverse", false}});
  return b_.add(alone[1], b_.mul(alone[0], ofState(before)));
}

int64_t scanChunkElements(const Graph& graph, const Node& node) {
  return selectiveScanExtents(graph.shapeOf(node.operands[kU]), graph.shapeOf(node.operands[kA]), node.attributes).wide().elementCount();
}

ValueId inChunks(Builder& b, const SelectiveScanExtents& e, ValueId x) {
  const int64_t width = b.shapeOf(x).extent(2), missing = e.chunks() * e.chunk - e.length;
  if (missing > 0) x = b.make("pad", {x}, {{"axis", int64_t{1}}, {"before", int64_t{0}}, {"after", missing}, {"value", 0.0}});
  return b.permute(b.reshape(x, Shape{e.batch, e.chunks(), e.chunk, width}), {1, 0, 2, 3});
}

ValueId fromChunks(Builder& b, const SelectiveScanExtents& e, ValueId stack) {
  const int64_t width = b.shapeOf(stack).extent(3);
  const ValueId whole = b.reshape(b.permute(stack, {1, 0, 2, 3}), Shape{e.batch, e.chunks() * e.chunk, width});
  if (e.chunks() * e.chunk == e.length) return whole;
  return b.make("narrow", {whole}, {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"length", e.length}});
}

ValueId initialState(Builder& b, const SelectiveScanExtents& e, std::span<const ValueId> operands, size_t place) {
  return operands.size() > place ? operands[place] : b.constant(0, e.state());
}

std::vector<ValueId> loopChunks(Builder& b, const SelectiveScanExtents& e, const LoopOperands& operands, bool reverse, Graph body) {
  if (e.chunks() > 1) return makeLoop(b, operands, e.chunks(), reverse, std::move(body));
  std::map<std::string, ValueId, std::less<>> leaves{{carryName(0), operands.carries[0]}};
  for (size_t i = 0; i < operands.slices.size(); ++i) leaves[sliceName(i)] = rowOf(b, operands.slices[i], 0);
  for (size_t i = 0; i < operands.captures.size(); ++i) leaves[captureName(i)] = operands.captures[i];
  std::vector<ValueId> made = inlineGraph(b, body, leaves);
  for (ValueId& value : made) value = b.reshape(value, stackType(b.typeOf(value), 1).shape);
  const ValueId first = b.reshape(operands.carries[0], b.shapeOf(made[0]));
  made[0] = b.make("concat", reverse ? std::vector{made[0], first} : std::vector{first, made[0]}, {{"axis", int64_t{0}}});
  return made;
}

ScanForward scanChunks(Builder& b, const SelectiveScanExtents& e, std::span<const ValueId> operands, ValueId initial, bool wants_y) {
  LoopOperands loop{.carries = {initial}, .held = {}, .slices = {}, .captures = {operands[kA]}};
  for (const size_t place : {kU, kDelta, kB}) loop.slices.push_back(inChunks(b, e, operands[place]));
  if (wants_y) loop.slices.push_back(inChunks(b, e, operands[kC]));

  Builder body;
  const auto leaf = [&](const std::string& name, const Shape& shape) {
    return body.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", shape.extents()}});
  };
  const Shape of_channels{e.batch, e.chunk, e.channels}, of_states{e.batch, e.chunk, e.states};
  const ValueId before = leaf(carryName(0), e.state()), u = leaf(sliceName(0), of_channels), delta = leaf(sliceName(1), of_channels),
                input = leaf(sliceName(2), of_states);
  const ValueId c = wants_y ? leaf(sliceName(3), of_states) : ValueId();
  const ScanChunk chunk(body, e, {.u = u, .delta = delta, .a = leaf(captureName(0), Shape{e.channels, e.states}), .b = input});
  const ValueId states = chunk.statesAfter(before);
  body.output(OutputKind::Result, carryName(0), chunk.stateAt(states, e.chunk - 1));
  if (wants_y) body.output(OutputKind::Result, resultName(0), body.sum(body.mul(chunk.ofStates(c), states), -1, false));
  const std::vector<ValueId> made = loopChunks(b, e, loop, false, body.take());
  return {.states = made[0], .y = wants_y ? fromChunks(b, e, made[1]) : ValueId()};
}

ValueId decayOfChunks(Builder& b, const SelectiveScanExtents& e, ValueId delta, ValueId a) {
  const ValueId steps = b.permute(b.sum(inChunks(b, e, delta), 2, false), {1, 0, 2});
  const Shape states{e.batch, e.chunks(), e.states, e.channels};
  const ValueId wide = b.broadcastTo(b.reshape(steps, Shape{e.batch, e.chunks(), 1, e.channels}), states);
  return b.make("exp", {b.mul(wide, b.broadcastTo(b.swapLastAxes(a), states))});
}

ValueId asChunk(Builder& b, const SelectiveScanExtents& e, ValueId state) {
  return b.reshape(b.swapLastAxes(state), Shape{e.batch, 1, e.states, e.channels});
}
ValueId ofOneChunk(Builder& b, const SelectiveScanExtents& e, ValueId chunk) {
  return b.swapLastAxes(b.reshape(chunk, Shape{e.batch, e.states, e.channels}));
}

ScanStates statesByTemplates(Builder& b, const SelectiveScanExtents& e, std::span<const ValueId> operands, size_t initial) {
  const Attributes attributes{{"chunk", e.chunk}, {"zero_order_hold", e.hold}, {"reverse", false}};
  ValueId added = b.make("scan_chunk_states", {operands[kU], operands[kDelta], operands[kA], operands[kB]}, attributes);
  const auto part = [&](ValueId x, int64_t start, int64_t length) {
    return b.make("narrow", {x}, {{"axis", int64_t{1}}, {"start", start}, {"length", length}});
  };
  const auto afterOneMore = [&](ValueId x) {
    return b.make("pad", {x}, {{"axis", int64_t{1}}, {"before", int64_t{1}}, {"after", int64_t{0}}, {"value", 0.0}});
  };
  const bool has_initial = operands.size() > initial;
  if (e.chunks() == 1 && !has_initial) return {.before = b.constant(0, Shape(b.shapeOf(added))), .last = ofOneChunk(b, e, added)};
  ValueId decay = decayOfChunks(b, e, operands[kDelta], operands[kA]);
  if (has_initial) {
    // As what a chunk of its own adds.
    added = b.make("concat", {asChunk(b, e, operands[initial]), added}, {{"axis", int64_t{1}}});
    decay = afterOneMore(decay);
  }
  const ValueId all = b.makeAll("linear_recurrence", {decay, added}, {{"axis", int64_t{1}}, {"reverse", false}})[1];
  const int64_t count = b.shapeOf(all).extent(1);
  const ValueId last = ofOneChunk(b, e, part(all, count - 1, 1)), before = part(all, 0, count - 1);
  return {.before = has_initial ? before : afterOneMore(before), .last = last};
}

std::vector<OperandCase> selectiveScanOperands(int64_t batch, int64_t length, int64_t channels, int64_t states) {
  const TensorType of_channels = f32({batch, length, channels}), of_states = f32({batch, length, states});
  return {{of_channels, -1, 1}, {of_channels, 0.01, 1}, {f32({channels, states}), -2, -0.05}, {of_states, -1, 1}, {of_states, -1, 1}};
}

}  // namespace lockstep::graph
