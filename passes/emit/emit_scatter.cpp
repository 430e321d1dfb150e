// SPDX-License-Identifier: Apache-2.0
// scatter: sums of the rows whose index names a segment. A workgroup owns some segments and some columns: its lanes look at the indices
// together and mark the rows of its segments in bit masks, then each lane adds the marked rows of its part in ascending order; the parts of
// an element are added at the end. A lane may have neighbouring columns, which it loads at once. No float atomics, so the sums are the same
// every time; every index is read once per workgroup, a row only by those that need it.
#include <fmt/format.h>

#include "passes/emit/emitters.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using graph::Shape;
using kernel::Op;

namespace {

using program::ScatterPlan;

struct State {
  const ScatterPlan& plan;
  const EmitQuery& query;
  const graph::Graph& body;
  ScatterNode scatter;
  const graph::Node& node;
  const graph::ScatterLowering& lowering;
  int64_t lanes, columns, parts, segments, chunk, words, unroll;
  kernel::Builder& b;
  BodyEmitter& emitter;
  kernel::ValueId lane, masks, outer, first_segment, segment_in_group, place_of_columns, part;
  std::vector<kernel::ValueId> column, sums;  ///< of the invocation: their numbers, variables

  State(const ScatterPlan& how, const EmitQuery& q, kernel::Builder& builder, BodyEmitter& body_emitter)
      : plan(how),
        query(q),
        body(q.body),
        scatter(findScatter(body)),
        node(body[scatter.node]),
        lowering(std::get<graph::ScatterLowering>(*node.op->lower)),
        lanes(plan.lanes),
        columns(plan.columns),
        parts(plan.parts),
        segments(plan.segments()),
        chunk(plan.chunk()),
        words(plan.words()),
        unroll(plan.unroll),
        b(builder),
        emitter(body_emitter) {}

  kernel::ValueId u32(int64_t value) { return b.u32(static_cast<uint32_t>(value)); }
  kernel::ValueId add(kernel::ValueId x, kernel::ValueId y) { return b.make(Op::Add, {x, y}); }
  kernel::ValueId mul(kernel::ValueId x, int64_t y) { return b.make(Op::Mul, {x, u32(y)}); }
  [[nodiscard]] int64_t places() const { return scatter.shape.inner / plan.vector; }
  kernel::ValueId mask(kernel::ValueId index) { return b.access(masks, {index}, true); }

  /// Which part of the result the workgroup owns.
  void locate(const Entry& entry) {
    const graph::ScatterShape& shape = scatter.shape;
    lane = entry.lane;
    int64_t column_tiles = (places() + columns - 1) / columns, segment_tiles = (shape.segments + segments - 1) / segments;
    kernel::ValueId column_tile = b.make(Op::Rem, {entry.group, u32(column_tiles)});
    kernel::ValueId rest = b.make(Op::Div, {entry.group, u32(column_tiles)});
    kernel::ValueId segment_tile = b.make(Op::Rem, {rest, u32(segment_tiles)});
    outer = b.make(Op::Div, {rest, u32(segment_tiles)});
    first_segment = mul(segment_tile, segments);
    kernel::ValueId place = b.make(Op::Div, {lane, u32(columns)});
    segment_in_group = b.make(Op::Rem, {place, u32(segments)});
    part = b.make(Op::Div, {place, u32(segments)});
    place_of_columns = add(mul(column_tile, columns), b.make(Op::Rem, {lane, u32(columns)}));
  }

  void clearMasks() {
    b.forRange(lane, u32(segments * words), u32(lanes), "word",
               [&](kernel::ValueId word) { b.makeVoid(Op::AtomicStore, {mask(word), b.u32(0)}); });
    b.makeVoid(Op::WorkgroupBarrier);
  }

  void markRows(kernel::ValueId base) {
    b.forRange(lane, u32(chunk), u32(lanes), "place", [&](kernel::ValueId place) {
      kernel::ValueId row = add(base, place);
      b.ifThen(b.make(Op::Lt, {row, u32(scatter.shape.length)}), [&] {
        emitter.pushScope();
        const Shape& index_shape = body.shapeOf(node.operands[1]);
        kernel::ValueId index = emitter.value(node.operands[1], emitter.flat(index_shape, row));
        kernel::ValueId segment = b.convert(b.types().u32(), index);
        // An index outside all segments, negative ones included, is far from any workgroup's first segment.
        kernel::ValueId mine = b.make(Op::Sub, {segment, first_segment});
        kernel::ValueId owned =
            b.make(Op::And, {b.make(Op::Lt, {mine, u32(segments)}), b.make(Op::Lt, {segment, u32(scatter.shape.segments)})});
        b.ifThen(owned, [&] {
          kernel::ValueId word = add(mul(mine, words), b.make(Op::Div, {place, u32(ScatterPlan::kMaskBits)}));
          kernel::ValueId bit = b.make(Op::Shl, {b.u32(1), b.make(Op::Rem, {place, u32(ScatterPlan::kMaskBits)})});
          b.make(Op::AtomicOr, {mask(word), bit});
        });
        emitter.popScope();
      });
    });
    b.makeVoid(Op::WorkgroupBarrier);
  }

  void addRows(kernel::ValueId base) {
    const graph::ScatterShape& shape = scatter.shape;
    const Shape& source = body.shapeOf(node.operands[0]);
    const Shape space{shape.outer, shape.length, shape.inner};
    b.forRange(part, u32(words), u32(parts), "word", [&](kernel::ValueId word) {
      kernel::ValueId bits = b.var(b.types().u32(), "bits", b.make(Op::AtomicLoad, {mask(add(mul(segment_in_group, words), word))}));
      // At most one round per bit.
      forRange(b, b.u32(0), b.u32(ScatterPlan::kMaskBits), 1, unroll, "taken", [&](kernel::ValueId) {
        kernel::ValueId left = b.load(bits);
        b.ifThen(b.make(Op::Eq, {left, b.u32(0)}), [&] { b.breakLoop(); });
        emitter.pushScope();
        kernel::ValueId row = add(add(base, mul(word, ScatterPlan::kMaskBits)), b.make(Op::CountTrailingZeros, {left}));
        for (size_t i = 0; i < sums.size(); ++i) {
          PositionId here = emitter.through(graph::reshapeMap(space, source), source, emitter.atAxes(space, {outer, row, column[i]}));
          kernel::ValueId element = emitter.value(node.operands[0], here);
          b.store(sums[i], lowering.combine(b, b.load(sums[i]), element));
        }
        b.store(bits, b.make(Op::And, {left, b.make(Op::Sub, {left, b.u32(1)})}));
        emitter.popScope();
      });
    });
    b.makeVoid(Op::WorkgroupBarrier);
  }

  /// The first part of every element adds the others.
  void addParts(kernel::ValueId type_of) {
    const int64_t apart = lanes / parts;
    std::vector<kernel::ValueId> partial;
    for (const kernel::ValueId sum : sums) {
      partial.push_back(workgroupArray(b, "partial", b.typeIdOf(type_of), lanes));
      b.store(b.access(partial.back(), {lane}, true), b.load(sum));
    }
    b.makeVoid(Op::WorkgroupBarrier);
    b.ifThen(b.make(Op::Eq, {part, b.u32(0)}), [&] {
      b.forRange(add(lane, u32(apart)), u32(lanes), u32(apart), "other", [&](kernel::ValueId other) {
        for (size_t i = 0; i < sums.size(); ++i) {
          const kernel::ValueId element = b.load(b.access(partial[i], {other}, true));
          b.store(sums[i], lowering.combine(b, b.load(sums[i]), element));
        }
      });
    });
  }

  void store(kernel::ValueId segment) {
    std::vector<std::vector<kernel::ValueId>> values(body.outputs.size());
    const kernel::ValueId line = mul(add(mul(outer, scatter.shape.segments), segment), scatter.shape.inner);
    std::vector<kernel::ValueId> numbers;
    for (size_t i = 0; i < sums.size(); ++i) {
      numbers.push_back(add(line, column[i]));
      emitter.pushScope();
      emitter.define(node.results[0], b.load(sums[i]));
      for (size_t output = 0; output < values.size(); ++output) {
        const graph::ValueId value = body.outputs[output].value;
        values[output].push_back(emitter.value(value, emitter.flat(body.shapeOf(value), numbers.back())));
      }
      emitter.popScope();
    }
    for (size_t output = 0; output < values.size(); ++output) emitter.storeFrom(output, numbers.front(), values[output]);
  }

  void emit() {
    const graph::ScatterShape& shape = scatter.shape;
    Entry entry = beginEntry(b, query, static_cast<uint32_t>(lanes));
    locate(entry);
    masks = workgroupArray(b, "masks", b.types().atomic(kernel::Scalar::U32), segments * words);
    kernel::ValueId identity = lowering.identity(b, body.typeOf(node.operands[0]));
    for (int64_t i = 0; i < plan.vector; ++i) sums.push_back(b.var(b.typeIdOf(identity), "sum", identity));
    kernel::ValueId segment = add(first_segment, segment_in_group);
    kernel::ValueId inside =
        b.make(Op::And, {b.make(Op::Lt, {segment, u32(shape.segments)}), b.make(Op::Lt, {place_of_columns, u32(places())})});
    if (query.groups[1] > 1) {
      // Surplus workgroups of a dispatch that is split over y repeat the last outer index and store nothing.
      inside = b.make(Op::And, {inside, b.make(Op::Lt, {outer, u32(shape.outer)})});
      outer = b.make(Op::Min, {outer, u32(shape.outer - 1)});
    }
    const kernel::ValueId place = b.make(Op::Min, {place_of_columns, u32(places() - 1)});  // barriers must be reached by all
    column = plan.vector == 1 ? std::vector{place} : emitter.neighbours(place, plan.vector, plan.vector);
    b.forRange(b.u32(0), u32(shape.length), u32(chunk), "base", [&](kernel::ValueId base) {
      clearMasks();
      markRows(base);
      addRows(base);
    });
    if (parts > 1) {
      addParts(identity);
      inside = b.make(Op::And, {inside, b.make(Op::Eq, {part, b.u32(0)})});
    }
    b.ifThen(inside, [&] { store(segment); });
  }
};

}  // namespace

Result<kernel::Module> emitKernel(const ScatterPlan& plan, const EmitQuery& query) {
  const graph::ScatterShape shape = findScatter(query.body).shape;
  if (shape.inner % plan.vector != 0) {
    return fail("program.plan", fmt::format("a scatter of rows of {} has no vectors of {}", shape.inner, plan.vector), {},
                "take a divisor of the row, or leave out 'vector'");
  }
  return withVectors(query, plan.vector, [&](kernel::Builder& b, BodyEmitter& emitter) { State(plan, query, b, emitter).emit(); });
}

}  // namespace lockstep::passes
