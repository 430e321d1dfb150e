// SPDX-License-Identifier: Apache-2.0
// columns: reductions over axes that are not the last ones. `width` neighbouring results a workgroup keep loads contiguous; `lanes`
// invocations share the reduction of each.
#include <algorithm>

#include "passes/emit/emitters.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using graph::NodeId;
using graph::ReduceLowering;
using graph::Shape;
using kernel::Op;

namespace {

/// Axes of the operand from the flat result position `o` and the flat reduced position `k`.
std::vector<kernel::ValueId> operandAxes(BodyEmitter& emitter, const Shape& shape, const std::vector<int64_t>& reduced, kernel::ValueId o,
                                         kernel::ValueId k) {
  std::vector<int64_t> kept_extents, reduced_extents;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    bool in = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(axis)) != reduced.end();
    (in ? reduced_extents : kept_extents).push_back(shape.extent(axis));
  }
  PositionId kept = emitter.flat(Shape(kept_extents), o), along = emitter.flat(Shape(reduced_extents), k);
  std::vector<kernel::ValueId> axes;
  size_t next_kept = 0, next_reduced = 0;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    bool in = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(axis)) != reduced.end();
    axes.push_back(in ? emitter.axis(along, next_reduced++) : emitter.axis(kept, next_kept++));
  }
  return axes;
}

}  // namespace

Result<kernel::Module> emitKernel(const program::ColumnsPlan& plan, const EmitQuery& query) {
  const graph::Graph& body = query.body;
  const int64_t width = plan.width, lanes = plan.lanes;
  kernel::Builder b;
  BodyEmitter emitter(body, b, query.bindings);
  Entry entry = beginEntry(b, query, static_cast<uint32_t>(width * lanes));

  std::vector<NodeId> reduces;
  for (NodeId id : body.body().nodes) {
    if (std::holds_alternative<ReduceLowering>(*body[id].op->lower)) reduces.push_back(id);
  }
  const graph::Node& first = body[reduces.front()];
  const auto [seed_node, results, length] = reduceSpace(body);

  kernel::ValueId line = lanes == 1 ? entry.lane : b.make(Op::Rem, {entry.lane, b.u32(static_cast<uint32_t>(width))});
  kernel::ValueId lane = lanes == 1 ? b.u32(0) : b.make(Op::Div, {entry.lane, b.u32(static_cast<uint32_t>(width))});
  kernel::ValueId o = b.make(Op::Add, {b.make(Op::Mul, {entry.group, b.u32(static_cast<uint32_t>(width))}), line});
  kernel::ValueId valid = b.make(Op::Lt, {o, b.u32(static_cast<uint32_t>(results))});
  o = b.make(Op::Min, {o, b.u32(static_cast<uint32_t>(results - 1))});  // barriers must be reached by all

  std::vector<kernel::ValueId> accumulators;
  for (NodeId id : reduces) {
    kernel::ValueId neutral = neutralOf(b, std::get<ReduceLowering>(*body[id].op->lower), body.typeOf(body[id].operands[0]).dtype);
    accumulators.push_back(b.var(b.typeIdOf(neutral), "sum", neutral));
  }
  forRange(b, lane, b.u32(static_cast<uint32_t>(length)), lanes, plan.unroll, "k", [&](kernel::ValueId k) {
    emitter.pushScope();
    const auto& seed = std::get<ReduceLowering>(*first.op->lower);
    const Shape& shape = body.shapeOf(first.operands[0]);
    PositionId position = emitter.atAxes(shape, operandAxes(emitter, shape, seed.axes(body, first), o, k));
    for (size_t i = 0; i < reduces.size(); ++i) {
      const graph::Node& node = body[reduces[i]];
      const auto& reduce = std::get<ReduceLowering>(*node.op->lower);
      const kernel::ValueId element = emitter.value(node.operands[0], position);
      b.store(accumulators[i], reduce.combine(b, b.load(accumulators[i]), element));
    }
    emitter.popScope();
  });
  kernel::ValueId scratch;
  for (size_t i = 0; i < reduces.size(); ++i) {
    const graph::Node& node = body[reduces[i]];
    const auto& reduce = std::get<ReduceLowering>(*node.op->lower);
    kernel::ValueId total = b.load(accumulators[i]);
    if (lanes > 1) {
      kernel::TypeId array = b.types().array(b.typeIdOf(total), static_cast<uint32_t>(width * lanes));
      if (!scratch.valid() || b.types()[b.typeIdOf(scratch)].element != array) {
        scratch = workgroupArray(b, "scratch", b.typeIdOf(total), width * lanes);
      }
      total = combineLanes(b, reduce, total, scratch, entry.lane, lane, lanes, width);
    }
    emitter.define(node.results[0], total);
  }
  kernel::ValueId writes = lanes == 1 ? valid : b.make(Op::And, {valid, b.make(Op::Eq, {lane, b.u32(0)})});
  b.ifThen(writes, [&] { emitter.storeAll(o); });
  return b.take();
}

}  // namespace lockstep::passes
