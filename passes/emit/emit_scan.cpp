// SPDX-License-Identifier: Apache-2.0
// scan: prefixes along the lines of one axis. Several lanes share a line: each combines its own part, the parts before it are combined in
// workgroup memory, then each goes over its part again and stores.
#include "passes/emit/emitters.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using graph::ScanLowering;
using graph::Shape;
using kernel::Op;

namespace {

struct State {
  const EmitQuery& query;
  const graph::Graph& body;
  ScanSpace space;
  const graph::Node& node;
  const ScanLowering& scan;
  bool reverse;
  int64_t lanes, shared, part, unroll;
  kernel::Builder b{};
  BodyEmitter emitter;
  kernel::ValueId line;

  State(const program::ScanPlan& plan, const EmitQuery& q)
      : query(q),
        body(q.body),
        space(scanSpace(body)),
        node(body[space.node]),
        scan(std::get<ScanLowering>(*node.op->lower)),
        reverse(scan.reverse(node)),
        lanes(plan.lanes),
        shared(plan.lanes_per_line),
        part((space.length + shared - 1) / shared),
        unroll(plan.unroll),
        emitter(body, b, q.bindings) {}

  kernel::ValueId u32(int64_t value) { return b.u32(static_cast<uint32_t>(value)); }
  [[nodiscard]] Shape lines() const { return Shape{space.outer, space.length, space.inner}; }

  /// Element `n` of the line, counted from the end when the scan is reversed.
  PositionId elementAt(kernel::ValueId n) {
    if (reverse) n = b.make(Op::Sub, {u32(space.length - 1), n});
    kernel::ValueId outer = b.make(Op::Div, {line, u32(space.inner)}), inner = b.make(Op::Rem, {line, u32(space.inner)});
    return emitter.atAxes(lines(), {outer, n, inner});
  }
  PositionId in(const Shape& shape, PositionId position) { return emitter.through(graph::reshapeMap(lines(), shape), shape, position); }

  /// Combines `count` elements from `begin` on into `sum`, and stores every prefix when asked to.
  void walk(kernel::ValueId begin, kernel::ValueId count, kernel::ValueId sum, bool stores) {
    forRange(b, b.u32(0), count, 1, unroll, "i", [&](kernel::ValueId i) {
      emitter.pushScope();
      PositionId here = elementAt(shared == 1 ? i : b.make(Op::Add, {begin, i}));
      kernel::ValueId element = emitter.value(node.operands[0], in(body.shapeOf(node.operands[0]), here));
      kernel::ValueId prefix = scan.combine(b, b.load(sum), element);
      b.store(sum, prefix);
      if (stores) storePrefix(prefix, here);
      emitter.popScope();
    });
  }

  void storePrefix(kernel::ValueId prefix, PositionId here) {
    emitter.define(node.results[0], prefix);
    std::vector<PositionId> positions;
    std::vector<kernel::ValueId> values;
    for (const graph::Output& output : body.outputs) {
      positions.push_back(in(body.shapeOf(output.value), here));
      values.push_back(emitter.value(output.value, positions.back()));
    }
    for (size_t i = 0; i < values.size(); ++i) emitter.store(i, positions[i], values[i]);
  }

  kernel::Module emit() {
    Entry entry = beginEntry(b, query, static_cast<uint32_t>(lanes));
    kernel::ValueId lane = shared == 1 ? b.u32(0) : b.make(Op::Rem, {entry.lane, u32(shared)});
    kernel::ValueId in_group = shared == 1 ? entry.lane : b.make(Op::Div, {entry.lane, u32(shared)});
    kernel::ValueId first_line = b.make(Op::Mul, {entry.group, u32(lanes / shared)});
    line = b.make(Op::Add, {first_line, in_group});
    kernel::ValueId valid = b.make(Op::Lt, {line, u32(space.outer * space.inner)});
    kernel::ValueId identity = scan.identity(b, body.typeOf(node.operands[0]));
    kernel::ValueId sum = b.var(b.typeIdOf(identity), "prefix", identity);
    kernel::ValueId begin = b.make(Op::Mul, {lane, u32(part)});
    // The last parts may be shorter, or empty. A count, not an end: its bound, and so that of the rounds, is plain to see.
    kernel::ValueId count = u32(part);
    if (part * shared != space.length) {
      kernel::ValueId left = b.make(Op::Sub, {b.make(Op::Max, {begin, u32(space.length)}), begin});
      count = b.make(Op::Min, {left, u32(part)});
    }
    if (shared > 1) {
      // Barriers must be reached by all, so surplus lines only skip the work between them.
      kernel::ValueId parts = workgroupArray(b, "parts", b.typeIdOf(identity), lanes);
      b.ifThen(valid, [&] { walk(begin, count, sum, false); });
      b.store(b.access(parts, {entry.lane}, true), b.load(sum));
      b.makeVoid(Op::WorkgroupBarrier);
      b.store(sum, identity);
      kernel::ValueId first = b.make(Op::Sub, {entry.lane, lane});
      b.forRange(first, entry.lane, b.u32(1), "before", [&](kernel::ValueId before) {
        kernel::ValueId earlier = b.load(b.access(parts, {before}, true));
        b.store(sum, scan.combine(b, b.load(sum), earlier));
      });
    }
    b.ifThen(valid, [&] { walk(begin, count, sum, true); });
    return b.take();
  }
};

}  // namespace

Result<kernel::Module> emitKernel(const program::ScanPlan& plan, const EmitQuery& query) { return State(plan, query).emit(); }

}  // namespace lockstep::passes
