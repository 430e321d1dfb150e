// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/ssd_chunks.h"

namespace lockstep::graph {

namespace {

/// Steps of a block: decays between any two steps are kept within blocks only, those between blocks are products of three factors. Blocks
/// of about the root of a chunk keep the least.
constexpr int64_t kMostBlock = 16, kLeastBlock = 4;

int64_t blockOf(int64_t chunk) {
  for (int64_t block = kMostBlock; block >= kLeastBlock; --block) {
    if (chunk % block == 0) return block;
  }
  return chunk;
}

Attributes along(int64_t axis, bool reverse = false) { return {{"axis", axis}, {"reverse", reverse}}; }

}  // namespace

SsdChunks::SsdChunks(Builder& builder, const SsdExtents& extents, std::span<const ValueId> operands)
    : b_(builder), e_(extents), operands_(operands) {
  x_ = inSteps(operands[kSsdX]);
  scale_ = b_.reshape(inSteps(operands[kSsdScale]), Shape{e_.batch, e_.chunks(), e_.chunk, e_.heads, 1, 1});
  input_ = byHeads(inSteps(operands[kSsdB]));
  output_ = byHeads(inSteps(operands[kSsdC]));
  // In what fills up the last chunk nothing comes in and nothing decays: the state stays.
  decay_ = b_.permute(b_.make("exp", {inSteps(operands[kSsdLogDecay])}), {0, 1, 3, 2});
  since_ = e_.chunk == 1 ? decay_ : b_.make("linear_recurrence", {decay_, decay_}, along(3));
  left_ = productsToEnd(decay_);
}

ValueId SsdChunks::narrowed(ValueId x, int64_t axis, int64_t start, int64_t length) {
  if (b_.shapeOf(x).extent(static_cast<size_t>(axis)) == length) return x;
  return b_.make("narrow", {x}, {{"axis", axis}, {"start", start}, {"length", length}});
}
ValueId SsdChunks::padded(ValueId x, int64_t axis, int64_t before, int64_t after, double value) {
  if (before + after == 0) return x;
  return b_.make("pad", {x}, {{"axis", axis}, {"before", before}, {"after", after}, {"value", value}});
}
ValueId SsdChunks::ofChunks(ValueId x, int64_t first, int64_t count) { return narrowed(x, 1, first, count); }
ValueId SsdChunks::fromBefore(ValueId x) { return narrowed(padded(x, 2, 1, 0), 2, 0, e_.chunk); }

ValueId SsdChunks::inSteps(ValueId x) {
  std::vector<int64_t> extents = b_.shapeOf(x).extents();
  x = padded(x, 1, 0, e_.chunks() * e_.chunk - e_.length);
  extents[1] = e_.chunk;
  extents.insert(extents.begin() + 1, e_.chunks());
  return b_.reshape(x, Shape(extents));
}
ValueId SsdChunks::fromSteps(ValueId x) {
  std::vector<int64_t> extents = b_.shapeOf(x).extents();
  extents.erase(extents.begin() + 1);
  extents[1] = e_.chunks() * e_.chunk;
  return narrowed(b_.reshape(x, Shape(extents)), 1, 0, e_.length);
}

ValueId SsdChunks::byHeads(ValueId x) {
  const Shape shape = b_.shapeOf(x);
  return b_.reshape(b_.permute(x, {0, 1, 3, 2, 4, 5}), Shape{e_.batch, e_.chunks(), shape.extent(3), e_.rows(), shape.extent(5)});
}
ValueId SsdChunks::fromHeads(ValueId x) {
  const Shape shape = b_.shapeOf(x);
  const Shape split{e_.batch, e_.chunks(), shape.extent(2), e_.chunk, e_.rank, shape.extent(4)};
  return b_.permute(b_.reshape(x, split), {0, 1, 3, 2, 4, 5});
}
ValueId SsdChunks::byGroups(ValueId x) {
  const Shape split{e_.batch, e_.chunks(), e_.chunk, e_.groups, e_.headsOfGroup(), e_.rank, e_.width};
  const Shape made{e_.batch, e_.chunks(), e_.groups, e_.rows(), e_.headsOfGroup() * e_.width};
  return b_.reshape(b_.permute(b_.reshape(x, split), {0, 1, 3, 2, 5, 4, 6}), made);
}
ValueId SsdChunks::stateByGroups(ValueId state) {
  const Shape split{e_.batch, e_.groups, e_.headsOfGroup(), e_.width, e_.states};
  const Shape made{e_.batch, 1, e_.groups, e_.states, e_.headsOfGroup() * e_.width};
  return b_.reshape(b_.permute(b_.reshape(state, split), {0, 1, 4, 2, 3}), made);
}
ValueId SsdChunks::stateFromGroups(ValueId state) {
  const Shape split{e_.batch, e_.groups, e_.states, e_.headsOfGroup(), e_.width};
  return b_.reshape(b_.permute(b_.reshape(state, split), {0, 1, 3, 4, 2}), e_.state());
}
ValueId SsdChunks::perStep(ValueId of_heads) const {
  return b_.reshape(b_.permute(of_heads, {0, 1, 3, 2}), Shape{e_.batch, e_.chunks(), e_.chunk, e_.heads, 1, 1});
}

ValueId SsdChunks::decayOfChunks(int64_t first, int64_t count) {
  const Shape of_heads{e_.batch, count, e_.groups, 1, e_.headsOfGroup(), 1};
  const Shape split{e_.batch, count, e_.groups, e_.states, e_.headsOfGroup(), e_.width};
  const ValueId last = narrowed(ofChunks(since_, first, count), 3, e_.chunk - 1, 1);
  return b_.reshape(b_.broadcastTo(b_.reshape(last, of_heads), split),
                    Shape{e_.batch, count, e_.groups, e_.states, e_.headsOfGroup() * e_.width});
}

/// The numbers 0 to count - 1 along the axis of `along` that is not 1.
ValueId SsdChunks::positions(int64_t count, const Shape& along, const Shape& shape) {
  const ValueId numbers = b_.make("arange", {}, {{"n", count}, {"dtype", DType::I32}});
  return b_.broadcastTo(b_.reshape(numbers, along), shape);
}

/// The decays with the first one of each line left out, so that no NaN flows back to it.
ValueId SsdChunks::later(ValueId decay, int64_t axis) {
  const int64_t length = b_.shapeOf(decay).extent(static_cast<size_t>(axis));
  return padded(narrowed(decay, axis, 1, length - 1), axis, 1, 0);
}

/// Of decays along the last axis [..., S] the products after one place up to another, [..., S, S]: 0 for places after the row's, 1 for its
/// own.
ValueId SsdChunks::productsBetween(ValueId decay) {
  const Shape line = b_.shapeOf(decay);
  const auto axis = static_cast<int64_t>(line.rank()) - 1;
  const int64_t length = line.extent(line.rank() - 1);
  std::vector<int64_t> column = line.extents(), square = line.extents();
  column.push_back(1);
  square.push_back(length);
  if (length == 1) return b_.constant(1, Shape(square));
  const Shape flat{length, length};
  const ValueId is_own = b_.make("equal", {positions(length, {length, 1}, flat), positions(length, {1, length}, flat)});
  const ValueId diagonal = b_.make("cast", {is_own}, {{"dtype", DType::F32}});
  const ValueId factor = b_.broadcastTo(b_.reshape(later(decay, axis), Shape(column)), Shape(square));
  return b_.makeAll("linear_recurrence", {factor, b_.broadcastTo(diagonal, Shape(square))}, along(axis))[1];
}

/// Of decays along the last axis the products after each place up to the end.
ValueId SsdChunks::productsToEnd(ValueId decay) {
  const Shape line = b_.shapeOf(decay);
  const auto axis = static_cast<int64_t>(line.rank()) - 1;
  const int64_t length = line.extent(line.rank() - 1);
  if (length == 1) return b_.constant(1, line);
  const ValueId next = padded(narrowed(decay, axis, 1, length - 1), axis, 0, 1, 1);
  return b_.make("linear_recurrence", {next, next}, along(axis, true));
}

const SsdChunks::Decays& SsdChunks::decays(Way way) {
  std::array<Decays, 2>& all = decays_;
  if (all[0].inside.valid()) return all[static_cast<size_t>(way)];
  const int64_t block = blockOf(e_.chunk), blocks = e_.chunk / block;
  const ValueId decay = b_.reshape(decay_, Shape{e_.batch, e_.chunks(), e_.heads, blocks, block}), inside = productsBetween(decay);
  all[0] = {.inside = inside, .to_end = {}, .over = {}, .to_state = since_};
  all[1] = {.inside = b_.swapLastAxes(inside), .to_end = {}, .over = {}, .to_state = left_};
  if (blocks == 1) return all[static_cast<size_t>(way)];
  const ValueId since = b_.make("linear_recurrence", {decay, decay}, along(4)), left = productsToEnd(decay);
  const ValueId totals = b_.reshape(narrowed(since, 4, block - 1, 1), Shape{e_.batch, e_.chunks(), e_.heads, blocks});
  // From the end of the column's block to the begin of the row's.
  const ValueId over = padded(narrowed(productsBetween(totals), 3, 0, blocks - 1), 3, 1, 0);
  const auto toSteps = [&](ValueId between_blocks, ValueId of_steps) {
    const Shape rows{e_.batch, e_.chunks(), e_.heads, blocks, blocks, 1}, columns{e_.batch, e_.chunks(), e_.heads, 1, blocks, block};
    const ValueId made = b_.mul(b_.reshape(between_blocks, rows), b_.reshape(of_steps, columns));
    // Every row reads it.
    return b_.make("barrier", {b_.reshape(made, Shape{e_.batch, e_.chunks(), e_.heads, blocks, e_.chunk})});
  };
  all[0].to_end = since;
  all[0].over = toSteps(over, left);
  all[1].to_end = left;
  all[1].over = toSteps(b_.swapLastAxes(over), since);
  return all[static_cast<size_t>(way)];
}

/// [B, C, H, T] as [B, C, H, T R, 1].
ValueId SsdChunks::ofRows(ValueId of_steps) {
  const Shape steps{e_.batch, e_.chunks(), e_.heads, e_.chunk, 1}, rows{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.rank};
  return b_.reshape(b_.broadcastTo(b_.reshape(of_steps, steps), rows), Shape{e_.batch, e_.chunks(), e_.heads, e_.rows(), 1});
}

/// decayBetween, or the same by column and row, with columns of zeros for so many states after those of steps.
ValueId SsdChunks::between(Way way, int64_t more) {
  const Decays& decay = decays(way);
  const int64_t block = blockOf(e_.chunk), blocks = e_.chunk / block, rows = e_.rows();
  const auto spread = [&](ValueId x, const Shape& from) {
    const Shape wide{e_.batch, e_.chunks(), e_.heads, blocks, block, e_.rank, blocks, block, e_.rank};
    const Shape square{e_.batch, e_.chunks(), e_.heads, rows, rows};
    return padded(b_.reshape(b_.broadcastTo(b_.reshape(x, from), wide), square), 4, 0, more);
  };
  ValueId all = spread(decay.inside, {e_.batch, e_.chunks(), e_.heads, blocks, block, 1, 1, block, 1});
  if (blocks == 1) return all;
  const ValueId over = spread(decay.over, {e_.batch, e_.chunks(), e_.heads, blocks, 1, 1, blocks, block, 1});
  const ValueId far = b_.mul(ofRows(b_.reshape(decay.to_end, Shape(b_.shapeOf(decay_)))), over);
  return b_.make("where", {areTogether(block, Shape(b_.shapeOf(all))), all, far});
}

/// Whether a row and a column of steps are among the same `steps` steps; not for columns after those.
ValueId SsdChunks::areTogether(int64_t steps, const Shape& shape) {
  const int64_t runs = e_.chunk / steps, rows = e_.rows(), columns = shape.extent(4);
  const ValueId numbers = b_.reshape(positions(runs, {runs, 1}, {runs, steps * e_.rank}), Shape{rows});
  const Shape flat{rows, columns};
  const ValueId row = b_.broadcastTo(b_.reshape(numbers, Shape{rows, 1}), flat);
  return b_.broadcastTo(b_.make("equal", {row, b_.broadcastTo(padded(numbers, 0, 0, columns - rows, -1), flat)}), shape);
}

ValueId SsdChunks::squaresOfHeads(ValueId of_groups) {
  const int64_t columns = b_.shapeOf(of_groups).extent(4);
  const Shape one{e_.batch, e_.chunks(), e_.groups, 1, e_.rows(), columns};
  const Shape all{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup(), e_.rows(), columns};
  return b_.reshape(b_.broadcastTo(b_.reshape(of_groups, one), all), Shape{e_.batch, e_.chunks(), e_.heads, e_.rows(), columns});
}

/// For each row of `way` the sum over steps of what c and b of both have in common, times the decay between, times `steps` (by steps;
/// invalid: no sum over steps) and `factor` ([B, C, H, T]; invalid: 1); and over states of its c or b, times the decay to them, times the
/// state. By steps.
ValueId SsdChunks::product(Way way, ValueId steps, ValueId factor, ValueId states) {
  const bool is_forward = way == Way::Forward, has_steps = steps.valid(), has_states = states.valid();
  const int64_t rows = e_.rows(), columns = has_steps ? rows : 0, more = has_states ? e_.states : 0;
  const ValueId vectors = is_forward ? output_ : input_;
  ValueId left, right;
  if (has_steps) {
    const ValueId met = b_.make("matmul", {vectors, b_.swapLastAxes(is_forward ? input_ : output_)});
    left = b_.mul(between(way, more), padded(squaresOfHeads(met), 4, 0, more));
    right = padded(byHeads(steps), 3, 0, more);
    if (factor.valid()) right = b_.mul(right, padded(ofRows(factor), 3, 0, more));
  }
  if (has_states) {
    const Shape split{e_.batch, e_.chunks(), e_.groups, e_.states, e_.headsOfGroup(), e_.width};
    const Shape by_heads{e_.batch, e_.chunks(), e_.heads, e_.states, e_.width};
    const ValueId of_states = b_.mul(padded(squaresOfHeads(vectors), 4, columns, 0), ofRows(decays(way).to_state));
    const ValueId all = padded(b_.reshape(b_.permute(b_.reshape(states, split), {0, 1, 2, 4, 3, 5}), by_heads), 3, columns, 0);
    /// The two after each other along the inner axis.
    const auto joined = [&](const Shape& inner, ValueId first, ValueId second) {
      if (!first.valid()) return second;
      const ValueId begin = b_.constant(static_cast<double>(columns), TensorType{DType::I32, inner});
      const ValueId is_first = b_.make("less", {positions(columns + more, inner, inner), begin});
      return b_.make("where", {b_.broadcastTo(is_first, Shape(b_.shapeOf(first))), first, second});
    };
    left = joined({1, columns + more}, left, of_states);
    right = joined({columns + more, 1}, right, all);
  }
  return fromHeads(b_.make("matmul", {left, right}));
}

ValueId SsdChunks::read(ValueId before) {
  const ValueId scale = b_.permute(b_.reshape(scale_, Shape{e_.batch, e_.chunks(), e_.chunk, e_.heads}), {0, 1, 3, 2});
  return product(Way::Forward, x_, scale, before);
}
ValueId SsdChunks::readStates(ValueId before) { return product(Way::Forward, {}, {}, before); }
ValueId SsdChunks::flowBack(ValueId dy) { return product(Way::Backward, dy, {}, {}); }
ValueId SsdChunks::flowBackFromStates(ValueId after) { return product(Way::Backward, {}, {}, after); }

ValueId SsdChunks::overSteps(ValueId met) {
  const ValueId common = b_.make("matmul", {output_, b_.swapLastAxes(input_)});
  ValueId flows = b_.mul(b_.mul(met, decayBetween()), squaresOfHeads(common));
  const Shape square{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.chunk};
  if (e_.rank > 1) {
    const Shape of_ranks{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.rank, e_.chunk, e_.rank};
    flows = b_.make("sum", {b_.reshape(flows, of_ranks)}, {{"axes", std::vector<int64_t>{4, 6}}, {"keep_dims", false}});
  }
  // From the steps up to each column to each row, of which those after the column count.
  const ValueId up_to = b_.make("cumsum", {flows}, along(4));
  const Shape flat{e_.chunk, e_.chunk};
  const ValueId is_later = b_.make("less", {positions(e_.chunk, {1, e_.chunk}, flat), positions(e_.chunk, {e_.chunk, 1}, flat)});
  const ValueId later = b_.make("where", {b_.broadcastTo(is_later, square), up_to, b_.constant(0, square)});
  const ValueId over_ends = b_.permute(b_.sum(later, 3, false), {0, 1, 3, 2});
  return fromBefore(over_ends);
}

SsdChunks::States SsdChunks::states() {
  const int64_t chunks = e_.chunks();
  const ValueId added = b_.make("matmul", {b_.swapLastAxes(input_), byGroups(b_.mul(scaled(), left()))});
  const bool has_initial = operands_.size() > kSsdInitial;
  if (!has_initial && chunks == 1) return {.before = {}, .after = added};
  // The state before the first chunk is as what a chunk of its own adds.
  const ValueId all_added =
      has_initial ? b_.make("concat", {stateByGroups(operands_[kSsdInitial]), added}, {{"axis", int64_t{1}}}) : padded(added, 1, 1, 0);
  // Decays of zeros are left out, so that a NaN among them is none in the states.
  const int64_t first = has_initial ? 0 : 1;
  const ValueId decay = padded(decayOfChunks(first, chunks - first), 1, 1 + first, 0);
  const ValueId all = b_.makeAll("linear_recurrence", {decay, all_added}, along(1))[1];
  return {.before = ofChunks(all, 0, chunks), .after = ofChunks(all, 1, chunks)};
}

}  // namespace lockstep::graph
