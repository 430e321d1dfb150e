// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/choose_plan.h"

#include <algorithm>
#include <optional>

#include "passes/cost.h"
#include "passes/emit/lane_reduction.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/row_phases.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;
using program::ExecutionStyle;

std::array<uint32_t, 3> splitGroups(int64_t groups, const DeviceProfile& profile) {
  const int64_t limit = profile.max_groups_per_dimension;
  if (groups <= limit) return {static_cast<uint32_t>(groups), 1, 1};
  return {static_cast<uint32_t>(limit), static_cast<uint32_t>(divideUp(groups, limit)), 1};
}

namespace {

/// Elements side by side that are kVectorBytes of every tensor with at least `elements` elements that the body reads or makes; of the
/// widest type where these differ.
int64_t vectorElements(const PlanQuery& q, int64_t elements) {
  int64_t bytes = 1;
  const auto look = [&](ValueId value) {
    if (q.body.shapeOf(value).elementCount() >= elements)
      bytes = std::max(bytes, static_cast<int64_t>(byteSize(q.body.typeOf(value).dtype)));
  };
  for (const ValueId input : inputsOf(q.body)) look(input);
  for (const Output& output : q.body.outputs) look(output.value);
  return std::min(cost::kVectorBytes / bytes, cost::kMostVectorElements);
}

/// Whether invocations of a map take `width` elements side by side, because all of them can be loaded and stored at once.
bool takesVectors(const PlanQuery& q, int64_t elements, int64_t width) {
  const bool fills_units = elements >= width * cost::kLeastWorkgroup * q.profile.parallel_units;
  return q.profile.style == ExecutionStyle::Gpu && fills_units && elements % width == 0 && q.body.nodes.size() <= cost::kVectorBody &&
         elementRounds(q.body) == 0 && readsNeighbours(q.body, width);
}

}  // namespace

Result<PlanChoice> chooseMap(const PlanQuery& q) {
  int64_t elements = 1;
  for (const Output& output : q.body.outputs) elements = std::max(elements, q.body.shapeOf(output.value).elementCount());
  int64_t width = 1;
  for (const Output& output : q.body.outputs) width = std::max(width, elementsPerWord(q.body.typeOf(output.value).dtype));
  if (const int64_t vector = vectorElements(q, elements); takesVectors(q, elements, vector)) width = std::max(width, vector);
  // Enough workgroups for every unit before they grow to their full size.
  int64_t lanes = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
  while (lanes > cost::kLeastWorkgroup && elements / width / lanes < q.profile.parallel_units) lanes /= 2;
  const bool is_long = elements >= cost::kManyElements && q.profile.style == ExecutionStyle::Gpu;
  if (width > 1) {
    if (is_long) lanes = std::min(largestPowerOfTwo(mostInvocations(q.profile)), cost::kVectorWorkgroup);
    return PlanChoice{program::VectorPlan{.lanes = lanes, .width = width}, splitGroups(divideUp(elements, lanes * width), q.profile)};
  }
  if (!is_long || q.body.nodes.size() > cost::kShortBody || elementRounds(q.body) > 0)
    return PlanChoice{program::MapPlan{.lanes = lanes}, splitGroups(divideUp(elements, lanes), q.profile)};
  const program::StripsPlan strips{.lanes = lanes, .per_lane = cost::kElementsPerLane};
  return PlanChoice{strips, splitGroups(divideUp(elements, strips.lanes * strips.per_lane), q.profile)};
}

namespace {

/// Elements of a row that an invocation has at least, so that loads overlap and few lanes are combined.
int64_t wantedPerLane(int64_t columns) {
  const auto fits = [&](const cost::HeldElements& step) { return columns >= step.columns; };
  return std::ranges::find_if(cost::kHeldElements, fits)->elements;
}

/// Elements of a row that are loaded at once. Vectors of packed elements are longer, and leave short rows with few lanes.
int64_t widthOfRows(const PlanQuery& q, const RowPhases& phases) {
  const int64_t vector = vectorElements(q, phases.rows * phases.columns);
  for (const int64_t width : {vector, cost::kVectorElements}) {
    if (phases.columns % width == 0 && wantedPerLane(phases.columns) >= width) return width;
  }
  return phases.wordElements(q.body);
}

/// Whether the lanes of a row can exchange what they have without workgroup memory.
bool wholeSubgroups(const PlanQuery& q, const RowPhases& phases, const program::HeldRowsPlan& plan) {
  if (!q.profile.fixed_subgroups || plan.lanes == 1 || plan.lanes * plan.rows_per_group % q.profile.subgroup_size != 0) return false;
  return std::ranges::all_of(phases.phases, [&](const std::vector<NodeId>& phase) {
    return std::ranges::all_of(phase, [&](NodeId id) { return q.body.typeOf(q.body[id].results[0]).dtype != DType::Bool; });
  });
}

/// Rows that stay in registers, on GPUs where they fit.
std::optional<PlanChoice> holdRows(const PlanQuery& q, const RowPhases& phases) {
  const int64_t rows = phases.rows, columns = phases.columns;
  if (q.profile.style != ExecutionStyle::Gpu || columns < cost::kVectorElements || elementRounds(q.body) > 0) return std::nullopt;
  program::HeldRowsPlan plan{.width = widthOfRows(q, phases)};
  const int64_t places = columns / plan.width, row_words = phases.rowWordElements(q.body);
  const int64_t most_lanes = std::min(largestPowerOfTwo(mostInvocations(q.profile)) / row_words, cost::kMostHeldLanes);
  const bool has_sums = !phases.parts.empty();
  const int64_t wanted = has_sums ? std::min(cost::kHeldBesideSums, wantedPerLane(columns)) : wantedPerLane(columns);
  int64_t per_lane = rows < q.profile.parallel_units ? plan.width : std::max(wanted, plan.width);
  while (plan.lanes < most_lanes && plan.lanes * per_lane < columns) plan.lanes *= 2;
  plan.per_lane = divideUp(places, plan.lanes);
  per_lane = plan.per_lane * plan.width;
  const auto isFull = [&](ValueId input) { return q.body.shapeOf(input).elementCount() == rows * columns; };
  const auto sums = static_cast<int64_t>(phases.parts.size());
  const auto inputs = std::max<int64_t>(std::ranges::count_if(inputsOf(q.body), isFull), 1) + sums;
  if (per_lane > cost::kMostHeld || per_lane * inputs > cost::kMostHeldOfInputs) return std::nullopt;
  if (per_lane * static_cast<int64_t>(q.body.nodes.size()) > cost::kMostHeldText) return std::nullopt;
  plan.rows_per_group = has_sums ? 1 : std::min(std::max<int64_t>(cost::kRowLanesGpu / plan.lanes, row_words), largestPowerOfTwo(rows));
  if (has_sums) plan.rounds = phases.parts.front().rounds;
  if (plan.rounds > plannedRounds(q.profile)) return std::nullopt;
  size_t reductions = 0;
  for (const std::vector<NodeId>& phase : phases.phases) reductions = std::max(reductions, phase.size());
  if (wholeSubgroups(q, phases, plan)) plan.subgroup = q.profile.subgroup_size;
  const LaneReduction::Shape shape{plan.lanes, plan.rows_per_group, plan.subgroup};
  const int64_t results = plan.rows_per_group * static_cast<int64_t>(phases.row_results.size());  // those that are packed come together
  if ((LaneReduction::words(shape, static_cast<int64_t>(reductions)) + results) * 4 > q.profile.max_workgroup_bytes) return std::nullopt;
  return PlanChoice{plan, splitGroups(divideUp(rows, plan.rows_per_group * plan.rounds), q.profile)};
}

Failure refuseReduction(const Graph& body, NodeId reduce) {
  const Node& node = body[reduce];
  return fail("schedule.group", "a group of rows sums up columns in a way that no kernel of rows does",
              node.location == 0 ? Location{} : body.locations[node.location - 1], "leave the joining of groups to the pass 'joinColumns'");
}

}  // namespace

Result<PlanChoice> chooseRows(const PlanQuery& q) {
  const RowPhases plan = findRowPhases(q.body);
  if (plan.misplaced) return refuseReduction(q.body, *plan.misplaced);
  if (const auto held = holdRows(q, plan)) return *held;
  if (!plan.parts.empty()) return refuseReduction(q.body, plan.parts.front().node);
  const int64_t rows = plan.rows, columns = plan.columns;
  int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
  // A row is shared by `lanes` invocations; on CPU drivers barriers are expensive, so a row has one invocation unless there are few long
  // rows.
  int64_t lanes = 1;
  bool few_long_rows = rows < cost::kGroupsPerUnit * q.profile.parallel_units && columns >= cost::kLongRow;
  if (q.profile.style == ExecutionStyle::Gpu || few_long_rows)
    lanes = std::clamp<int64_t>(largestPowerOfTwo(std::max<int64_t>(columns / 2, 1)), 1, few_long_rows ? invocations : cost::kLanesPerRow);
  const int64_t inner = elementRounds(q.body);
  auto rounds = [&](int64_t unroll) {
    return static_cast<int64_t>(plan.loops()) * loopCost(divideUp(columns, lanes), unroll, inner) + 2 * inner;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((rounds(1) > plannedRounds(q.profile) || divideUp(columns, lanes) > kLongestSum) && lanes < most_lanes) lanes *= 2;
  int64_t rows_per_group = std::max<int64_t>(1, (q.profile.style == ExecutionStyle::Gpu ? cost::kRowLanesGpu : cost::kRowLanesCpu) / lanes);
  rows_per_group = std::min(rows_per_group, largestPowerOfTwo(std::max<int64_t>(1, rows)));
  program::RowsPlan chosen{.lanes = lanes, .rows_per_group = rows_per_group};
  LS_TRY(chosen.unroll, chooseUnroll(q, rounds));
  return PlanChoice{chosen, splitGroups(divideUp(rows, rows_per_group), q.profile)};
}

namespace {

/// Columns that an invocation sums up side by side: vectors of them where that leaves enough for every unit, else the elements of a word.
int64_t columnsPerLane(const PlanQuery& q, const ReduceSpace& space) {
  const Node& first = q.body[space.node];
  const Shape& shape = q.body.shapeOf(first.operands[0]);
  const auto axes = std::get<ReduceLowering>(*first.op->lower).axes(q.body, first);
  const bool keeps_last = shape.rank() > 0 && !axes.empty() && axes.back() + 1 < static_cast<int64_t>(shape.rank());
  int64_t words = 1;  // elements of the widest words of the results
  for (const Output& output : q.body.outputs) words = std::max(words, elementsPerWord(q.body.typeOf(output.value).dtype));
  if (space.results % words != 0) words = 1;
  if (q.profile.style != ExecutionStyle::Gpu || !keeps_last || elementRounds(q.body) > 0) return words;
  const int64_t vector = vectorElements(q, shape.elementCount()), read = std::max<int64_t>(vector / cost::kVectorElements, 1);
  const auto fills_units = [&](int64_t width) { return space.results >= width * cost::kColumnsGpu * q.profile.parallel_units; };
  for (const int64_t width : {vector, cost::kVectorElements}) {
    if (shape.extents().back() % width == 0 && width >= words && fills_units(width)) return width;
  }
  return std::max(words, shape.extents().back() % read == 0 ? read : 1);
}

}  // namespace

Result<PlanChoice> chooseColumns(const PlanQuery& q) {
  const ReduceSpace space = reduceSpace(q.body);
  const int64_t length = space.length;
  const bool is_gpu = q.profile.style == ExecutionStyle::Gpu;
  program::ColumnsPlan plan{.width = cost::kColumnsCpu};
  plan.vector = columnsPerLane(q, space);
  if (is_gpu) {
    // Workgroups are full however short the columns are: equal ones can be merged.
    int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
    const int64_t side_by_side =
        std::max<int64_t>(plan.vector < cost::kVectorElements ? cost::kColumnsGpu / plan.vector : cost::kColumnsGpu, 1);
    plan.lanes = std::clamp<int64_t>(largestPowerOfTwo(length), 1, invocations / side_by_side);
    plan.width = invocations / plan.lanes;
  }
  const int64_t inner = elementRounds(q.body);
  auto rounds = [&](int64_t unroll) {
    return loopCost(divideUp(length, plan.lanes), unroll, inner) + loopCost(unroll - 1, 1, inner) + 2 * inner;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((rounds(1) > plannedRounds(q.profile) || divideUp(length, plan.lanes) > kLongestSum) && plan.lanes < most_lanes) {
    plan.lanes *= 2;
    while (plan.width * plan.lanes > most_lanes) plan.width /= 2;
  }
  LS_TRY(plan.unroll, chooseUnroll(q, rounds));
  if (is_gpu && inner == 0) plan.unroll = std::max(plan.unroll, std::min(cost::kRowsInFlight, divideUp(length, plan.lanes)));
  return PlanChoice{plan, splitGroups(divideUp(space.results, plan.width * plan.vector), q.profile)};
}

namespace {

/// Neighbours of a contiguous axis that an invocation loads at once, where they leave each of `places` vectors a place: 1 where they do
/// not.
int64_t vectorAlong(const PlanQuery& q, int64_t contiguous, int64_t elements, int64_t places) {
  if (q.profile.style != ExecutionStyle::Gpu || elementRounds(q.body) > 0 || q.body.nodes.size() > cost::kVectorBody) return 1;
  for (const int64_t width : {vectorElements(q, elements), cost::kVectorElements}) {
    if (contiguous % width == 0 && elements / width >= places) return width;
  }
  return 1;
}

}  // namespace

Result<PlanChoice> chooseScan(const PlanQuery& q) {
  ScanSpace space = scanSpace(q.body);
  // Neighbouring lines are neighbouring elements when there is an inner axis; otherwise the lanes of a workgroup share a line.
  int64_t lanes = cost::kLeastWorkgroup, shared = 1;
  if (space.inner < cost::kColumnsGpu) {
    shared = std::clamp<int64_t>(largestPowerOfTwo(divideUp(space.length, cost::kScannedPerLane)), 1, lanes);
  }
  const int64_t inner = elementRounds(q.body), lines = space.outer * space.inner;
  const int64_t vector = vectorAlong(q, space.inner == 1 ? space.length : space.inner, lines * space.length,
                                     space.inner == 1 ? lines * shared : space.length * lanes * q.profile.parallel_units);
  const int64_t along = space.inner == 1 ? vector : 1;
  // Lanes that share a line go over it twice.
  auto rounds = [&](int64_t unroll) {
    int64_t walk = loopCost(divideUp(space.length, shared * along), unroll, inner);
    return shared == 1 ? walk : 2 * walk + lanes + 1;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while (rounds(1) > plannedRounds(q.profile) && shared < most_lanes) {
    shared *= 2;
    lanes = std::max(lanes, shared);
  }
  program::ScanPlan plan{.lanes = lanes, .lanes_per_line = shared, .vector = vector};
  LS_TRY(plan.unroll, chooseUnroll(q, rounds));
  return PlanChoice{plan, splitGroups(divideUp(lines * along / vector, lanes / shared), q.profile)};
}

Result<PlanChoice> chooseScatter(const PlanQuery& q) {
  using program::ScatterPlan;
  const ScatterShape shape = findScatter(q.body).shape;
  // Many rows per segment are added in parts; if the indices are spread evenly, a part has four or more.
  ScatterPlan plan;
  plan.parts = largestPowerOfTwo(std::clamp<int64_t>(shape.length / shape.segments / cost::kScatteredPerPart, 1, cost::kMostParts));
  const int64_t most = cost::kFullWorkgroup * q.profile.parallel_units;
  plan.vector = vectorAlong(q, shape.inner, shape.outer * shape.segments * shape.inner, most);
  const int64_t places = shape.inner / plan.vector, wide = places == 1 ? 1 : 2 * largestPowerOfTwo(divideUp(places, 2));
  plan.lanes = plan.parts > 1 && wide * plan.parts >= 8
                   ? cost::kFullWorkgroup
                   : cost::kLeastWorkgroup;  // the masks grow with the segments that are left for a workgroup
  const auto takeColumns = [&] { plan.columns = std::min(plan.lanes / plan.parts, wide); };
  takeColumns();
  const int64_t inner = elementRounds(q.body);
  const auto rounds = [&](int64_t unroll) {
    const int64_t clear = loopCost(divideUp(plan.segments() * plan.words(), plan.lanes), 1, 0);
    const int64_t mark = loopCost(ScatterPlan::kIndicesPerLane, 1, inner);
    const int64_t add = loopCost(divideUp(plan.words(), plan.parts), 1, loopCost(ScatterPlan::kMaskBits, unroll, inner));
    return loopCost(divideUp(shape.length, plan.chunk()), 1, clear + mark + add) + plan.parts + 1 + inner;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while (rounds(1) > plannedRounds(q.profile)) {
    if (2 * plan.parts <= plan.words()) {  // a part takes whole words of the masks
      plan.parts *= 2;
    } else if (2 * plan.lanes <= most_lanes) {
      plan.lanes *= 2;
    } else {
      break;
    }
    takeColumns();
  }
  LS_TRY(plan.unroll, chooseUnroll(q, rounds));
  return PlanChoice{plan, splitGroups(shape.outer * divideUp(shape.segments, plan.segments()) * divideUp(places, plan.columns), q.profile)};
}

Result<PlanChoice> choosePlan(const PlanQuery& query) {
  if (std::optional<PlanChoice> measured = measuredChoice(query)) return std::move(*measured);
  switch (query.kind) {
    case GroupKind::Map:
      return chooseMap(query);
    case GroupKind::Rows:
      return chooseRows(query);
    case GroupKind::Columns:
      return chooseColumns(query);
    case GroupKind::Scan:
      return chooseScan(query);
    case GroupKind::Scatter:
      return chooseScatter(query);
    case GroupKind::Contract:
      return chooseContract(query);
  }
  internalError("a group has a kind that does not exist");
}

}  // namespace lockstep::passes
