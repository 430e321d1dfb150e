// SPDX-License-Identifier: Apache-2.0
// Plans of reductions over rows: rows that stay in registers where they fit there, else loops over memory.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "passes/cost.h"
#include "passes/emit/lane_reduction.h"
#include "passes/fuse/views.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/row_inputs.h"
#include "passes/schedule/row_phases.h"
#include "passes/schedule/vector_width.h"

namespace lockstep::passes {

using namespace graph;
using program::ExecutionStyle;
using program::HeldRowsPlan;
using program::RowsPlan;

namespace {

/// What a query asks about: it is found once, and many plans are tried.
struct QueriedRows : RowPhases {
  explicit QueriedRows(const Graph& body) : RowPhases(findRowPhases(body)), inputs(findRowInputs(body, *this)) {}
  RowInputs inputs;
};

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
bool wholeSubgroups(const PlanQuery& q, const RowPhases& phases, const HeldRowsPlan& plan) {
  if (!q.profile.fixed_subgroups || plan.lanes == 1 || plan.lanes * plan.rows_per_group % q.profile.subgroup_size != 0) return false;
  return std::ranges::all_of(phases.phases, [&](const std::vector<NodeId>& phase) {
    return std::ranges::all_of(phase, [&](NodeId id) { return q.body.typeOf(q.body[id].results[0]).dtype != DType::Bool; });
  });
}

/// Elements of a row in one register of a GPU. Where nothing of a row is needed after its reductions, packed elements stay packed until
/// they are added up.
int64_t elementsPerRegister(const PlanQuery& q, const QueriedRows& phases) {
  if (q.profile.style == ExecutionStyle::Cpu || !phases.areReadOnce()) return 1;
  return phases.inputs.per_register;
}

/// Whether registers, workgroup memory and the text of the kernel have room for rows that are held so.
bool hasRoom(const PlanQuery& q, const QueriedRows& phases, const HeldRowsPlan& plan) {
  const int64_t elements = plan.per_lane * plan.width, per_lane = elements / elementsPerRegister(q, phases);
  const int64_t inputs = std::max<int64_t>(phases.inputs.full, 1) + std::ssize(phases.parts);
  if (per_lane > cost::kMostHeld || per_lane * plan.rows_per_lane * inputs > cost::kMostHeldOfInputs) return false;
  if (elements * plan.rows_per_lane * phases.operationsPerElement(q.body) > cost::kMostHeldText || plan.rounds > plannedRounds(q.profile))
    return false;
  size_t reductions = 0;
  for (const std::vector<NodeId>& phase : phases.phases) reductions = std::max(reductions, phase.size());
  reductions *= static_cast<size_t>(plan.rows_per_lane);
  const LaneReduction::Shape shape{plan.lanes, plan.rows_per_group, plan.subgroup};
  const int64_t results = plan.rows_per_group * std::ssize(phases.row_results);  // those that are packed come together
  return (LaneReduction::words(shape, static_cast<int64_t>(reductions)) + results) * 4 <= q.profile.max_workgroup_bytes;
}

PlanChoice planned(const PlanQuery& q, const RowPhases& phases, const HeldRowsPlan& plan) {
  return {plan, splitGroups(divideUp(phases.rows, plan.rows_per_group * plan.rounds * plan.rows_per_lane), q.profile)};
}

PlanChoice planned(const PlanQuery& q, const RowPhases& phases, const RowsPlan& plan) {
  return {plan, splitGroups(divideUp(phases.rows, plan.rows_per_group), q.profile)};
}

/// About as many rows as `wanted`: no more than there are, and whole words of packed results.
int64_t rowsPerGroup(const RowPhases& phases, int64_t wanted, int64_t row_words) {
  return std::max({std::min(wanted, largestPowerOfTwo(phases.rows)), row_words, int64_t{1}});
}

/// Whether rows read something in common that is as long as each of them, as what a matrix is multiplied by.
bool shareInput(const PlanQuery& q, const RowPhases& phases) {
  return std::ranges::any_of(inputsOf(q.body), [&](ValueId input) { return q.body.shapeOf(input).elementCount() == phases.columns; });
}

/// Rows that the same lanes have at once: as many as leave workgroups for all units, where rows read something in common. It is loaded once
/// for all of them.
int64_t rowsPerLane(const PlanQuery& q, const QueriedRows& phases, HeldRowsPlan plan) {
  if (!shareInput(q, phases)) return 1;
  const int64_t most = phases.mostTogether(q.body);
  const int64_t registers = plan.per_lane * plan.width / elementsPerRegister(q, phases) * std::max<int64_t>(phases.inputs.full, 1);
  // Beyond the registers of a short row, two rows take as many as two inputs.
  const auto is_better = [&](int64_t several) {
    plan.rows_per_lane = several;
    const int64_t groups = several == 2 ? cost::kGroupsPerUnit : cost::kGroupsOfManyRowsPerUnit;
    return phases.rows / (plan.rows_per_group * several) >= groups * int64_t{q.profile.parallel_units} &&
           several * registers <= (several == 2 ? cost::kMostHeldOfInputs : cost::kMostHeld) && hasRoom(q, phases, plan);
  };
  int64_t several = 1;
  while (several < most && is_better(2 * several)) several *= 2;
  return several;
}

/// CPU drivers: as few lanes per row as can hold it, since they have to wait for one another.
std::optional<PlanChoice> holdRowsOnCpu(const PlanQuery& q, const QueriedRows& phases) {
  const int64_t words = phases.wordElements(q.body), row_words = phases.rowWordElements(q.body);
  const int64_t most_lanes = std::min(largestPowerOfTwo(mostInvocations(q.profile)) / row_words, cost::kMostHeldLanes);
  const int64_t invocations = phases.rows * phases.columns >= cost::kManyElementsCpu ? cost::kFullWorkgroup : cost::kRowLanesCpu;
  for (const int64_t width : {cost::kMostVectorElements, cost::kVectorElements, int64_t{2}, int64_t{1}}) {
    if (phases.columns % width != 0 || width % words != 0) continue;
    for (HeldRowsPlan plan{.width = width}; plan.lanes <= most_lanes && plan.lanes < 2 * phases.columns / width; plan.lanes *= 2) {
      plan.per_lane = divideUp(phases.columns / width, plan.lanes);
      plan.rows_per_group = rowsPerGroup(phases, invocations / plan.lanes, row_words);
      plan.subgroup = wholeSubgroups(q, phases, plan) ? q.profile.subgroup_size : 1;
      if (hasRoom(q, phases, plan)) return planned(q, phases, plan);
    }
  }
  return std::nullopt;
}

/// Lanes of a row and rows of a workgroup, for lanes that have `wanted` elements of a row if `most_lanes` are as many.
HeldRowsPlan sharedOut(const PlanQuery& q, const QueriedRows& phases, int64_t width, int64_t wanted, int64_t most_lanes) {
  HeldRowsPlan plan{.width = width};
  const int64_t places = phases.columns / width, row_words = phases.rowWordElements(q.body);
  const auto perLane = [&](int64_t lanes) { return divideUp(places, lanes); };
  while (plan.lanes < most_lanes && plan.lanes * wanted < phases.columns) plan.lanes *= 2;
  // Lanes with nothing at the end of a row would still wait for it; and where words of results need several rows, each has fewer lanes.
  const auto wastes = [&] { return 4 * places < 3 * plan.lanes * perLane(plan.lanes); };
  const auto crowds = [&] { return row_words > 1 && plan.lanes * row_words > cost::kRowLanesGpu; };
  const auto fits = [&](int64_t lanes) { return perLane(lanes) * width <= cost::kMostHeld; };
  if (elementsPerRegister(q, phases) > 1) {
    while (plan.lanes > 1 && (wastes() || crowds()) && fits(plan.lanes / 2)) plan.lanes /= 2;
  }
  plan.per_lane = perLane(plan.lanes);
  plan.rows_per_group = phases.parts.empty() ? rowsPerGroup(phases, cost::kRowLanesGpu / plan.lanes, row_words) : 1;
  if (!phases.parts.empty()) plan.rounds = phases.parts.front().rounds;
  if (wholeSubgroups(q, phases, plan)) plan.subgroup = q.profile.subgroup_size;
  plan.rows_per_lane = rowsPerLane(q, phases, plan);
  return plan;
}

/// Rows that stay in registers where they fit there.
std::optional<PlanChoice> holdRows(const PlanQuery& q, const QueriedRows& phases) {
  const int64_t rows = phases.rows, columns = phases.columns;
  if (columns < cost::kVectorElements || elementRounds(q.body) > 0) return std::nullopt;
  const bool has_sums = !phases.parts.empty();
  if (q.profile.style == ExecutionStyle::Cpu) return has_sums ? std::nullopt : holdRowsOnCpu(q, phases);
  int64_t width = widthOfRows(q, phases);
  // A lone row has a workgroup as large as those of other small kernels, so that it can be merged with them.
  // Vectors have 1, 2, 4 or 8 elements: those of three lie apart in memory.
  const int64_t of_each = columns / cost::kLeastWorkgroup;
  const bool is_lone = rows == 1 && columns % cost::kLeastWorkgroup == 0 && of_each < width && isPowerOfTwo(of_each);
  if (is_lone) width = std::max(of_each, phases.wordElements(q.body));
  const int64_t row_words = phases.rowWordElements(q.body);
  const int64_t most_lanes = std::min(largestPowerOfTwo(mostInvocations(q.profile)) / row_words, cost::kMostHeldLanes);
  const int64_t wanted = has_sums ? std::min(cost::kHeldBesideSums, wantedPerLane(columns)) : wantedPerLane(columns);
  const int64_t per_lane = rows < q.profile.parallel_units ? width : std::max(wanted, width);
  if (elementsPerRegister(q, phases) > 1 && rows * columns >= cost::kLargeMatrix) {
    const HeldRowsPlan few = sharedOut(q, phases, width, per_lane, std::min(most_lanes, cost::kLanesOfLargeMatrix));
    if (hasRoom(q, phases, few)) return planned(q, phases, few);
  }
  const HeldRowsPlan plan = sharedOut(q, phases, width, per_lane, most_lanes);
  return hasRoom(q, phases, plan) ? std::optional(planned(q, phases, plan)) : std::nullopt;
}

int64_t roundsOf(const RowPhases& phases, int64_t inner, int64_t lanes, int64_t unroll) {
  return static_cast<int64_t>(phases.loops()) * loopCost(divideUp(phases.columns, lanes), unroll, inner) + 2 * inner;
}

Failure refuseReduction(const Graph& body, NodeId reduce) {
  const Node& node = body[reduce];
  return fail("schedule.group", "a group of rows sums up columns in a way that no kernel of rows does",
              node.location == 0 ? Location{} : body.locations[node.location - 1], "leave the joining of groups to the pass 'joinColumns'");
}

/// A table's plan for these rows.
std::optional<PlanChoice> heldChoice(HeldRowsPlan held, const PlanQuery& q, const QueriedRows& phases) {
  if (elementRounds(q.body) > 0 || !isPowerOfTwo(held.lanes) || !isPowerOfTwo(held.width)) return std::nullopt;
  const int64_t lanes = held.lanes, width = held.width;
  if (phases.columns % width != 0 || width % phases.wordElements(q.body) != 0) return std::nullopt;
  held.per_lane = divideUp(phases.columns / width, lanes);  // of this row, which may be shorter than the one that was measured
  held.rounds = phases.parts.empty() ? 1 : phases.parts.front().rounds;
  const bool has_lanes =
      held.rows_per_group >= 1 && lanes <= cost::kMostHeldLanes && lanes * held.rows_per_group <= mostInvocations(q.profile);
  const bool has_subgroups = held.subgroup == 1 || (held.subgroup == q.profile.subgroup_size && wholeSubgroups(q, phases, held));
  const bool has_rows = held.rows_per_lane <= phases.mostTogether(q.body);
  const bool fits =
      has_lanes && has_subgroups && has_rows && (phases.parts.empty() || held.rows_per_group == 1) && hasRoom(q, phases, held);
  return fits ? std::optional(planned(q, phases, held)) : std::nullopt;
}

}  // namespace

Result<PlanChoice> chooseRows(const PlanQuery& q) {
  const QueriedRows phases(q.body);
  if (phases.misplaced) return refuseReduction(q.body, *phases.misplaced);
  if (const auto held = holdRows(q, phases)) return *held;
  if (!phases.parts.empty()) return refuseReduction(q.body, phases.parts.front().node);
  const int64_t rows = phases.rows, columns = phases.columns, inner = elementRounds(q.body);
  int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
  // Loops over memory. A row is shared by `lanes` invocations; on CPU drivers barriers are expensive, so a row has one invocation unless
  // there are few long rows.
  int64_t lanes = 1;
  bool few_long_rows = rows < cost::kGroupsPerUnit * q.profile.parallel_units && columns >= cost::kLongRow;
  if (q.profile.style == ExecutionStyle::Gpu || few_long_rows)
    lanes = std::clamp<int64_t>(largestPowerOfTwo(std::max<int64_t>(columns / 2, 1)), 1, few_long_rows ? invocations : cost::kLanesPerRow);
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((roundsOf(phases, inner, lanes, 1) > plannedRounds(q.profile) || divideUp(columns, lanes) > kLongestSum) && lanes < most_lanes)
    lanes *= 2;
  int64_t rows_per_group = std::max<int64_t>(1, (q.profile.style == ExecutionStyle::Gpu ? cost::kRowLanesGpu : cost::kRowLanesCpu) / lanes);
  rows_per_group = std::min(rows_per_group, largestPowerOfTwo(std::max<int64_t>(1, rows)));
  RowsPlan chosen{.lanes = lanes, .rows_per_group = rows_per_group};
  LS_TRY(chosen.unroll, chooseUnroll(q, [&](int64_t unroll) { return roundsOf(phases, inner, lanes, unroll); }));
  return planned(q, phases, chosen);
}

std::string rowsSizes(const PlanQuery& q) {
  const QueriedRows phases(q.body);
  // The words of packed results with one element per row belong to whoever packStores and splitDispatches took for granted: an estimate.
  if (phases.misplaced || phases.rowWordElements(q.body) > 1) return {};
  return fmt::format("{}x{}{}", roundedUp(phases.rows), roundedUp(phases.columns), phases.parts.empty() ? "" : " with sums");
}

std::optional<PlanChoice> rowsChoice(const program::Plan& plan, const PlanQuery& q) {
  const QueriedRows phases(q.body);
  if (const auto* loops = std::get_if<RowsPlan>(&plan)) {
    const bool fits = phases.parts.empty() && isPowerOfTwo(loops->lanes) && loops->rows_per_group >= 1 && loops->unroll >= 1 &&
                      loops->unroll <= kMostUnroll &&
                      (loops->unroll == 1 || loops->unroll * std::ssize(q.body.nodes) <= cost::kMostHeldText) &&
                      loops->lanes * loops->rows_per_group <= mostInvocations(q.profile) &&
                      4 * loops->lanes * loops->rows_per_group * kReducedTypes <= q.profile.max_workgroup_bytes &&
                      roundsOf(phases, elementRounds(q.body), loops->lanes, loops->unroll) <= plannedRounds(q.profile) &&
                      divideUp(phases.columns, loops->lanes) <= kLongestSum;
    return fits ? std::optional(planned(q, phases, *loops)) : std::nullopt;
  }
  const auto* held = std::get_if<HeldRowsPlan>(&plan);
  return held == nullptr ? std::nullopt : heldChoice(*held, q, phases);
}

std::vector<program::Plan> rowsCandidates(const PlanQuery& q) {
  const QueriedRows phases(q.body);
  std::vector<program::Plan> loops, plans;
  const auto offer = [&](int64_t lanes, int64_t rows_per_group) {
    for (const int64_t unroll : {1, 4}) loops.emplace_back(RowsPlan{.lanes = lanes, .rows_per_group = rows_per_group, .unroll = unroll});
    for (const int64_t width : {1, 2, 4, 8}) {
      HeldRowsPlan held{.lanes = lanes, .rows_per_group = rows_per_group, .width = width};
      if (lanes >= 2 * divideUp(phases.columns, width)) continue;
      held.per_lane = divideUp(phases.columns / width, lanes);
      held.rounds = phases.parts.empty() ? 1 : phases.parts.front().rounds;
      if (wholeSubgroups(q, phases, held)) held.subgroup = q.profile.subgroup_size;
      const int64_t most = shareInput(q, phases) ? phases.mostTogether(q.body) : 1;
      for (; held.rows_per_lane <= most; held.rows_per_lane *= 2) {
        if (heldChoice(held, q, phases)) plans.emplace_back(held);
      }
    }
  };
  for (int64_t lanes = 1; lanes < 2 * phases.columns && lanes <= cost::kMostHeldLanes; lanes *= 2) {
    if (lanes >= cost::kMeasuredWorkgroups.front() || !phases.parts.empty()) offer(lanes, 1);
    for (const int64_t invocations : cost::kMeasuredWorkgroups) {
      const int64_t rows_per_group = invocations / lanes;
      if (rows_per_group > 1 && rows_per_group < 2 * phases.rows && phases.parts.empty()) offer(lanes, rows_per_group);
    }
  }
  return plans.empty() ? loops : plans;  // where rows can be held, loops that read them several times are slower
}

}  // namespace lockstep::passes
