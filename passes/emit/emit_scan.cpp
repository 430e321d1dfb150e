// SPDX-License-Identifier: Apache-2.0
// scan: prefixes along the lines of one axis, of tuples of elements. Several lanes share a line: each combines its own part, the parts
// before it are combined in workgroup memory, then each goes over its part again and stores. Where only the total is wanted, the parts are
// combined by a tree, neighbours first, and the first lane stores. An invocation may take neighbours at once. Where a tuple has no
// identity, a variable says whether there is anything yet to combine with.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "passes/emit/emitters.h"
#include "passes/emit/scalar_function.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using graph::ScanLowering;
using graph::Shape;
using kernel::Op;

namespace {

using Tuple = std::vector<kernel::ValueId>;

class Scan {
 public:
  Scan(const program::ScanPlan& plan, const EmitQuery& query, kernel::Builder& b, BodyEmitter& emitter)
      : plan_(plan),
        body_(query.body),
        b_(b),
        emitter_(emitter),
        space_(scanSpace(body_)),
        node_(body_[space_.node]),
        combine_(std::get<ScanLowering>(*node_.op->lower).combine(body_, node_)),
        reverse_(std::get<ScanLowering>(*node_.op->lower).reverse(node_)),
        along_(space_.inner == 1 ? plan.vector : 1),
        across_(plan.vector / along_),
        part_(divideUp(space_.length, plan.lanes_per_line * along_) * along_),
        entry_(beginEntry(b, query, static_cast<uint32_t>(plan.lanes))) {}

  void emit() {
    const int64_t shared = plan_.lanes_per_line;
    const kernel::ValueId lane = shared == 1 ? u32(0) : b_.make(Op::Rem, {entry_.lane, u32(shared)});
    const kernel::ValueId in_group = shared == 1 ? entry_.lane : b_.make(Op::Div, {entry_.lane, u32(shared)});
    const kernel::ValueId place = add(b_.make(Op::Mul, {entry_.group, u32(plan_.lanes / shared)}), in_group);
    const kernel::ValueId valid = b_.make(Op::Lt, {place, u32(space_.outer * space_.inner / across_)});
    lines_ = across_ == 1 ? std::vector{place} : emitter_.neighbours(place, across_, across_);
    makeVariables();
    const kernel::ValueId begin = b_.make(Op::Mul, {lane, u32(part_)});
    // The last parts may be shorter, or empty. A count, not an end: its bound, and so that of the rounds, is plain to see.
    kernel::ValueId count = u32(part_);
    if (part_ * shared != space_.length) {
      const kernel::ValueId left = b_.make(Op::Sub, {b_.make(Op::Max, {begin, u32(space_.length)}), begin});
      count = b_.make(Op::Min, {left, u32(part_)});
    }
    // Barriers must be reached by all, so surplus lines only skip the work between them.
    if (space_.is_total || shared > 1) b_.ifThen(valid, [&] { walk(begin, count, false); });
    if (!space_.is_total) {
      if (shared > 1) startFromParts(lane);
      b_.ifThen(valid, [&] { walk(begin, count, true); });
    } else if (shared == 1) {
      b_.ifThen(valid, [&] { storeTotals(); });
    } else {
      const kernel::ValueId is_first = b_.make(Op::Eq, {lane, u32(0)});
      combineParts(lane);
      b_.ifThen(b_.make(Op::And, {valid, is_first}), [&] { storeTotals(); });
    }
  }

 private:
  kernel::ValueId u32(int64_t value) { return b_.u32(static_cast<uint32_t>(value)); }
  kernel::ValueId add(kernel::ValueId x, kernel::ValueId y) { return b_.make(Op::Add, {x, y}); }
  [[nodiscard]] Shape lines() const { return Shape{space_.outer, space_.length, space_.inner}; }
  /// The space of the results.
  [[nodiscard]] Shape stored() const { return space_.is_total ? Shape{space_.outer, space_.inner} : lines(); }
  PositionId operandIn(const Shape& shape, PositionId position) {
    return emitter_.through(graph::reshapeMap(lines(), shape), shape, position);
  }
  PositionId resultIn(const Shape& shape, PositionId position) {
    return emitter_.through(graph::reshapeMap(stored(), shape), shape, position);
  }

  /// Element `n` of a line, counted from the end when the scan is reversed.
  PositionId elementAt(kernel::ValueId line, kernel::ValueId n) {
    if (reverse_) n = b_.make(Op::Sub, {u32(space_.length - 1), n});
    const PositionId place = emitter_.flat(Shape{space_.outer, space_.inner}, line);
    return emitter_.atAxes(lines(), {emitter_.axis(place, 0), n, emitter_.axis(place, 1)});
  }

  /// The elements of a round, in the order in which they are combined: element `n` of each line, or those from `n` on of the one line.
  std::vector<PositionId> elementsAt(kernel::ValueId n) {
    std::vector<PositionId> elements;
    if (along_ == 1) {
      for (const kernel::ValueId line : lines_) elements.push_back(elementAt(line, n));
      return elements;
    }
    const int64_t blocks = space_.length / along_;
    kernel::ValueId block = b_.make(Op::Div, {n, u32(along_)});
    if (reverse_) block = b_.make(Op::Sub, {u32(blocks - 1), block});
    const kernel::ValueId place = add(b_.make(Op::Mul, {lines_.front(), u32(blocks)}), block);
    for (const kernel::ValueId number : emitter_.neighbours(place, along_, along_)) elements.push_back(emitter_.flat(lines(), number));
    if (reverse_) std::ranges::reverse(elements);
    return elements;
  }

  /// Combines `count` elements of each line from `begin` on, and stores every prefix when asked to.
  void walk(kernel::ValueId begin, kernel::ValueId count, bool stores) {
    forRange(b_, u32(0), count, along_, plan_.unroll, "i", [&](kernel::ValueId i) {
      emitter_.pushScope();
      const std::vector<PositionId> elements = elementsAt(plan_.lanes_per_line == 1 ? i : add(begin, i));
      std::vector<std::vector<kernel::ValueId>> prefixes(body_.outputs.size());
      for (size_t e = 0; e < elements.size(); ++e) {
        Tuple element;
        for (const graph::ValueId operand : node_.operands)
          element.push_back(emitter_.value(operand, operandIn(body_.shapeOf(operand), elements[e])));
        // The lines of an invocation begin together, and along one line each element follows another.
        const bool is_last_of_round = across_ == 1 || e + 1 == elements.size();
        const Tuple prefix = append(sums_[e % sums_.size()], element, is_last_of_round);
        if (stores) collect(prefix, elements[e], prefixes);
      }
      if (stores) store(elements, prefixes);
      emitter_.popScope();
    });
  }

  /// Adds what the body's outputs are for the results of the scan at one position.
  void collect(const Tuple& results, PositionId position, std::vector<std::vector<kernel::ValueId>>& outputs) {
    emitter_.pushScope();
    for (size_t i = 0; i < results.size(); ++i) emitter_.define(node_.results[i], results[i]);
    for (size_t output = 0; output < outputs.size(); ++output) {
      const graph::ValueId value = body_.outputs[output].value;
      outputs[output].push_back(emitter_.value(value, resultIn(body_.shapeOf(value), position)));
    }
    emitter_.popScope();
  }

  /// What the variables of each line hold.
  void storeTotals() {
    emitter_.pushScope();
    std::vector<std::vector<kernel::ValueId>> totals(body_.outputs.size());
    std::vector<PositionId> positions;
    for (size_t line = 0; line < lines_.size(); ++line) {
      Tuple total;
      for (const kernel::ValueId sum : sums_[line]) total.push_back(b_.load(sum));
      positions.push_back(emitter_.flat(stored(), lines_[line]));
      collect(total, positions.back(), totals);
    }
    store(positions, totals);
    emitter_.popScope();
  }

  void store(const std::vector<PositionId>& elements, std::vector<std::vector<kernel::ValueId>>& prefixes) {
    const bool is_backwards = along_ > 1 && reverse_;
    for (size_t output = 0; output < prefixes.size(); ++output) {
      if (is_backwards) std::ranges::reverse(prefixes[output]);
      const PositionId first = resultIn(body_.shapeOf(body_.outputs[output].value), is_backwards ? elements.back() : elements.front());
      emitter_.storeFrom(output, emitter_.linear(first), prefixes[output]);
    }
  }

  /// The values that a line begins with, and a variable for each.
  void makeVariables() {
    const auto& scan = std::get<ScanLowering>(*node_.op->lower);
    std::vector<double> identity(node_.operands.size(), 0.0);
    if (scan.identity != nullptr) {
      identity = scan.identity(node_);
    } else {
      begun_ = b_.var(b_.types().boolean(), "begun", b_.boolean(false));
    }
    for (size_t i = 0; i < identity.size(); ++i)
      start_.push_back(graph::kernelConstant(b_, body_.typeOf(node_.operands[i]).dtype, identity[i]));
    for (int64_t line = 0; line < across_; ++line) {
      Tuple& sums = sums_.emplace_back();
      for (const kernel::ValueId start : start_) sums.push_back(b_.var(b_.typeIdOf(start), "prefix", start));
    }
  }

  /// What is in the variables of a line, combined with a later tuple; they then hold it. `begins`: no line takes its first one after this.
  Tuple append(const Tuple& sums, const Tuple& later, bool begins) {
    Tuple inputs;
    for (const kernel::ValueId sum : sums) inputs.push_back(b_.load(sum));
    inputs.insert(inputs.end(), later.begin(), later.end());
    Tuple prefix = emitScalars(b_, combine_, inputs);
    if (begun_.valid()) {
      const kernel::ValueId begun = b_.load(begun_);
      for (size_t i = 0; i < prefix.size(); ++i) prefix[i] = b_.make(Op::Select, {later[i], prefix[i], begun});
      if (begins) b_.store(begun_, b_.boolean(true));
    }
    for (size_t i = 0; i < sums.size(); ++i) b_.store(sums[i], prefix[i]);
    return prefix;
  }

  /// What the lanes have of each line, in workgroup memory.
  std::vector<Tuple> shareParts() {
    std::vector<Tuple> parts;
    for (const Tuple& sums : sums_) {
      Tuple& arrays = parts.emplace_back();
      for (size_t i = 0; i < sums.size(); ++i) {
        arrays.push_back(workgroupArray(b_, "parts", b_.typeIdOf(start_[i]), plan_.lanes));
        b_.store(b_.access(arrays[i], {entry_.lane}, true), b_.load(sums[i]));
      }
    }
    b_.makeVoid(Op::WorkgroupBarrier);
    return parts;
  }

  Tuple loadPart(const Tuple& arrays, kernel::ValueId lane) {
    Tuple part;
    for (const kernel::ValueId array : arrays) part.push_back(b_.load(b_.access(array, {lane}, true)));
    return part;
  }

  /// All parts of a line, into the variables of its first lane. Those that are empty are the last ones.
  void combineParts(kernel::ValueId lane) {
    const int64_t shared = plan_.lanes_per_line, filled = divideUp(space_.length, part_);
    const std::vector<Tuple> parts = shareParts();
    b_.forRange(u32(0), u32(std::bit_width(static_cast<uint64_t>(shared)) - 1), u32(1), "doubling", [&](kernel::ValueId doubling) {
      const kernel::ValueId distance = b_.make(Op::Shl, {u32(1), doubling});
      const kernel::ValueId among = b_.make(Op::And, {lane, b_.make(Op::Sub, {add(distance, distance), u32(1)})});
      kernel::ValueId takes = b_.make(Op::Eq, {among, u32(0)});
      if (filled < shared) takes = b_.make(Op::And, {takes, b_.make(Op::Lt, {add(lane, distance), u32(filled)})});
      b_.ifThen(takes, [&] {
        for (const Tuple& arrays : parts) {
          Tuple inputs = loadPart(arrays, entry_.lane);
          const Tuple later = loadPart(arrays, add(entry_.lane, distance));
          inputs.insert(inputs.end(), later.begin(), later.end());
          const Tuple combined = emitScalars(b_, combine_, inputs);
          for (size_t i = 0; i < arrays.size(); ++i) b_.store(b_.access(arrays[i], {entry_.lane}, true), combined[i]);
        }
      });
      b_.makeVoid(Op::WorkgroupBarrier);
    });
    for (size_t line = 0; line < sums_.size(); ++line) {
      const Tuple total = loadPart(parts[line], entry_.lane);
      for (size_t i = 0; i < total.size(); ++i) b_.store(sums_[line][i], total[i]);
    }
  }

  /// The parts of a line that come before that of the lane. Where one of them is empty, that of the lane is empty, too.
  void startFromParts(kernel::ValueId lane) {
    const std::vector<Tuple> parts = shareParts();
    for (const Tuple& sums : sums_) {
      for (size_t i = 0; i < sums.size(); ++i) b_.store(sums[i], start_[i]);
    }
    if (begun_.valid()) b_.store(begun_, b_.boolean(false));
    const kernel::ValueId first = b_.make(Op::Sub, {entry_.lane, lane});
    b_.forRange(first, entry_.lane, u32(1), "before", [&](kernel::ValueId before) {
      for (size_t line = 0; line < sums_.size(); ++line) append(sums_[line], loadPart(parts[line], before), line + 1 == sums_.size());
    });
  }

  const program::ScanPlan& plan_;
  const graph::Graph& body_;
  kernel::Builder& b_;
  BodyEmitter& emitter_;
  const ScanSpace space_;
  const graph::Node& node_;
  const graph::Graph combine_;
  const bool reverse_;
  const int64_t along_, across_;  // neighbours of one line, or lines
  const int64_t part_;            // elements of a line that a lane has
  const Entry entry_;
  std::vector<kernel::ValueId> lines_;  // their numbers
  Tuple start_;                         // values
  std::vector<Tuple> sums_;             // variables, of each line
  kernel::ValueId begun_;               // a variable; invalid where there is an identity
};

}  // namespace

Result<kernel::Module> emitKernel(const program::ScanPlan& plan, const EmitQuery& query) {
  const ScanSpace space = scanSpace(query.body);
  if ((space.inner == 1 ? space.length : space.inner) % plan.vector != 0) {
    return fail("program.plan",
                fmt::format("a scan of {} x {} x {} has no vectors of {}", space.outer, space.length, space.inner, plan.vector), {},
                "take a divisor of the contiguous axis, or leave out 'vector'");
  }
  return withVectors(query, plan.vector, [&](kernel::Builder& b, BodyEmitter& emitter) { Scan(plan, query, b, emitter).emit(); });
}

}  // namespace lockstep::passes
