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
ValueId SsdChunks::amongChunks(ValueId x, int64_t first, int64_t chunks) {
  return padded(x, 1, first, chunks - first - b_.shapeOf(x).extent(1));
}
ValueId SsdChunks::atEnd(ValueId x) { return padded(x, 2, e_.chunk - 1, 0); }
ValueId SsdChunks::fromNext(ValueId x) { return narrowed(padded(x, 2, 0, 1), 2, 1, e_.chunk); }

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
ValueId SsdChunks::fromGroups(ValueId x) {
  const int64_t chunks = b_.shapeOf(x).extent(1);
  const Shape split{e_.batch, chunks, e_.groups, e_.chunk, e_.rank, e_.headsOfGroup(), e_.width};
  const Shape made{e_.batch, chunks, e_.chunk, e_.heads, e_.rank, e_.width};
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

ValueId SsdChunks::decayBetween() {
  if (between_.valid()) return between_;
  const int64_t block = blockOf(e_.chunk), blocks = e_.chunk / block;
  const Shape in_blocks{e_.batch, e_.chunks(), e_.heads, blocks, block};
  const ValueId decay = b_.reshape(decay_, in_blocks), inside = productsBetween(decay);
  ValueId steps = inside;
  if (blocks > 1) {
    // From a step to the end of its block, over the blocks between, and to a step of a later block.
    const ValueId since = b_.make("linear_recurrence", {decay, decay}, along(4));
    const ValueId totals = b_.reshape(narrowed(since, 4, block - 1, 1), Shape{e_.batch, e_.chunks(), e_.heads, blocks});
    const ValueId over = padded(narrowed(productsBetween(totals), 3, 0, blocks - 1), 3, 1, 0);
    const auto at = [&](int64_t row_block, int64_t row, int64_t column_block, int64_t column) {
      return Shape{e_.batch, e_.chunks(), e_.heads, row_block, row, column_block, column};
    };
    const Shape all = at(blocks, block, blocks, block);
    const ValueId far = b_.mul(b_.reshape(over, at(blocks, 1, blocks, 1)), b_.reshape(productsToEnd(decay), at(1, 1, blocks, block)));
    const ValueId between = b_.mul(b_.reshape(since, at(blocks, block, 1, 1)), far);
    const Shape flat{blocks, 1, blocks, 1};
    const ValueId is_inside = b_.make("equal", {positions(blocks, {blocks, 1, 1, 1}, flat), positions(blocks, {1, 1, blocks, 1}, flat)});
    const ValueId near = b_.broadcastTo(b_.reshape(inside, at(blocks, block, 1, block)), all);
    steps = b_.make("where", {b_.broadcastTo(is_inside, all), near, between});
  }
  const Shape wide{e_.batch, e_.chunks(), e_.heads, e_.chunk, 1, e_.chunk, 1};
  const Shape rows{e_.batch, e_.chunks(), e_.heads, e_.chunk, e_.rank, e_.chunk, e_.rank};
  between_ = b_.reshape(b_.broadcastTo(b_.reshape(steps, wide), rows), Shape{e_.batch, e_.chunks(), e_.heads, e_.rows(), e_.rows()});
  return between_;
}

ValueId SsdChunks::weights(bool own) {
  const Shape of_groups{e_.batch, e_.chunks(), e_.groups, 1, e_.rows(), e_.rows()};
  const Shape split{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup(), e_.rows(), e_.rows()};
  const Shape made{e_.batch, e_.chunks(), e_.heads, e_.rows(), e_.rows()};
  const ValueId met = b_.reshape(b_.make("matmul", {output_, b_.swapLastAxes(input_)}), of_groups);
  const ValueId all = b_.reshape(b_.mul(b_.reshape(decayBetween(), split), met), made);
  if (own) return all;
  const Shape rows{e_.chunk, e_.rank, e_.chunk, e_.rank};
  const ValueId is_own = b_.make("equal", {positions(e_.chunk, {e_.chunk, 1, 1, 1}, rows), positions(e_.chunk, {1, 1, e_.chunk, 1}, rows)});
  return b_.make("where", {b_.broadcastTo(b_.reshape(is_own, Shape{e_.rows(), e_.rows()}), made), b_.constant(0, made), all});
}

SsdChunks::States SsdChunks::states() {
  const int64_t chunks = e_.chunks();
  const ValueId kept = byGroups(b_.mul(scaled(), left()));
  const ValueId added = b_.make("matmul", {b_.swapLastAxes(input_), kept});
  const auto after = [&](ValueId factor, ValueId input) { return b_.makeAll("linear_recurrence", {factor, input}, along(1))[1]; };
  if (operands_.size() > kSsdInitial) {
    // As what a chunk of its own adds.
    const ValueId initial = stateByGroups(operands_[kSsdInitial]);
    const ValueId all = after(padded(decayOfChunks(0, chunks), 1, 1, 0), b_.make("concat", {initial, added}, {{"axis", int64_t{1}}}));
    return {.before = {ofChunks(all, 0, chunks), 0}, .after = ofChunks(all, 1, chunks)};
  }
  if (chunks == 1) return {.before = {}, .after = added};
  const ValueId all = after(padded(decayOfChunks(1, chunks - 1), 1, 1, 0), added);
  return {.before = {ofChunks(all, 0, chunks - 1), 1}, .after = all};
}

ValueId SsdChunks::readBefore(const SsdStates& before) {
  const ValueId output = ofChunks(output_, before.first, b_.shapeOf(before.value).extent(1));
  return amongChunks(fromGroups(b_.make("matmul", {output, before.value})), before.first, e_.chunks());
}

}  // namespace lockstep::graph
