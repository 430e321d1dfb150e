// SPDX-License-Identifier: Apache-2.0
// held_rows: reductions over rows whose elements stay in the registers of their lanes. No row is a loop, so what a phase has loaded or
// computed is there for the next ones and for the results. With sums by columns a workgroup goes over several rows and adds them up.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "passes/emit/emitters.h"
#include "passes/emit/lane_reduction.h"
#include "passes/emit/sum_factors.h"
#include "passes/schedule/row_phases.h"

namespace lockstep::passes {

using graph::NodeId;
using graph::ReduceLowering;
using kernel::Op;

namespace {

uint32_t unsigned32(int64_t value) { return static_cast<uint32_t>(value); }

/// Neighbouring elements of a row that one lane has.
struct Slot {
  std::vector<kernel::ValueId> columns;
  kernel::ValueId inside;  // before the end of the row; invalid where all lanes are
};

class HeldRows {
 public:
  HeldRows(const program::HeldRowsPlan& plan, const EmitQuery& query, kernel::Builder& b, BodyEmitter& emitter)
      : plan_(plan), query_(query), body_(query.body), b_(b), emitter_(emitter), phases_(findRowPhases(body_)) {
    const Entry entry = beginEntry(b, query, unsigned32(plan.lanes * plan.rows_per_group));
    if (plan.subgroup > 1) b.setSubgroupSize(entry.function, unsigned32(plan.subgroup));
    invocation_ = entry.lane;
    const kernel::ValueId lanes = b.u32(unsigned32(plan.lanes));
    lane_ = plan.lanes == 1 ? b.u32(0) : b.make(Op::Rem, {invocation_, lanes});
    row_in_group_ = plan.lanes == 1 ? invocation_ : b.make(Op::Div, {invocation_, lanes});
    group_ = entry.group;
    first_row_ = b.make(Op::Mul, {group_, b.u32(unsigned32(plan.rows_per_group * plan.rounds * plan.rows_per_lane))});
    for (const std::vector<NodeId>& phase : phases_.phases) {
      for (const NodeId id : phase) factors_.emplace(id, factorsOf(body_, body_[id], phases_.columns, plan_.width));
    }
  }

  void emit() {
    makeSlots();
    LaneReduction lanes(b_, {plan_.lanes, plan_.rows_per_group, plan_.subgroup}, {invocation_, lane_, row_in_group_});
    if (plan_.rows_per_lane > 1) return overSeveralRows(lanes);
    if (plan_.rounds == 1 && phases_.parts.empty()) return overRow(b_.make(Op::Add, {first_row_, row_in_group_}), lanes);
    makeSums();
    b_.forRange(b_.u32(0), b_.u32(unsigned32(plan_.rounds)), b_.u32(1), "round", [&](kernel::ValueId round) {
      emitter_.pushScope();
      overRow(b_.make(Op::Add, {first_row_, round}), lanes);
      emitter_.popScope();
      lanes.endRound();
    });
    storeSums();
  }

 private:
  /// A row, and whether there is one; invalid where there are rows for all.
  struct Row {
    kernel::ValueId row, valid;
  };
  /// Surplus rows repeat the last one.
  Row placed(kernel::ValueId row) {
    if (phases_.rows % (plan_.rows_per_group * plan_.rounds * plan_.rows_per_lane) == 0) return {row, {}};
    const kernel::ValueId valid = b_.make(Op::Lt, {row, b_.u32(unsigned32(phases_.rows))});
    return {b_.make(Op::Min, {row, b_.u32(unsigned32(phases_.rows - 1))}), valid};
  }

  void overRow(kernel::ValueId row, LaneReduction& lanes) {
    const Row one = placed(row);
    row_ = one.row;
    if (one.valid.valid() && plan_.lanes == 1 && storesInPlace(query_.bindings)) {
      // No barrier orders them, so surplus rows must not read what the last one stores.
      row_ = row;
      b_.ifThen(one.valid, [&] {
        emitter_.pushScope();
        computeRow(lanes);
        emitter_.popScope();
      });
      return;
    }
    // Barriers must be reached by all, so surplus rows compute, too, but store nothing and are not summed up.
    valid_ = one.valid;
    computeRow(lanes);
  }

  /// Element by element of all rows, so that what they read in common is loaded once; then each row for itself.
  void overSeveralRows(LaneReduction& lanes) {
    std::vector<Row> rows;
    for (int64_t r = 0; r < plan_.rows_per_lane; ++r) {
      const kernel::ValueId in_group = b_.make(Op::Add, {row_in_group_, b_.u32(unsigned32(r * plan_.rows_per_group))});
      rows.push_back(placed(b_.make(Op::Add, {first_row_, in_group})));
    }
    const std::vector<NodeId>& reduces = phases_.phases.front();
    std::vector<std::vector<PairwiseReduction>> sums;
    for (size_t r = 0; r < rows.size(); ++r) sums.push_back(sumsOf(reduces));
    for (const Slot& slot : slots_) {
      std::vector<std::vector<PairwiseReduction>> parts;
      for (size_t r = 0; r < rows.size(); ++r) parts.push_back(sumsOf(reduces));
      for (const kernel::ValueId column : slot.columns) {
        for (size_t r = 0; r < rows.size(); ++r) {
          row_ = rows[r].row;
          addElement(reduces, parts[r], column);
        }
      }
      for (size_t r = 0; r < rows.size(); ++r) {
        row_ = rows[r].row;
        addSlot(reduces, sums[r], parts[r], slot);
      }
    }
    std::vector<LaneReduction::Part> parts;
    for (std::vector<PairwiseReduction>& row : sums) {
      for (PairwiseReduction& sum : row) parts.push_back({&sum.reduce(), sum.total()});
    }
    lanes.combine(parts);
    for (size_t r = 0; r < rows.size(); ++r) {
      // No barrier follows, so surplus rows need not read what another one stores in place.
      where(rows[r].valid, [&] {
        emitter_.pushScope();
        row_ = rows[r].row;
        for (size_t i = 0; i < reduces.size(); ++i) emitter_.define(body_[reduces[i]].results[0], parts[r * reduces.size() + i].value);
        // Rows are stored by lanes far apart, which belong to different subgroups where there are several.
        storeRowResults(static_cast<int64_t>(r) * plan_.lanes / plan_.rows_per_lane);
        emitter_.popScope();
      });
    }
  }

  void computeRow(LaneReduction& lanes) {
    for (size_t phase = 0; phase < phases_.phases.size(); ++phase) {
      defineRowValues(phase);
      runPhase(phases_.phases[phase], lanes);
    }
    if (!isForResultsAlone()) defineRowValues(phases_.phases.size());
    addToSums();
    storeRowResults(0);
    if (!phases_.full_results.empty())
      awaitRowReads(b_, query_, plan_.lanes, valid_.valid() || plan_.lanes * plan_.width > phases_.columns);
    for (const Slot& slot : slots_) storeFullResults(slot);
  }

  /// A variable for each sum by columns and each column of the lane.
  void makeSums() {
    for (const ColumnPart& part : phases_.parts) {
      const kernel::ValueId neutral = neutralOf(b_, reduceOf(part), body_.typeOf(part.source).dtype);
      std::vector<kernel::ValueId>& sums = sums_.emplace_back();
      for (size_t i = 0; i < slots_.size() * static_cast<size_t>(plan_.width); ++i)
        sums.push_back(b_.var(b_.typeIdOf(neutral), "column_sum", neutral));
    }
  }

  void addToSums() {
    for (size_t p = 0; p < phases_.parts.size(); ++p) {
      const ColumnPart& part = phases_.parts[p];
      const ReduceLowering& reduce = reduceOf(part);
      size_t next = 0;
      for (const Slot& slot : slots_) {
        for (const kernel::ValueId column : slot.columns) {
          kernel::ValueId element = emitter_.value(part.source, inRow(part.source, column));
          if (valid_.valid()) {
            const kernel::ValueId neutral = neutralOf(b_, reduce, body_.typeOf(part.source).dtype);
            element = b_.make(Op::Select, {neutral, element, valid_});
          }
          const kernel::ValueId sum = sums_[p][next++];
          b_.store(sum, reduce.combine(b_, b_.load(sum), element));
        }
      }
    }
  }

  void storeSums() {
    const kernel::ValueId first = b_.make(Op::Mul, {group_, b_.u32(unsigned32(phases_.columns))});
    for (size_t s = 0; s < slots_.size(); ++s) {
      where(slots_[s].inside, [&] {
        const kernel::ValueId at = b_.make(Op::Add, {first, slots_[s].columns.front()});
        for (size_t p = 0; p < sums_.size(); ++p) {
          std::vector<kernel::ValueId> values;
          for (int64_t i = 0; i < plan_.width; ++i)
            values.push_back(b_.load(sums_[p][s * static_cast<size_t>(plan_.width) + static_cast<size_t>(i)]));
          emitter_.storeFrom(phases_.part_results[p], at, values);
        }
      });
    }
  }

  [[nodiscard]] const ReduceLowering& reduceOf(const ColumnPart& part) const {
    return std::get<ReduceLowering>(*body_[part.node].op->lower);
  }

  void makeSlots() {
    const int64_t places = phases_.columns / plan_.width;
    for (int64_t i = 0; i < plan_.per_lane; ++i) {
      Slot slot;
      kernel::ValueId place = i == 0 ? lane_ : b_.make(Op::Add, {lane_, b_.u32(unsigned32(i * plan_.lanes))});
      if ((i + 1) * plan_.lanes > places) {  // what is beyond the end repeats other elements and is not used
        slot.inside = b_.make(Op::Lt, {place, b_.u32(unsigned32(places))});
        // Nobody else stores the lane's own first elements in place.
        if (i > 0 && storesInPlace(query_.bindings)) place = b_.make(Op::Select, {lane_, place, slot.inside});
        place = b_.make(Op::Min, {place, b_.u32(unsigned32(places - 1))});
      }
      slot.columns = plan_.width == 1 ? std::vector{place} : emitter_.neighbours(place, plan_.width, plan_.width);
      slots_.push_back(std::move(slot));
    }
  }

  PositionId inRow(graph::ValueId value, kernel::ValueId column) {
    return emitter_.inRow(body_.shapeOf(value), row_, column, phases_.columns);
  }

  /// Values with one element per row that are known now.
  void defineRowValues(size_t phase) {
    for (NodeId id : body_.body().nodes) {
      const graph::Node& node = body_[id];
      const auto* element = std::get_if<graph::ElementLowering>(&*node.op->lower);
      if (element == nullptr || element->cheap || phases_.phase_of[id.index()] != phase) continue;
      const graph::Shape& shape = body_.shapeOf(node.results[0]);
      if (!phases_.once_per_row[id.index()]) continue;
      emitter_.define(node.results[0], emitter_.value(node.results[0], emitter_.flat(shape, row_)));
    }
  }

  std::vector<PairwiseReduction> sumsOf(const std::vector<NodeId>& reduces) {
    std::vector<PairwiseReduction> sums;
    for (const NodeId id : reduces) sums.emplace_back(b_, std::get<ReduceLowering>(*body_[id].op->lower));
    return sums;
  }

  void addElement(const std::vector<NodeId>& reduces, std::vector<PairwiseReduction>& sums, kernel::ValueId column) {
    for (size_t i = 0; i < reduces.size(); ++i) sums[i].add(product(factors_.at(reduces[i]).own, column));
  }

  kernel::ValueId product(const std::vector<graph::ValueId>& factors, kernel::ValueId column) {
    kernel::ValueId made;
    for (const graph::ValueId factor : factors) {
      const kernel::ValueId value = emitter_.value(factor, inRow(factor, column));
      made = made.valid() ? b_.make(Op::Mul, {made, value}) : value;
    }
    return made;
  }

  /// Neighbours are a power of two, so their pairs are those of one reduction over all elements; but one choice is enough for all of them,
  /// and so is one product with what they share.
  void addSlot(const std::vector<NodeId>& reduces, std::vector<PairwiseReduction>& sums, std::vector<PairwiseReduction>& parts,
               const Slot& slot) {
    for (size_t i = 0; i < reduces.size(); ++i) {
      kernel::ValueId part = parts[i].total();
      const std::vector<graph::ValueId>& shared = factors_.at(reduces[i]).shared;
      if (!shared.empty()) part = b_.make(Op::Mul, {part, product(shared, slot.columns.front())});
      if (slot.inside.valid()) {
        const kernel::ValueId neutral = neutralOf(b_, sums[i].reduce(), body_.typeOf(body_[reduces[i]].operands[0]).dtype);
        part = b_.make(Op::Select, {neutral, part, slot.inside});
      }
      sums[i].add(part);
    }
  }

  void runPhase(const std::vector<NodeId>& reduces, LaneReduction& lanes) {
    std::vector<PairwiseReduction> sums = sumsOf(reduces);
    for (const Slot& slot : slots_) {
      std::vector<PairwiseReduction> parts = sumsOf(reduces);
      for (const kernel::ValueId column : slot.columns) addElement(reduces, parts, column);
      addSlot(reduces, sums, parts, slot);
    }
    std::vector<LaneReduction::Part> parts;
    for (PairwiseReduction& sum : sums) parts.push_back({&sum.reduce(), sum.total()});
    lanes.combine(parts);
    for (size_t i = 0; i < reduces.size(); ++i) emitter_.define(body_[reduces[i]].results[0], parts[i].value);
  }

  /// Whether only the lane that stores a row needs what is computed from its last reductions. The others' subgroups then skip it.
  [[nodiscard]] bool isForResultsAlone() const {
    const auto is_word = [&](size_t i) { return !graph::isPacked(dtypeOf(i)); };
    return phases_.full_results.empty() && phases_.parts.empty() && std::ranges::all_of(phases_.row_results, is_word);
  }

  /// By one of the row's lanes.
  void storeRowResults(int64_t writer) {
    std::vector<size_t> words, packed;
    for (const size_t i : phases_.row_results) (graph::isPacked(dtypeOf(i)) ? packed : words).push_back(i);
    const kernel::ValueId writes = plan_.lanes == 1 ? kernel::ValueId() : b_.make(Op::Eq, {lane_, b_.u32(unsigned32(writer))});
    if (!words.empty()) {
      where(both(valid_, writes), [&] {
        emitter_.pushScope();
        if (isForResultsAlone()) defineRowValues(phases_.phases.size());
        for (const size_t i : words) {
          const PositionId position = rowPosition(i);
          emitter_.store(i, position, emitter_.value(body_.outputs[i].value, position));
        }
        emitter_.popScope();
      });
    }
    for (const size_t i : packed) storeRowWords(i, writes);
  }

  /// The words of a packed result with one element per row have those of several rows, which come together in workgroup memory.
  void storeRowWords(size_t result, kernel::ValueId is_writer) {
    const int64_t per_word = graph::elementsPerWord(dtypeOf(result));
    const kernel::ValueId value = emitter_.value(body_.outputs[result].value, rowPosition(result));
    const kernel::ValueId rows = workgroupArray(b_, "row_results", b_.typeIdOf(value), plan_.rows_per_group);
    where(is_writer, [&] { b_.store(b_.access(rows, {row_in_group_}, true), value); });
    b_.makeVoid(Op::WorkgroupBarrier);
    const kernel::ValueId in_group = b_.make(Op::Mul, {invocation_, b_.u32(unsigned32(per_word))});
    const kernel::ValueId first = b_.make(Op::Add, {first_row_, in_group});
    const auto before = [&](kernel::ValueId row) { return b_.make(Op::Lt, {row, b_.u32(unsigned32(phases_.rows))}); };
    kernel::ValueId writes = b_.make(Op::Lt, {invocation_, b_.u32(unsigned32(plan_.rows_per_group / per_word))});
    if (valid_.valid()) writes = b_.make(Op::And, {writes, before(first)});
    b_.ifThen(writes, [&] {
      std::vector<kernel::ValueId> elements;
      for (int64_t i = 0; i < per_word; ++i) {
        const kernel::ValueId number = b_.u32(unsigned32(i));
        kernel::ValueId element = b_.load(b_.access(rows, {b_.make(Op::Add, {in_group, number})}, true));
        if (valid_.valid() && i > 0) {  // past the last row words are filled with zeros
          const kernel::ValueId zero = graph::kernelConstant(b_, dtypeOf(result), 0);
          element = b_.make(Op::Select, {zero, element, before(b_.make(Op::Add, {first, number}))});
        }
        elements.push_back(element);
      }
      emitter_.storeWord(result, b_.make(Op::Div, {first, b_.u32(unsigned32(per_word))}), elements);
    });
  }

  void storeFullResults(const Slot& slot) {
    if (phases_.full_results.empty()) return;
    where(both(valid_, slot.inside), [&] {
      emitter_.pushScope();
      emitter_.storeNeighbours(phases_.full_results, slot.columns, [&](const graph::Shape& shape, kernel::ValueId column) {
        return emitter_.inRow(shape, row_, column, phases_.columns);
      });
      emitter_.popScope();
    });
  }

  [[nodiscard]] graph::DType dtypeOf(size_t result) const { return body_.typeOf(body_.outputs[result].value).dtype; }
  PositionId rowPosition(size_t result) { return emitter_.flat(body_.shapeOf(body_.outputs[result].value), row_); }

  kernel::ValueId both(kernel::ValueId a, kernel::ValueId b) {
    if (!a.valid() || !b.valid()) return a.valid() ? a : b;
    return b_.make(Op::And, {a, b});
  }
  void where(kernel::ValueId condition, const std::function<void()>& then) {
    if (condition.valid()) {
      b_.ifThen(condition, then);
    } else {
      then();
    }
  }

  const program::HeldRowsPlan& plan_;
  const EmitQuery& query_;
  const graph::Graph& body_;
  kernel::Builder& b_;
  BodyEmitter& emitter_;
  const RowPhases phases_;
  kernel::ValueId invocation_, lane_, row_in_group_, group_, first_row_, row_, valid_;
  std::vector<Slot> slots_;
  std::map<NodeId, SumFactors> factors_;            // by reduction
  std::vector<std::vector<kernel::ValueId>> sums_;  // by sum by columns: of the columns of the slots, one after the other
};

}  // namespace

Result<kernel::Module> emitKernel(const program::HeldRowsPlan& plan, const EmitQuery& query) {
  if (plan.rounds > 1 && plan.rows_per_group > 1) {  // a text may say so
    return fail("program.plan", fmt::format("held_rows goes over {} rows at a time, {} times", plan.rows_per_group, plan.rounds), {},
                "a plan with rounds has rows_per_group = 1");
  }
  if (const int64_t most = findRowPhases(query.body).mostTogether(query.body); plan.rows_per_lane > (plan.rounds == 1 ? most : 1)) {
    return fail(
        "program.plan", fmt::format("held_rows has {} rows per lane, and its reductions allow {}", plan.rows_per_lane, most), {},
        "only reductions that do not need one another, with one result of 32 bits per row and no rounds, take several rows per lane");
  }
  if (plan.subgroup > 1 && (plan.lanes == 1 || plan.lanes * plan.rows_per_group % plan.subgroup != 0)) {
    return fail(
        "program.plan",
        fmt::format("held_rows has {} invocations, which are no whole subgroups of {}", plan.lanes * plan.rows_per_group, plan.subgroup),
        {}, "leave out 'subgroup', or make lanes * rows_per_group a multiple of it");
  }
  return withVectors(query, plan.width, [&](kernel::Builder& b, BodyEmitter& emitter) { HeldRows(plan, query, b, emitter).emit(); });
}

}  // namespace lockstep::passes
