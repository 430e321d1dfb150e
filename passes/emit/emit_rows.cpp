// SPDX-License-Identifier: Apache-2.0
// rows: reductions over the rows of one space with the elements around them. `lanes` invocations share a row; reductions that do not
// depend on each other run in one loop (a phase).
#include <algorithm>
#include <functional>

#include "passes/emit/emitters.h"
#include "passes/schedule/row_phases.h"

namespace lockstep::passes {

using graph::NodeId;
using graph::ReduceLowering;
using kernel::Op;

namespace {

struct State {
  const EmitQuery& query;
  const graph::Graph& body;
  kernel::Builder b{};
  BodyEmitter emitter;
  const RowPhases phases;
  const int64_t rows, columns, lanes, rows_per_group, unroll;
  kernel::ValueId row, lane, invocation, valid;

  State(const program::RowsPlan& how, const EmitQuery& q)
      : query(q),
        body(q.body),
        emitter(body, b, q.bindings),
        phases(findRowPhases(body)),
        rows(phases.rows),
        columns(phases.columns),
        lanes(how.lanes),
        rows_per_group(how.rows_per_group),
        unroll(how.unroll) {}

  /// Values with one element per row that are known now are made once, outside the loops over the row.
  void defineRowValues(size_t phase) {
    for (NodeId id : body.body().nodes) {
      const graph::Node& node = body[id];
      const auto* element = std::get_if<graph::ElementLowering>(&*node.op->lower);
      if (element == nullptr || element->cheap || phases.phase_of[id.index()] != phase) continue;
      if (!phases.once_per_row[id.index()]) continue;
      emitter.define(node.results[0], emitter.value(node.results[0], emitter.flat(body.shapeOf(node.results[0]), row)));
    }
  }

  void overRow(const std::function<void(kernel::ValueId)>& body_of_loop) {
    kernel::ValueId begin = lanes == 1 ? b.u32(0) : lane;
    forRange(b, begin, b.u32(static_cast<uint32_t>(columns)), lanes, unroll, "column", [&](kernel::ValueId column) {
      emitter.pushScope();
      body_of_loop(column);
      emitter.popScope();
    });
  }

  void runPhase(const std::vector<NodeId>& reduces, std::vector<kernel::ValueId>& scratch) {
    std::vector<kernel::ValueId> accumulators;
    for (NodeId id : reduces) {
      const auto& reduce = std::get<ReduceLowering>(*body[id].op->lower);
      kernel::ValueId neutral = neutralOf(b, reduce, body.typeOf(body[id].operands[0]).dtype);
      accumulators.push_back(b.var(b.typeIdOf(neutral), "sum", neutral));
    }
    overRow([&](kernel::ValueId column) {
      for (size_t i = 0; i < reduces.size(); ++i) {
        const graph::Node& node = body[reduces[i]];
        const auto& reduce = std::get<ReduceLowering>(*node.op->lower);
        kernel::ValueId element = emitter.value(node.operands[0], inRow(body.shapeOf(node.operands[0]), column));
        b.store(accumulators[i], reduce.combine(b, b.load(accumulators[i]), element));
      }
    });
    for (size_t i = 0; i < reduces.size(); ++i) {
      const graph::Node& node = body[reduces[i]];
      const auto& reduce = std::get<ReduceLowering>(*node.op->lower);
      kernel::ValueId total = b.load(accumulators[i]);
      if (lanes > 1) total = combineLanes(b, reduce, total, scratchFor(b.typeIdOf(total), scratch), invocation, lane, lanes, 1);
      emitter.define(node.results[0], total);
    }
  }

  // Positions are shared within one scope, so that equal elements of several reductions are emitted once.
  kernel::ValueId position_column;
  std::vector<std::pair<graph::Shape, PositionId>> positions;
  PositionId inRow(const graph::Shape& shape, kernel::ValueId column) {
    if (position_column != column) {
      positions.clear();
      position_column = column;
    }
    for (const auto& [known, position] : positions) {
      if (known == shape) return position;
    }
    positions.emplace_back(shape, emitter.inRow(shape, row, column, columns));
    return positions.back().second;
  }

  kernel::ValueId scratchFor(kernel::TypeId scalar, std::vector<kernel::ValueId>& scratch) {
    kernel::TypeId array = b.types().array(scalar, static_cast<uint32_t>(lanes * rows_per_group));
    for (kernel::ValueId known : scratch) {
      if (b.types()[b.typeIdOf(known)].element == array) return known;
    }
    scratch.push_back(workgroupArray(b, "scratch", scalar, lanes * rows_per_group));
    return scratch.back();
  }

  void storeResults() {
    auto storeRow = [&] {
      for (size_t i : phases.row_results) {
        graph::ValueId value = body.outputs[i].value;
        PositionId position = emitter.flat(body.shapeOf(value), row);
        emitter.store(i, position, emitter.value(value, position));
      }
    };
    if (!phases.row_results.empty()) {
      if (lanes == 1) {
        storeRow();
      } else {
        b.ifThen(b.make(Op::And, {valid, b.make(Op::Eq, {lane, b.u32(0)})}), [&] {
          emitter.pushScope();
          storeRow();
          emitter.popScope();
        });
      }
    }
    if (phases.full_results.empty()) return;
    awaitRowReads(b, query, lanes, phases.rows % rows_per_group != 0 || phases.wordElements(body) > 1);
    auto storeFull = [&] {
      if (const int64_t width = phases.wordElements(body); width > 1) return storeWords(width);
      overRow([&](kernel::ValueId column) {
        std::vector<kernel::ValueId> values;
        for (size_t i : phases.full_results)
          values.push_back(emitter.value(body.outputs[i].value, inRow(body.shapeOf(body.outputs[i].value), column)));
        for (size_t i = 0; i < phases.full_results.size(); ++i) {
          emitter.store(phases.full_results[i], inRow(body.shapeOf(body.outputs[phases.full_results[i]].value), column), values[i]);
        }
      });
    };
    if (lanes == 1) {
      storeFull();
    } else {
      b.ifThen(valid, storeFull);
    }
  }

  /// Full results of which some are packed: a lane has neighbours, whole words of them.
  void storeWords(int64_t width) {
    const kernel::ValueId begin = lanes == 1 ? b.u32(0) : lane;
    forRange(b, begin, b.u32(static_cast<uint32_t>(columns / width)), lanes, unroll, "place", [&](kernel::ValueId place) {
      emitter.pushScope();
      emitter.storeNeighbours(
          phases.full_results, emitter.neighbours(place, width, width),
          [&](const graph::Shape& shape, kernel::ValueId column) { return emitter.inRow(shape, row, column, columns); });
      emitter.popScope();
    });
  }

  void run() {
    std::vector<kernel::ValueId> scratch;
    for (size_t phase = 0; phase <= phases.phases.size(); ++phase) {
      defineRowValues(phase);
      if (phase < phases.phases.size()) runPhase(phases.phases[phase], scratch);
    }
    storeResults();
  }

  kernel::Module emit() {
    Entry entry = beginEntry(b, query, static_cast<uint32_t>(lanes * rows_per_group));
    invocation = entry.lane;
    kernel::ValueId row_in_group = lanes == 1 ? invocation : b.make(Op::Div, {invocation, b.u32(static_cast<uint32_t>(lanes))});
    lane = lanes == 1 ? b.u32(0) : b.make(Op::Rem, {invocation, b.u32(static_cast<uint32_t>(lanes))});
    row = b.make(Op::Add, {b.make(Op::Mul, {entry.group, b.u32(static_cast<uint32_t>(rows_per_group))}), row_in_group});
    kernel::ValueId count = b.u32(static_cast<uint32_t>(rows));
    valid = b.make(Op::Lt, {row, count});
    if (lanes == 1) {
      b.ifThen(valid, [&] {
        emitter.pushScope();
        run();
        emitter.popScope();
      });
    } else {
      // Barriers must be reached by all, so surplus rows repeat the last one and store nothing.
      row = b.make(Op::Min, {row, b.u32(static_cast<uint32_t>(rows - 1))});
      run();
    }
    return b.take();
  }
};

}  // namespace

Result<kernel::Module> emitKernel(const program::RowsPlan& plan, const EmitQuery& query) { return State(plan, query).emit(); }

}  // namespace lockstep::passes
