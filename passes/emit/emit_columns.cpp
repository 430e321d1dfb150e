// SPDX-License-Identifier: Apache-2.0
// columns: reductions over axes that are not the last ones. Neighbouring results of a workgroup keep loads contiguous, an invocation may
// have some side by side; `lanes` invocations share the reduction of each.
#include <fmt/format.h>

#include <algorithm>

#include "passes/emit/emitters.h"
#include "passes/emit/lane_reduction.h"
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

class Columns {
 public:
  Columns(const program::ColumnsPlan& plan, const EmitQuery& query, kernel::Builder& b, BodyEmitter& emitter)
      : plan_(plan), body_(query.body), b_(b), emitter_(emitter), space_(reduceSpace(body_)) {
    const Entry entry = beginEntry(b, query, unsigned32(plan.width * plan.lanes));
    if (plan.subgroup > 1) b.setSubgroupSize(entry.function, unsigned32(plan.subgroup));
    invocation_ = entry.lane;
    const kernel::ValueId width = b.u32(unsigned32(plan.width));
    const int64_t places = space_.results / plan.vector;
    line_ = plan.lanes == 1 ? entry.lane : b.make(Op::Rem, {entry.lane, width});
    lane_ = plan.lanes == 1 ? b.u32(0) : b.make(Op::Div, {entry.lane, width});
    kernel::ValueId place = b.make(Op::Add, {b.make(Op::Mul, {entry.group, width}), line_});
    valid_ = b.make(Op::Lt, {place, b.u32(unsigned32(places))});
    place_ = b.make(Op::Min, {place, b.u32(unsigned32(places - 1))});  // barriers must be reached by all
    results_ = plan.vector == 1 ? std::vector{place_} : emitter.neighbours(place_, plan.vector, plan.vector);
    for (NodeId id : body_.body().nodes) {
      if (std::holds_alternative<ReduceLowering>(*body_[id].op->lower)) reduces_.push_back(id);
    }
  }

  void emit() {
    for (NodeId id : reduces_) {
      const kernel::ValueId neutral = neutralOf(b_, reduceOf(id), body_.typeOf(body_[id].operands[0]).dtype);
      for (size_t i = 0; i < results_.size(); ++i) sums_.push_back(b_.var(b_.typeIdOf(neutral), "sum", neutral));
    }
    addRows();
    std::vector<kernel::ValueId> sums;
    for (const kernel::ValueId sum : sums_) sums.push_back(b_.load(sum));
    const bool by_tree = plan_.lanes > 1 && plan_.subgroup == 1;
    if (by_tree) {
      std::vector<kernel::ValueId> scratch;  // one array for each type
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = overLanes(reduceOfSum(i), sums[i], scratch);
    }
    const std::vector<kernel::ValueId> shared = by_tree ? std::vector<kernel::ValueId>() : overSubgroups(sums);
    const kernel::ValueId writes = plan_.lanes == 1 ? valid_ : b_.make(Op::And, {valid_, b_.make(Op::Eq, {lane_, b_.u32(0)})});
    b_.ifThen(writes, [&] {
      for (size_t i = 0; i < shared.size(); ++i) sums[i] = overShared(reduceOfSum(i), shared[i]);
      store(sums);
    });
  }

 private:
  static uint32_t unsigned32(int64_t value) { return static_cast<uint32_t>(value); }
  const ReduceLowering& reduceOfSum(size_t sum) const { return reduceOf(reduces_[sum / results_.size()]); }
  const ReduceLowering& reduceOf(NodeId id) const { return std::get<ReduceLowering>(*body_[id].op->lower); }

  /// Rows of whole blocks have no questions between their loads, so that these do not wait for one another; the rest comes row by row.
  void addRows() {
    const int64_t block = plan_.lanes * plan_.unroll, whole = plan_.unroll == 1 ? 0 : space_.length / block * block;
    const auto lanes = [&](int64_t rows) { return b_.u32(unsigned32(rows)); };
    if (whole > 0) {
      b_.forRange(lane_, lanes(whole), lanes(block), "k", [&](kernel::ValueId k) {
        std::vector<kernel::ValueId> rows{k};
        for (int64_t i = 1; i < plan_.unroll; ++i) rows.push_back(b_.make(Op::Add, {k, lanes(i * plan_.lanes)}));
        add(rows);
      });
    }
    if (whole == space_.length) return;
    const kernel::ValueId begin = whole == 0 ? lane_ : b_.make(Op::Add, {lane_, lanes(whole)});
    b_.forRange(begin, lanes(space_.length), lanes(plan_.lanes), "k", [&](kernel::ValueId k) { add({k}); });
  }

  /// Elements of some rows: all are made before the first is added.
  void add(const std::vector<kernel::ValueId>& rows) {
    emitter_.pushScope();
    const graph::Node& first = body_[reduces_.front()];
    const Shape& shape = body_.shapeOf(first.operands[0]);
    std::vector<kernel::ValueId> elements;
    for (const kernel::ValueId k : rows) {
      for (const kernel::ValueId result : results_) {
        const PositionId position =
            emitter_.atAxes(shape, operandAxes(emitter_, shape, reduceOf(reduces_.front()).axes(body_, first), result, k));
        for (NodeId id : reduces_) elements.push_back(emitter_.value(body_[id].operands[0], position));
      }
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      const size_t reduce = i % reduces_.size(), result = i / reduces_.size() % results_.size();
      const kernel::ValueId sum = sums_[reduce * results_.size() + result];
      b_.store(sum, reduceOf(reduces_[reduce]).combine(b_, b_.load(sum), elements[i]));
    }
    emitter_.popScope();
  }

  kernel::ValueId overLanes(const ReduceLowering& reduce, kernel::ValueId total, std::vector<kernel::ValueId>& scratch) {
    const int64_t invocations = plan_.width * plan_.lanes;
    const kernel::TypeId array = b_.types().array(b_.typeIdOf(total), unsigned32(invocations));
    auto known = std::ranges::find_if(scratch, [&](kernel::ValueId one) { return b_.types()[b_.typeIdOf(one)].element == array; });
    if (known == scratch.end()) known = scratch.insert(known, workgroupArray(b_, "scratch", b_.typeIdOf(total), invocations));
    return combineLanes(b_, reduce, total, *known, invocation_, lane_, plan_.lanes, plan_.width);
  }

  /// Lanes of a column that are in a subgroup, and how many values of a column that leaves.
  [[nodiscard]] int64_t lanesTogether() const { return std::clamp<int64_t>(plan_.subgroup / plan_.width, 1, plan_.lanes); }
  [[nodiscard]] int64_t valuesPerColumn() const { return plan_.lanes / lanesTogether(); }

  /// Combines the sums of the lanes of each subgroup. Where that leaves several values of a column, they are in the arrays that it returns,
  /// one for each sum, after one barrier for all of them.
  std::vector<kernel::ValueId> overSubgroups(std::vector<kernel::ValueId>& sums) {
    const int64_t together = lanesTogether();
    std::vector<LanePart> parts;
    for (size_t i = 0; i < sums.size(); ++i) parts.push_back({&reduceOfSum(i), sums[i]});
    combineInSubgroup(b_, parts, together, plan_.width);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = parts[i].value;
    const int64_t values = valuesPerColumn();
    if (values == 1) return {};
    std::vector<kernel::ValueId> arrays;
    for (const kernel::ValueId sum : sums) arrays.push_back(workgroupArray(b_, "scratch", b_.typeIdOf(sum), values * plan_.width));
    const kernel::ValueId size = b_.u32(unsigned32(together));
    b_.ifThen(b_.make(Op::Eq, {b_.make(Op::Rem, {lane_, size}), b_.u32(0)}), [&] {
      const kernel::ValueId number = b_.make(Op::Div, {lane_, size});
      const kernel::ValueId slot = b_.make(Op::Add, {b_.make(Op::Mul, {number, b_.u32(unsigned32(plan_.width))}), line_});
      for (size_t i = 0; i < sums.size(); ++i) b_.store(b_.access(arrays[i], {slot}, true), sums[i]);
    });
    b_.makeVoid(Op::WorkgroupBarrier);
    return arrays;
  }
  kernel::ValueId overShared(const ReduceLowering& reduce, kernel::ValueId array) {
    PairwiseReduction values(b_, reduce);
    for (int64_t k = 0; k < valuesPerColumn(); ++k) {
      const kernel::ValueId slot = k == 0 ? line_ : b_.make(Op::Add, {line_, b_.u32(unsigned32(k * plan_.width))});
      values.add(b_.load(b_.access(array, {slot}, true)));
    }
    return values.total();
  }

  /// `totals` by reduction, then by result.
  void store(const std::vector<kernel::ValueId>& totals) {
    std::vector<std::vector<kernel::ValueId>> values(body_.outputs.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      emitter_.pushScope();
      for (size_t reduce = 0; reduce < reduces_.size(); ++reduce)
        emitter_.define(body_[reduces_[reduce]].results[0], totals[reduce * results_.size() + i]);
      for (size_t output = 0; output < values.size(); ++output) {
        const graph::ValueId value = body_.outputs[output].value;
        values[output].push_back(emitter_.value(value, emitter_.flat(body_.shapeOf(value), results_[i])));
      }
      emitter_.popScope();
    }
    for (size_t output = 0; output < values.size(); ++output) emitter_.storeFrom(output, results_.front(), values[output]);
  }

  const program::ColumnsPlan& plan_;
  const graph::Graph& body_;
  kernel::Builder& b_;
  BodyEmitter& emitter_;
  const ReduceSpace space_;
  kernel::ValueId invocation_, line_, lane_, valid_, place_;
  std::vector<kernel::ValueId> results_;  // their numbers
  std::vector<NodeId> reduces_;
  std::vector<kernel::ValueId> sums_;  // variables by reduction, then by result
};

}  // namespace

Result<kernel::Module> emitKernel(const program::ColumnsPlan& plan, const EmitQuery& query) {
  const auto isPowerOfTwo = [](int64_t number) { return number > 0 && (number & (number - 1)) == 0; };
  const bool has_subgroups = plan.lanes > 1 && isPowerOfTwo(plan.width) && plan.width * plan.lanes % plan.subgroup == 0;
  if (plan.subgroup > 1 && !has_subgroups) {
    return fail(
        "program.plan",
        fmt::format("columns has {} columns of {} lanes, which are no whole subgroups of {}", plan.width, plan.lanes, plan.subgroup), {},
        "leave out 'subgroup', or make width * lanes a multiple of it, with a width that is a power of two");
  }
  return withVectors(query, plan.vector, [&](kernel::Builder& b, BodyEmitter& emitter) { Columns(plan, query, b, emitter).emit(); });
}

}  // namespace lockstep::passes
