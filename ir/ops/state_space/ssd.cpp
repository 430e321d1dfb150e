// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::ssd_op {
namespace {

constexpr std::string_view kName = "ssd";
/// Places of the operands.
enum Operand : size_t { kX, kScale, kLogDecay, kB, kC, kInitial };

struct Extents {
  int64_t batch, length, heads, rank, width, groups, states, chunk;
  Extents(const Shape& x, const Shape& b, const Attributes& attributes)
      : batch(x.extent(0)),
        length(x.extent(1)),
        heads(x.extent(2)),
        rank(x.extent(3)),
        width(x.extent(4)),
        groups(b.extent(2)),
        states(b.extent(4)),
        chunk(std::min(attributes.get<int64_t>("chunk"), length)) {}
  [[nodiscard]] int64_t chunks() const { return (length + chunk - 1) / chunk; }
  [[nodiscard]] int64_t headsOfGroup() const { return heads / groups; }
  [[nodiscard]] int64_t rows() const { return chunk * rank; }  ///< of a chunk
  [[nodiscard]] Shape state() const { return {batch, heads, width, states}; }
};

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

/// The chunked form (Dao and Gu 2024, Transformers are SSMs, section 6): inside of a chunk products of matrices, between chunks a
/// recurrence of one state each. Decays over several steps are products, which are exact to a rounding per step: differences of sums of
/// logarithms would lose what a large step before them has.
class Chunked {
 public:
  Chunked(Builder& builder, const Extents& extents, std::span<const ValueId> operands) : b_(builder), e_(extents), operands_(operands) {
    x_ = inRows(b_.mul(operands[kX], b_.reshape(operands[kScale], Shape{e_.batch, e_.length, e_.heads, 1, 1})));
    input_ = inRows(operands[kB]);
    output_ = inRows(operands[kC]);
    decay_ = b_.permute(b_.make("exp", {inChunks(operands[kLogDecay])}), {0, 1, 3, 2});
  }

  std::vector<ValueId> run() {
    decayBetween();
    const Shape between{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup(), e_.chunk, 1, e_.chunk, 1};
    const Shape scores{e_.batch, e_.chunks(), e_.groups, 1, e_.chunk, e_.rank, e_.chunk, e_.rank};
    const Shape weights{e_.batch, e_.chunks(), e_.heads, e_.rows(), e_.rows()};
    const ValueId met = b_.reshape(b_.make("matmul", {output_, b_.swapLastAxes(input_)}), scores);
    ValueId y = inSteps(b_.make("matmul", {b_.reshape(b_.mul(b_.reshape(between_, between), met), weights), x_}));
    passStates();
    if (before_.valid()) y = b_.add(y, readBefore());
    return {y, last_};
  }

 private:
  /// What is read of the states before chunks, all heads of a group in one product, [B, L, H, R, P]. Without an initial state the first
  /// chunk has none.
  ValueId readBefore() {
    const int64_t chunks = b_.shapeOf(before_).extent(1), first = e_.chunks() - chunks;
    const Shape flat{e_.batch, chunks, e_.groups, e_.headsOfGroup() * e_.width, e_.states};
    const ValueId output = narrowed(output_, 1, first, chunks), since = narrowed(ofRows(since_), 1, first, chunks);
    const ValueId read = b_.make("matmul", {output, b_.swapLastAxes(b_.reshape(before_, flat))});
    const Shape split{e_.batch, chunks, e_.groups, e_.rows(), e_.headsOfGroup(), e_.width};
    const ValueId of_heads = b_.permute(b_.reshape(read, split), {0, 1, 2, 4, 3, 5});
    const ValueId wide = b_.reshape(of_heads, Shape{e_.batch, chunks, e_.heads, e_.rows(), e_.width});
    // Multiplied and added up where y is read: this needs no memory then.
    return b_.mul(inSteps(padded(wide, 1, first, 0)), inSteps(padded(since, 1, first, 0)));
  }

  ValueId narrowed(ValueId x, int64_t axis, int64_t start, int64_t length) {
    if (b_.shapeOf(x).extent(static_cast<size_t>(axis)) == length) return x;
    return b_.make("narrow", {x}, {{"axis", axis}, {"start", start}, {"length", length}});
  }
  ValueId padded(ValueId x, int64_t axis, int64_t before, int64_t after) {
    if (before + after == 0) return x;
    return b_.make("pad", {x}, {{"axis", axis}, {"before", before}, {"after", after}, {"value", 0.0}});
  }

  /// [B, L, ...] as [B, C, T, ...]. In what fills up the last chunk nothing comes in and nothing decays: the state stays.
  ValueId inChunks(ValueId x) {
    std::vector<int64_t> extents = b_.shapeOf(x).extents();
    x = padded(x, 1, 0, e_.chunks() * e_.chunk - e_.length);
    extents[1] = e_.chunk;
    extents.insert(extents.begin() + 1, e_.chunks());
    return b_.reshape(x, Shape(extents));
  }
  /// [B, L, K, R, W] as [B, C, K, T R, W].
  ValueId inRows(ValueId x) {
    const ValueId rows = b_.permute(inChunks(x), {0, 1, 3, 2, 4, 5});
    const Shape shape = b_.shapeOf(rows);
    return b_.reshape(rows, Shape{shape.extent(0), shape.extent(1), shape.extent(2), e_.rows(), shape.extent(5)});
  }
  /// Back, [B, C, H, T R, W] as [B, L, H, R, W].
  ValueId inSteps(ValueId x) {
    const int64_t width = b_.shapeOf(x).extent(4);
    const ValueId split = b_.permute(b_.reshape(x, Shape{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.rank, width}), {0, 1, 3, 2, 4, 5});
    return narrowed(b_.reshape(split, Shape{e_.batch, e_.chunks() * e_.chunk, e_.heads, e_.rank, width}), 1, 0, e_.length);
  }
  /// [B, C, H, T] as [B, C, H, T R, 1].
  ValueId ofRows(ValueId x) {
    const Shape steps{e_.batch, e_.chunks(), e_.heads, e_.chunk, 1}, rows{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.rank};
    return b_.reshape(b_.broadcastTo(b_.reshape(x, steps), rows), Shape{e_.batch, e_.chunks(), e_.heads, e_.rows(), 1});
  }

  /// What is left at step i of what came in at step j, [B, C, H, T, T]: 0 for j > i, 1 for j = i, then the product of the decays after j.
  void decayBetween() {
    const Shape square{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.chunk};
    if (e_.chunk == 1) {
      between_ = b_.constant(1, square);
      since_ = decay_;
      return;
    }
    const ValueId steps = b_.make("arange", {}, {{"n", e_.chunk}, {"dtype", DType::I32}});
    const Shape flat{e_.chunk, e_.chunk};
    const ValueId row = b_.broadcastTo(b_.reshape(steps, Shape{e_.chunk, 1}), flat), column = b_.broadcastTo(steps, flat);
    const ValueId diagonal = b_.make("cast", {b_.make("equal", {row, column})}, {{"dtype", DType::F32}});
    // The first decay is not among them. It is left out rather than multiplied by 0, so that no NaN flows back to it.
    const ValueId later = padded(narrowed(decay_, 3, 1, e_.chunk - 1), 3, 1, 0);
    const ValueId factor = b_.broadcastTo(b_.reshape(later, Shape{e_.batch, e_.chunks(), e_.heads, e_.chunk, 1}), square);
    const auto along = [](int64_t axis) { return Attributes{{"axis", axis}, {"reverse", false}}; };
    between_ = b_.makeAll("linear_recurrence", {factor, b_.broadcastTo(diagonal, square)}, along(3))[1];
    since_ = b_.make("linear_recurrence", {decay_, decay_}, along(3));
  }

  /// The state after each chunk from that before it.
  void passStates() {
    const Shape steps{e_.batch, e_.chunks(), e_.heads, e_.chunk};
    const ValueId left = ofRows(b_.reshape(narrowed(between_, 3, e_.chunk - 1, 1), steps));
    const Shape split{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup(), e_.rows(), e_.width};
    const Shape flat{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup() * e_.width, e_.rows()};
    const ValueId columns = b_.reshape(b_.permute(b_.reshape(b_.mul(x_, left), split), {0, 1, 2, 3, 5, 4}), flat);
    const Shape states{e_.batch, e_.chunks(), e_.heads, e_.width, e_.states}, one{e_.batch, 1, e_.heads, e_.width, e_.states};
    ValueId added = b_.reshape(b_.make("matmul", {columns, input_}), states);
    const Shape of_chunks{e_.batch, e_.chunks(), e_.heads, 1, 1};
    const ValueId decay = b_.broadcastTo(b_.reshape(narrowed(since_, 3, e_.chunk - 1, 1), of_chunks), states);
    const auto after = [&](ValueId factor, ValueId input) {
      return b_.makeAll("linear_recurrence", {factor, input}, {{"axis", int64_t{1}}, {"reverse", false}})[1];
    };
    if (operands_.size() > kInitial) {
      // As what a chunk of its own adds.
      added = b_.make("concat", {b_.reshape(operands_[kInitial], one), added}, {{"axis", int64_t{1}}});
      const ValueId all = after(padded(decay, 1, 1, 0), added);
      before_ = narrowed(all, 1, 0, e_.chunks());
      last_ = b_.reshape(narrowed(all, 1, e_.chunks(), 1), e_.state());
    } else if (e_.chunks() == 1) {
      last_ = b_.reshape(added, e_.state());
    } else {
      const ValueId all = after(padded(narrowed(decay, 1, 1, e_.chunks() - 1), 1, 1, 0), added);
      before_ = narrowed(all, 1, 0, e_.chunks() - 1);
      last_ = b_.reshape(narrowed(all, 1, e_.chunks() - 1, 1), e_.state());
    }
  }

  Builder& b_;
  const Extents& e_;
  std::span<const ValueId> operands_;
  ValueId x_;                ///< scaled, [B, C, H, T R, P]
  ValueId input_, output_;   ///< [B, C, G, T R, N]
  ValueId decay_;            ///< [B, C, H, T]
  ValueId between_, since_;  ///< decays from one step to another, and from before the chunk to a step, [B, C, H, T]
  ValueId before_, last_;    ///< the state before each chunk that has one, if any does, and the last one
};

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
  return e.length == 1 ? oneStep(b, e, operands) : Chunked(b, e, operands).run();
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
    .gradient = ByDecomposition{.recomputes = true},
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSsd,
    .cases = cases,
};

}  // namespace lockstep::graph::ssd_op
