// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/ssd_chunks.h"

namespace lockstep::graph::ssd_op {
namespace {

constexpr std::string_view kName = "ssd";
using Extents = SsdExtents;
constexpr size_t kX = kSsdX, kScale = kSsdScale, kLogDecay = kSsdLogDecay, kB = kSsdB, kC = kSsdC, kInitial = kSsdInitial;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const Shape &x = c.operands[kX].shape, &scale = c.operands[kScale].shape, &log_decay = c.operands[kLogDecay].shape,
              &b = c.operands[kB].shape;
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated(kName, "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  const bool has_heads = x.rank() == 5;
  const Shape of_heads = has_heads ? Shape{x.extent(0), x.extent(1), x.extent(2)} : Shape{};
  if (!has_heads || scale != of_heads || log_decay != of_heads)
    return violated(kName, "C2",
                    fmt::format("x is {}, scale {} and log_decay {}, wanted [B, L, H, R, P] and twice [B, L, H]", toString(x),
                                toString(scale), toString(log_decay)));
  if (b.rank() != 5 || b.extent(0) != x.extent(0) || b.extent(1) != x.extent(1) || x.extent(2) % b.extent(2) != 0 ||
      b.extent(3) != x.extent(3) || c.operands[kC].shape != b)
    return violated(kName, "C3",
                    fmt::format("b is {} and c is {}, wanted one shape [{}, {}, G, {}, N] with a divisor G of {}", toString(b),
                                toString(c.operands[kC].shape), x.extent(0), x.extent(1), x.extent(3), x.extent(2)));
  const Shape state{x.extent(0), x.extent(2), x.extent(4), b.extent(4)};
  if (c.operands.size() > kInitial + 1 || (c.operands.size() > kInitial && c.operands[kInitial].shape != state))
    return violated(kName, "C4",
                    fmt::format("there are {} initial states, the first one {}, wanted one, {}", c.operands.size() - kInitial,
                                toString(c.operands[kInitial].shape), toString(state)));
  if (c.attributes.get<int64_t>("chunk") < 1) return violated(kName, "C5", fmt::format("chunk is {}", c.attributes.get<int64_t>("chunk")));
  const Extents e(x, b, c.attributes);
  LS_CHECK(checkExtents(kName, "C6", {e.batch, e.chunks() + 1, e.heads, e.width, e.states}));
  LS_CHECK(checkExtents(kName, "C6", {e.batch, e.chunks(), e.heads, e.rows(), std::max(e.rows(), e.width)}));
  return std::vector{c.operands[kX], f32(state)};
}

std::vector<ValueId> inChunks(Builder& b, const Extents& e, std::span<const ValueId> operands) {
  SsdChunks chunks(b, e, operands);
  const SsdChunks::States states = chunks.states();
  const ValueId y = chunks.fromSteps(chunks.read(states.before));
  return {y, chunks.stateFromGroups(chunks.ofChunks(states.after, e.chunks() - 1, 1))};
}

/// A step alone, as in decoding: a map over the state and a sum, which read the state once.
std::vector<ValueId> oneStep(Builder& b, const Extents& e, std::span<const ValueId> operands) {
  const Shape wide{e.batch, e.groups, e.headsOfGroup(), e.rank, e.width, e.states};
  const auto spread = [&](ValueId x, const Shape& shape) { return b.broadcastTo(b.reshape(x, shape), wide); };
  const Shape of_heads{e.batch, e.groups, e.headsOfGroup(), 1, 1, 1}, of_x{e.batch, e.groups, e.headsOfGroup(), e.rank, e.width, 1},
      of_groups{e.batch, e.groups, 1, e.rank, 1, e.states};
  const ValueId scaled = b.mul(b.reshape(operands[kX], of_x), b.reshape(operands[kScale], of_heads));
  ValueId state = b.sum(b.mul(b.broadcastTo(scaled, wide), spread(operands[kB], of_groups)), 3, true);
  const Shape of_state = b.shapeOf(state);
  if (operands.size() > kInitial) {
    const ValueId kept = b.mul(b.reshape(operands[kInitial], of_state), b.reshape(b.make("exp", {operands[kLogDecay]}), of_heads));
    state = b.add(kept, state);
  }
  const ValueId y = b.sum(b.mul(b.broadcastTo(state, wide), spread(operands[kC], of_groups)), 5, false);
  return {b.reshape(y, Shape(b.shapeOf(operands[kX]))), b.reshape(state, e.state())};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const Extents e(b.shapeOf(operands[kX]), b.shapeOf(operands[kB]), node.attributes);
  return e.length == 1 ? oneStep(b, e, operands) : inChunks(b, e, operands);
}

std::vector<Tensor> evaluateSsd(const EvaluateContext& c) {
  const std::vector<double>&x = c.operands[kX]->data, &scale = c.operands[kScale]->data, &log_decay = c.operands[kLogDecay]->data,
        &in = c.operands[kB]->data, &out = c.operands[kC]->data;
  const Shape &of_x = c.operands[kX]->type.shape, &of_b = c.operands[kB]->type.shape;
  const auto batch = static_cast<size_t>(of_x.extent(0)), length = static_cast<size_t>(of_x.extent(1)),
             heads = static_cast<size_t>(of_x.extent(2)), rank = static_cast<size_t>(of_x.extent(3)),
             width = static_cast<size_t>(of_x.extent(4)), groups = static_cast<size_t>(of_b.extent(2)),
             states = static_cast<size_t>(of_b.extent(4));
  Tensor y{c.results[0], std::vector<double>(x.size(), 0.0)}, last{c.results[1], std::vector<double>(batch * heads * width * states, 0.0)};
  for (size_t line = 0; line < last.data.size(); ++line) {
    const size_t n = line % states, p = line / states % width, h = line / states / width % heads, one = line / states / width / heads;
    double state = c.operands.size() > kInitial ? c.operands[kInitial]->data[line] : 0;
    for (size_t t = one * length; t < (one + 1) * length; ++t) {
      const size_t of_head = (t * heads + h) * rank, of_group = (t * groups + h * groups / heads) * rank;
      if (state != 0) state *= std::exp(log_decay[t * heads + h]);
      for (size_t r = 0; r < rank; ++r) state += in[(of_group + r) * states + n] * scale[t * heads + h] * x[(of_head + r) * width + p];
      for (size_t r = 0; r < rank; ++r) y.data[(of_head + r) * width + p] += out[(of_group + r) * states + n] * state;
    }
    last.data[line] = state;
  }
  return {std::move(y), std::move(last)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, std::array<int64_t, 7> extents, int64_t chunk, bool has_initial = false) {
    const auto [batch, length, heads, rank, width, groups, states] = extents;
    const OperandCase of_group{f32({batch, length, groups, rank, states}), -1, 1};
    OpCase made{name,
                {{f32({batch, length, heads, rank, width}), -1, 1},
                 {f32({batch, length, heads}), 0.1, 1},
                 {f32({batch, length, heads}), -1, -0.01},
                 of_group,
                 of_group},
                {{"chunk", chunk}},
                4e-6,
                "products of decays and sums over states and the steps of a chunk"};
    if (has_initial) made.operands.push_back({f32({batch, heads, width, states}), -1, 1});
    return made;
  };
  return {make("one_step", {2, 1, 2, 1, 3, 1, 2}, 64, true),    make("one_step_of_ranks", {2, 1, 4, 2, 3, 2, 5}, 64, true),
          make("first_step", {1, 1, 4, 1, 3, 2, 5}, 64),        make("one_chunk", {1, 6, 2, 1, 3, 1, 4}, 64),
          make("chunks", {2, 12, 4, 1, 2, 2, 3}, 4, true),      make("odd_chunks", {2, 13, 3, 1, 2, 3, 4}, 5),
          make("single_steps", {1, 4, 2, 1, 2, 1, 2}, 1, true), make("ranks", {2, 7, 4, 3, 2, 2, 3}, 3, true),
          make("ranks_one_chunk", {1, 5, 2, 2, 3, 1, 4}, 8),    make("wide", {2, 50, 4, 1, 16, 2, 32}, 16)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "S_t = exp(log_decay_t) S_(t-1) + scale_t sum over r of x_tr b_tr^T and y_tr = S_t c_tr, with a state [P, N] for each of H heads "
        "and b, c "
        "for "
        "groups of them: y [B, L, H, R, P] and the last S [B, H, P, N], by products of matrices in chunks (Dao and Gu 2024, Mamba-2).",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands are f32"},
                                 {"C2", "x is [B, L, H, R, P], scale and log_decay [B, L, H]"},
                                 {"C3", "b and c are [B, L, G, R, N], and G divides H"},
                                 {"C4", "there is one initial state at most, [B, H, P, N]"},
                                 {"C5", "chunk is at least 1"},
                                 {"C6",
                                  "with C = ceil(L / chunk) and T = chunk R, [B, C + 1, H, P, N] and [B, C, H, T, max(T, P)] have "
                                  "at most 2^31 - 1 elements"}},
    .operands = ConstantList<std::string_view>{"x", "scale", "log_decay", "b", "c", "initial..."},
    .attributes = ConstantList<AttributeDef>{{"chunk", AttributeKind::Integer, "steps that are computed by one product"}},
    .infer = infer,
    .gradient = GradientFn(ssdGradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSsd,
    .cases = cases,
};

}  // namespace lockstep::graph::ssd_op
