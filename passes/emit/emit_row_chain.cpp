// SPDX-License-Identifier: Apache-2.0
// row_chain: contractions and reductions of the same rows. A workgroup has a few rows, and what a step makes of them lies in its memory for
// the next ones. Right operands come through a tile in workgroup memory, which all rows read.
#include <algorithm>
#include <bit>
#include <functional>

#include "passes/emit/emitters.h"
#include "passes/emit/lane_reduction.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/row_chain.h"

namespace lockstep::passes {

using graph::ContractShape;
using graph::Shape;
using kernel::Op;
using kernel::ValueId;

namespace {

/// Elements of a row that a lane reduces without a loop.
constexpr int64_t kReducedAtOnce = 16;
constexpr uint8_t kVector = RowChain::kVector;

uint32_t unsigned32(int64_t value) { return static_cast<uint32_t>(value); }

class ChainEmitter {
 public:
  ChainEmitter(const program::RowChainPlan& plan, const EmitQuery& query, RowChain chain)
      : plan_(plan), query_(query), body_(query.body), chain_(std::move(chain)), emitter_(body_, b_, query.bindings) {}

  kernel::Module emit() {
    const Entry entry = beginEntry(b_, query_, unsigned32(plan_.lanes));
    if (plan_.subgroup > 1) b_.setSubgroupSize(entry.function, unsigned32(plan_.subgroup));
    lane_ = entry.lane;
    first_row_ = times(entry.group, plan_.rows_per_group);
    made_ = workgroupArray(b_, "made", b_.types().f32(), chain_.made_elements * plan_.rows_per_group);
    left_ = workgroupArray(b_, "left", b_.types().vector(kernel::Scalar::F32, kVector),
                           chain_.left_elements / RowChain::kVector * plan_.rows_per_group);
    tile_ = workgroupArray(b_, "tile", b_.types().f32(), plan_.tile_k * (plan_.tile_n + 1));
    const int64_t lanes = plan_.lanes / plan_.rows_per_group;
    lane_in_row_ = rest(lane_, lanes);
    own_row_ = quotient(lane_, lanes);
    LaneReduction reduction(b_, {lanes, plan_.rows_per_group, plan_.subgroup}, {lane_, lane_in_row_, own_row_});
    for (const ChainStep& step : chain_.steps) {
      if (step.work == ChainWork::Product) {  // it waits by itself
        touched_.clear();
      } else if (mustWait(step)) {
        b_.makeVoid(Op::WorkgroupBarrier);
        touched_.clear();
      }
      touched_.push_back(&step);
      if (step.work == ChainWork::Load) load(step);
      if (step.work == ChainWork::Product) multiply(step);
      if (step.work == ChainWork::Reduce) reduce(step, reduction);
      if (step.work == ChainWork::Store) store(step);
      if (step.work == ChainWork::Product || step.work == ChainWork::Reduce) keep(step.made);
    }
    return b_.take();
  }

 private:
  ValueId number(int64_t value) { return b_.u32(unsigned32(value)); }
  ValueId plus(ValueId a, int64_t more) { return more == 0 ? a : b_.make(Op::Add, {a, number(more)}); }
  ValueId times(ValueId a, int64_t factor) { return factor == 1 ? a : b_.make(Op::Mul, {a, number(factor)}); }
  ValueId quotient(ValueId a, int64_t by) { return by == 1 ? a : b_.make(Op::Div, {a, number(by)}); }
  ValueId rest(ValueId a, int64_t by) { return by == 1 ? number(0) : b_.make(Op::Rem, {a, number(by)}); }
  ValueId before(ValueId a, int64_t end) { return b_.make(Op::Lt, {a, number(end)}); }
  ValueId both(ValueId a, ValueId b) { return !a.valid() ? b : !b.valid() ? a : b_.make(Op::And, {a, b}); }

  void where(ValueId condition, const std::function<void()>& then) {
    const auto scoped = [&] {
      emitter_.pushScope();
      then();
      emitter_.popScope();
    };
    if (condition.valid()) {
      b_.ifThen(condition, scoped);
    } else {
      scoped();
    }
  }

  /// Calls `body` for the numbers below `count`, which the lanes share out. No barrier may be inside.
  void shareOut(int64_t count, const std::function<void(ValueId)>& body) {
    if (count <= plan_.lanes) {
      where(count < plan_.lanes ? before(lane_, count) : ValueId(), [&] { body(lane_); });
      return;
    }
    b_.forRange(lane_, number(count), number(plan_.lanes), "item", [&](ValueId item) { where({}, [&] { body(item); }); });
  }

  /// Whether a step needs what others write, or writes where others read or write, since all invocations last waited for each other.
  [[nodiscard]] bool mustWait(const ChainStep& step) const {
    const auto shares = [&](size_t a, size_t b) {
      const ChainArray &one = chain_.arrays[a], &other = chain_.arrays[b];
      return one.is_left == other.is_left && one.offset < other.offset + other.columns && other.offset < one.offset + one.columns;
    };
    const auto writes = [](const ChainStep& s) { return s.work != ChainWork::Store; };
    const auto touches = [&](const ChainStep& s, size_t array) {
      return (writes(s) && shares(s.made, array)) || std::ranges::any_of(s.reads, [&](size_t read) { return shares(read, array); });
    };
    return std::ranges::any_of(touched_, [&](const ChainStep* before) {
      const bool reads_new = writes(*before) && std::ranges::any_of(step.reads, [&](size_t read) { return shares(read, before->made); });
      return reads_new || (writes(step) && touches(*before, step.made));
    });
  }

  [[nodiscard]] bool hasSurplus() const { return chain_.rows % plan_.rows_per_group != 0; }
  /// Row `own` of the workgroup. Surplus rows repeat the last one.
  ValueId rowOf(ValueId own) {
    const ValueId row = b_.make(Op::Add, {first_row_, own});
    return hasSurplus() ? b_.make(Op::Min, {row, number(chain_.rows - 1)}) : row;
  }

  /// Where an element of an array is, by its number among those of all rows of the workgroup.
  ValueId placeOf(size_t array, ValueId index) { return b_.access(made_, {plus(index, base(array))}, true); }
  [[nodiscard]] int64_t base(size_t array) const { return chain_.arrays[array].offset * plan_.rows_per_group; }

  /// From now on the value of an array is read from it.
  void keep(size_t array) {
    const int64_t columns = chain_.arrays[array].columns, size = columns * plan_.rows_per_group;
    emitter_.keep(chain_.arrays[array].value, [this, array, columns, size](PositionId position) {
      ValueId index = b_.make(Op::Sub, {emitter_.linear(position), times(first_row_, columns)});
      if (!emitter_.isProven(position)) index = b_.make(Op::Min, {index, number(size - 1)});
      return b_.load(placeOf(array, index));
    });
  }

  /// The left operand of a contraction, four elements of a row at a time. Past its end are zeros.
  void load(const ChainStep& step) {
    const ContractShape shape = contractOf(body_, step.node);
    const graph::ValueId operand = body_[step.node].operands[0];
    const int64_t vectors = chain_.arrays[step.made].columns / RowChain::kVector;
    shareOut(vectors * plan_.rows_per_group, [&](ValueId item) {
      const ValueId row = rowOf(quotient(item, vectors)), first = times(rest(item, vectors), RowChain::kVector);
      std::vector<ValueId> elements;
      for (int64_t i = 0; i < RowChain::kVector; ++i) {
        const bool may_end = shape.k % RowChain::kVector != 0 && i >= shape.k % RowChain::kVector;
        ValueId column = plus(first, i);
        const ValueId inside = may_end ? before(column, shape.k) : ValueId();
        if (may_end) column = b_.make(Op::Min, {column, number(shape.k - 1)});
        const PositionId at = emitter_.inRow(Shape{shape.batch, shape.m, shape.k}, row, column, shape.k);
        const ValueId element = emitter_.value(operand, emitter_.through(shape.a, body_.shapeOf(operand), at));
        elements.push_back(may_end ? b_.make(Op::Select, {b_.f32(0), element, inside}) : element);
      }
      const ValueId vector = b_.construct(b_.types().vector(kernel::Scalar::F32, kVector), std::move(elements));
      b_.store(b_.access(left_, {plus(item, base(step.made) / RowChain::kVector)}, true), vector);
    });
  }

  void store(const ChainStep& step) {
    shareOut(step.columns * plan_.rows_per_group, [&](ValueId item) {
      const ValueId row = b_.make(Op::Add, {first_row_, quotient(item, step.columns)}), column = rest(item, step.columns);
      where(hasSurplus() ? before(row, chain_.rows) : ValueId(), [&] {
        const auto at = [&](size_t result) {
          return emitter_.inRow(body_.shapeOf(body_.outputs[result].value), row, column, step.columns);
        };
        std::vector<ValueId> values;
        for (const size_t result : step.results) values.push_back(emitter_.value(body_.outputs[result].value, at(result)));
        for (size_t i = 0; i < values.size(); ++i) emitter_.store(step.results[i], at(step.results[i]), values[i]);
      });
    });
  }

  /// The lanes of a row share its elements.
  void reduce(const ChainStep& step, LaneReduction& reduction) {
    const graph::Node& node = body_[step.node];
    const graph::ValueId operand = node.operands[0];
    const auto& lowering = std::get<graph::ReduceLowering>(*node.op->lower);
    const int64_t columns = body_.shapeOf(operand).elementCount() / chain_.rows, lanes = plan_.lanes / plan_.rows_per_group;
    const ValueId row = rowOf(own_row_), neutral = neutralOf(b_, lowering, body_.typeOf(operand).dtype);
    const auto elementAt = [&](ValueId column) {
      return emitter_.value(operand, emitter_.inRow(body_.shapeOf(operand), row, column, columns));
    };
    ValueId total;
    emitter_.pushScope();
    if (const int64_t each = divideUp(columns, lanes); each <= kReducedAtOnce) {
      PairwiseReduction sum(b_, lowering);
      for (int64_t i = 0; i < each; ++i) {
        const ValueId column = plus(lane_in_row_, i * lanes);
        if ((i + 1) * lanes <= columns) {
          sum.add(elementAt(column));
        } else {  // what is beyond the end repeats the last element
          const ValueId element = elementAt(b_.make(Op::Min, {column, number(columns - 1)}));
          sum.add(b_.make(Op::Select, {neutral, element, before(column, columns)}));
        }
      }
      total = sum.total();
    } else {
      const ValueId sum = b_.var(b_.typeIdOf(neutral), "sum", neutral);
      b_.forRange(lane_in_row_, number(columns), number(lanes), "column", [&](ValueId column) {
        where({}, [&] {
          const ValueId element = elementAt(column);
          b_.store(sum, lowering.combine(b_, b_.load(sum), element));
        });
      });
      total = b_.load(sum);
    }
    emitter_.popScope();
    std::vector<LaneReduction::Part> parts{{&lowering, total}};
    reduction.combine(parts);
    where(lanes > 1 ? b_.make(Op::Eq, {lane_in_row_, number(0)}) : ValueId(),
          [&] { b_.store(placeOf(step.made, own_row_), parts.front().value); });
  }

  /// How a contraction is shared out: `width` invocations side by side have a column each, of every `groups`th row. Where there are fewer
  /// rows than that would take, several invocations have a slice of the inner axis each.
  struct Tiling {
    int64_t width, depth, groups, rows;  ///< of the tile; rows of an invocation
    int64_t slices;                      ///< a power of two that divides the vectors of the depth
    int64_t strips, turns;               ///< tiles across and along the inner axis
    bool by_columns;                     ///< neighbours across are neighbours in memory; else those along the inner axis
    [[nodiscard]] int64_t stride() const { return width + 1; }  ///< invocations that write a column of the tile meet no bank twice
    [[nodiscard]] int64_t tiles() const { return strips * turns; }
  };
  [[nodiscard]] Tiling tilingOf(const ChainStep& step, const ContractShape& shape) const {
    const int64_t inner = chain_.arrays[step.left].columns;
    const auto width = std::min<int64_t>(plan_.tile_n, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shape.n))));
    const int64_t depth = std::min(plan_.tile_k, inner);
    int64_t groups = plan_.lanes / width, slices = 1;
    const auto can_halve = [&] {
      return groups / 2 >= plan_.rows_per_group && depth / RowChain::kVector % (2 * slices) == 0 && plan_.lanes <= depth * (width + 1);
    };
    for (; can_halve(); groups /= 2) slices *= 2;
    const graph::ValueId right = body_[step.node].operands[1];
    const ViewedValue viewed = throughWidened(body_, right);
    const graph::IndexMap map = compose(shape.b, viewed.map, body_.shapeOf(right));
    return {.width = width,
            .depth = depth,
            .groups = groups,
            .rows = divideUp(plan_.rows_per_group, groups),
            .slices = slices,
            .strips = divideUp(shape.n, width),
            .turns = divideUp(inner, depth),
            .by_columns = readsNeighbours(body_, viewed.base, map, Shape{shape.batch, shape.k, shape.n})};
  }

  /// While a tile is multiplied, the elements of the next one are on their way to registers. Those of the first one are there from the
  /// beginning, so they are on their way while invocations wait.
  void multiply(const ChainStep& step) {
    const ContractShape shape = contractOf(body_, step.node);
    const Tiling tiling = tilingOf(step, shape);
    const kernel::TypeId f32 = b_.types().f32();
    std::vector<ValueId> sums, next;
    for (int64_t i = 0; i < tiling.rows; ++i) sums.push_back(b_.var(f32, "sum", b_.f32(0)));
    for (int64_t i = 0; i < divideUp(tiling.depth * tiling.width, plan_.lanes); ++i) next.push_back(b_.var(f32, "next", b_.f32(0)));
    fetch(step, shape, tiling, number(0), next);
    b_.makeVoid(Op::WorkgroupBarrier);
    const auto overTile = [&](ValueId tile) {
      fillTile(tiling, next);
      b_.makeVoid(Op::WorkgroupBarrier);
      if (tiling.tiles() > 1) {
        const ValueId after = plus(tile, 1);
        where(before(after, tiling.tiles()), [&] { fetch(step, shape, tiling, after, next); });
      }
      addProducts(step, tiling, tile, sums);
      const bool has_turns = tiling.turns > 1;
      where(has_turns ? b_.make(Op::Eq, {rest(tile, tiling.turns), number(tiling.turns - 1)}) : ValueId(),
            [&] { storeSums(step, shape, tiling, tile, sums); });
    };
    if (tiling.tiles() == 1) {
      overTile(number(0));
      return;
    }
    b_.forRange(number(0), number(tiling.tiles()), number(1), "tile", [&](ValueId tile) {
      overTile(tile);
      b_.makeVoid(Op::WorkgroupBarrier);
    });
  }

  /// The elements of a tile of the right operand that an invocation brings. Neighbours bring neighbours in memory.
  void fetch(const ChainStep& step, const ContractShape& shape, const Tiling& tiling, ValueId tile, const std::vector<ValueId>& next) {
    const graph::ValueId operand = body_[step.node].operands[1];
    const Shape space{shape.batch, shape.k, shape.n};
    const ValueId first_k = times(rest(tile, tiling.turns), tiling.depth), first_n = times(quotient(tile, tiling.turns), tiling.width);
    for (size_t i = 0; i < next.size(); ++i) {
      const auto [k, n] = inTile(tiling, i);
      ValueId at_k = b_.make(Op::Add, {first_k, k}), at_n = b_.make(Op::Add, {first_n, n}), inside;
      // Past the ends are zeros. Invocations that have no element of the tile repeat one.
      const bool has_surplus = tiling.depth * tiling.width % plan_.lanes != 0;
      if (has_surplus || tiling.turns * tiling.depth > shape.k) {
        inside = before(at_k, shape.k);
        at_k = b_.make(Op::Min, {at_k, number(shape.k - 1)});
      }
      if (has_surplus || tiling.strips * tiling.width > shape.n) {
        inside = both(inside, before(at_n, shape.n));
        at_n = b_.make(Op::Min, {at_n, number(shape.n - 1)});
      }
      const PositionId at = emitter_.atAxes(space, {number(0), at_k, at_n});
      ValueId element = emitter_.value(operand, emitter_.through(shape.b, body_.shapeOf(operand), at));
      if (inside.valid()) element = b_.make(Op::Select, {b_.f32(0), element, inside});
      b_.store(next[i], element);
    }
  }

  /// Where in a tile the `i`th element of an invocation is: along the inner axis, and across.
  std::pair<ValueId, ValueId> inTile(const Tiling& tiling, size_t i) {
    const ValueId item = plus(lane_, static_cast<int64_t>(i) * plan_.lanes);
    if (tiling.by_columns) return {quotient(item, tiling.width), rest(item, tiling.width)};
    return {rest(item, tiling.depth), quotient(item, tiling.depth)};
  }

  void fillTile(const Tiling& tiling, const std::vector<ValueId>& next) {
    for (size_t i = 0; i < next.size(); ++i) {
      const int64_t last = (static_cast<int64_t>(i) + 1) * plan_.lanes, size = tiling.depth * tiling.width;
      where(last > size ? before(plus(lane_, last - plan_.lanes), size) : ValueId(), [&] {
        const auto [k, n] = inTile(tiling, i);
        b_.store(b_.access(tile_, {b_.make(Op::Add, {times(k, tiling.stride()), n})}, true), b_.load(next[i]));
      });
    }
  }

  void addProducts(const ChainStep& step, const Tiling& tiling, ValueId tile, const std::vector<ValueId>& sums) {
    const ChainArray& left = chain_.arrays[step.left];
    const int64_t vectors = left.columns / RowChain::kVector, depth = tiling.depth / RowChain::kVector;
    const ValueId column = rest(lane_, tiling.width), row = rowIn(tiling), begin = times(rest(tile, tiling.turns), depth);
    std::vector<ValueId> lines;  // where the rows begin
    for (int64_t i = 0; i < tiling.rows; ++i) {
      ValueId own = plus(row, i * tiling.groups);
      if ((i + 1) * tiling.groups > plan_.rows_per_group) own = b_.make(Op::Min, {own, number(plan_.rows_per_group - 1)});
      lines.push_back(plus(b_.make(Op::Add, {times(own, vectors), begin}), base(step.left) / RowChain::kVector));
    }
    const int64_t share = depth / tiling.slices;
    const ValueId first = times(sliceIn(tiling), share);
    // Past the end of the inner axis are zeros, but not in memory that belongs to other arrays.
    ValueId end = number(share);
    if (vectors % depth != 0) {
      const ValueId last = b_.make(Op::Sub, {number(vectors), begin});
      end = b_.make(Op::Min, {end, b_.make(Op::Sub, {b_.make(Op::Max, {last, first}), first})});
    }
    b_.forRange(number(0), end, number(1), "k", [&](ValueId in_share) {
      const ValueId k = tiling.slices == 1 ? in_share : b_.make(Op::Add, {first, in_share});
      std::vector<ValueId> lefts;
      for (const ValueId line : lines) lefts.push_back(b_.load(b_.access(left_, {b_.make(Op::Add, {line, k})}, true)));
      for (int64_t i = 0; i < RowChain::kVector; ++i) {
        const ValueId at = b_.make(Op::Add, {times(k, RowChain::kVector * tiling.stride()), plus(column, i * tiling.stride())});
        const ValueId right = b_.load(b_.access(tile_, {at}, true));
        for (size_t r = 0; r < sums.size(); ++r) {
          const ValueId product = b_.make(Op::Mul, {b_.extract(lefts[r], static_cast<uint32_t>(i)), right});
          b_.store(sums[r], b_.make(Op::Add, {b_.load(sums[r]), product}));
        }
      }
    });
  }

  ValueId rowIn(const Tiling& tiling) {
    const ValueId group = quotient(lane_, tiling.width);
    return tiling.slices == 1 ? group : rest(group, tiling.groups);
  }
  ValueId sliceIn(const Tiling& tiling) { return quotient(lane_, tiling.width * tiling.groups); }

  /// The sums of a strip of columns, which begin anew for the next one.
  void storeSums(const ChainStep& step, const ContractShape& shape, const Tiling& tiling, ValueId tile, const std::vector<ValueId>& sums) {
    const ValueId first = times(quotient(tile, tiling.turns), tiling.width), row = rowIn(tiling);
    const ValueId n = b_.make(Op::Add, {first, rest(lane_, tiling.width)});
    const ValueId has_column = shape.n % tiling.width == 0 ? ValueId() : before(n, shape.n);
    if (tiling.slices > 1) shareSlices(sums.front());
    for (int64_t i = 0; i < tiling.rows; ++i) {
      const ValueId own = plus(row, i * tiling.groups), sum = sums[static_cast<size_t>(i)];
      ValueId stores = (i + 1) * tiling.groups <= plan_.rows_per_group ? ValueId() : before(own, plan_.rows_per_group);
      if (tiling.slices > 1) stores = both(before(lane_, tiling.width * tiling.groups), stores);
      where(both(has_column, stores), [&] {
        const ValueId total = tiling.slices == 1 ? b_.load(sum) : sumOfSlices(tiling);
        b_.store(placeOf(step.made, b_.make(Op::Add, {times(own, shape.n), n})), total);
      });
      if (tiling.strips > 1) b_.store(sum, b_.f32(0));
    }
  }

  /// In place of the tile, which is not needed any more.
  void shareSlices(ValueId sum) {
    b_.makeVoid(Op::WorkgroupBarrier);
    b_.store(b_.access(tile_, {lane_}, true), b_.load(sum));
    b_.makeVoid(Op::WorkgroupBarrier);
  }
  ValueId sumOfSlices(const Tiling& tiling) {
    ValueId total = b_.load(b_.access(tile_, {lane_}, true));
    for (int64_t slice = 1; slice < tiling.slices; ++slice) {
      const ValueId at = plus(lane_, slice * tiling.groups * tiling.width);
      total = b_.make(Op::Add, {total, b_.load(b_.access(tile_, {at}, true))});
    }
    return total;
  }

  const program::RowChainPlan& plan_;
  const EmitQuery& query_;
  const graph::Graph& body_;
  const RowChain chain_;
  kernel::Builder b_;
  BodyEmitter emitter_;
  std::vector<const ChainStep*> touched_;  ///< steps since all invocations last waited for each other
  ValueId lane_, first_row_, lane_in_row_, own_row_, made_, left_, tile_;
};

}  // namespace

Result<kernel::Module> emitKernel(const program::RowChainPlan& plan, const EmitQuery& query) {
  std::optional<RowChain> chain = findRowChain(query.body);
  if (!chain) {
    return fail("program.plan", "a chain of rows needs elements of rows that its workgroup does not have", {},
                "leave chains to the pass 'chainRows'");
  }
  return ChainEmitter(plan, query, *std::move(chain)).emit();
}

}  // namespace lockstep::passes
