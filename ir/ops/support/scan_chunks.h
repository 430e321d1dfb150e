// SPDX-License-Identifier: Apache-2.0
// What the ops of the selective scan share (Gu and Dao 2023, Mamba):
//   h_t = exp(delta_t a) h_(t-1) + beta_t b_t u_t,   y_t = sum over n of c_t h_t
// with u, delta [B, L, D], a [D, N], b, c [B, L, N] and states h [B, D, N]. beta is delta (Euler) or expm1(delta a) / a (zero-order hold).
// Time is cut into chunks. What is kept of the states is one per chunk; inside of a chunk they are computed again.
#pragma once

#include "ir/graph/loop.h"
#include "ir/ops/support/common.h"

namespace lockstep::graph {

inline constexpr AttributeDef kScanChunk{"chunk", AttributeKind::Integer, "steps of which one state is kept"};
inline constexpr AttributeDef kScanHold{"zero_order_hold", AttributeKind::Boolean, "beta is expm1(delta a) / a, else delta"};

inline constexpr ConstantList<Constraint> kSelectiveScanConstraints{
    {"C1", "operands are f32"},
    {"C2", "u is [B, L, D], and delta has its shape"},
    {"C3", "a is [D, N]"},
    {"C4", "b and c are [B, L, N]"},
    {"C5", "there is one initial state at most, [B, D, N]"},
    {"C6", "chunk is at least 1"},
    {"C7", "states [ceil(L / chunk) + 1, B, D, N] have at most 2^31 - 1 elements"}};

struct SelectiveScanExtents {
  int64_t batch = 1, length = 1, channels = 1, states = 1, chunk = 1;
  bool hold = false;  ///< zero-order hold
  [[nodiscard]] int64_t chunks() const { return (length + chunk - 1) / chunk; }
  [[nodiscard]] Shape wide() const { return {batch, chunk, channels, states}; }
  [[nodiscard]] Shape state() const { return {batch, channels, states}; }
};
/// Of u [B, L, D] and a [D, N] that fit. A chunk is as long as all of time at most.
SelectiveScanExtents selectiveScanExtents(const Shape& u, const Shape& a, const Attributes& attributes);

/// C1 to C4, C6 and C7 for u, delta, a, b, c; `initial`: the place of the initial state among the operands, for C5.
Status checkSelectiveScan(std::string_view op, const InferContext& context, size_t initial);

/// Ordinary ops for one chunk, on values [B, T, D, N].
class ScanChunk {
 public:
  /// delta [B, T, D], a [D, N], b [B, T, N], u [B, T, D].
  struct Inputs {
    ValueId u, delta, a, b;
  };
  ScanChunk(Builder& builder, const SelectiveScanExtents& extents, const Inputs& inputs);

  /// exp(delta a).
  [[nodiscard]] ValueId decay() const { return decay_; }
  /// The derivative of beta by delta: 1, or the decay. By a: 0 (no value), or delta^2 phi'(delta a) with phi(z) = expm1(z) / z.
  [[nodiscard]] ValueId betaByDelta() const;
  [[nodiscard]] ValueId betaByA() const;
  [[nodiscard]] ValueId beta() const { return beta_; }
  /// All states of the chunk, after `before` [B, D, N].
  [[nodiscard]] ValueId statesAfter(ValueId before) const;

  [[nodiscard]] ValueId ofChannels(ValueId x) const;  ///< [B, T, D] as [B, T, D, N]
  [[nodiscard]] ValueId ofStates(ValueId x) const;    ///< [B, T, N] as [B, T, D, N]
  [[nodiscard]] ValueId ofState(ValueId h) const;     ///< [B, D, N] as [B, 1, D, N]
  [[nodiscard]] ValueId stateAt(ValueId states, int64_t step) const;

 private:
  Builder& b_;
  const SelectiveScanExtents& e_;
  Inputs in_;
  ValueId delta_, z_, decay_, beta_;
};

/// Of a value of one chunk, which the decomposition keeps and templates do not.
int64_t scanChunkElements(const Graph& graph, const Node& node);

/// x [B, L, W] as a stack of chunks [C, B, T, W]; what fills up the last one is 0.
ValueId inChunks(Builder& builder, const SelectiveScanExtents& extents, ValueId x);
/// The way back.
ValueId fromChunks(Builder& builder, const SelectiveScanExtents& extents, ValueId stack);

/// The initial state among the operands, or zeros.
ValueId initialState(Builder& builder, const SelectiveScanExtents& extents, std::span<const ValueId> operands, size_t place);

/// A loop over chunks with one carry. A single chunk needs none, and then gradients are not those of a carry from nowhere.
std::vector<ValueId> loopChunks(Builder& builder, const SelectiveScanExtents& extents, const LoopOperands& operands, bool reverse,
                                Graph body);

/// The loop over chunks that leaves the state before each chunk and after the last one, [C + 1, B, D, N]; with c [B, L, N] also y.
struct ScanForward {
  ValueId states, y;
};
ScanForward scanChunks(Builder& builder, const SelectiveScanExtents& extents, std::span<const ValueId> operands, ValueId initial,
                       bool wants_y);

/// What templates make of operands u, delta, a, b, c: the state before each chunk [B, C, N, D] and after the last one
/// [B, D, N].
struct ScanStates {
  ValueId before, last;
};
ScanStates statesByTemplates(Builder& builder, const SelectiveScanExtents& extents, std::span<const ValueId> operands, size_t initial);
/// A state [B, D, N] as one of a chunk, [B, 1, N, D], and back.
ValueId asChunk(Builder& builder, const SelectiveScanExtents& extents, ValueId state);
ValueId ofOneChunk(Builder& builder, const SelectiveScanExtents& extents, ValueId chunk);
/// exp(a times the sum of delta) of each chunk, [B, C, N, D].
ValueId decayOfChunks(Builder& builder, const SelectiveScanExtents& extents, ValueId delta, ValueId a);

/// Operands u, delta, a, b, c of a case.
std::vector<OperandCase> selectiveScanOperands(int64_t batch, int64_t length, int64_t channels, int64_t states);

}  // namespace lockstep::graph
