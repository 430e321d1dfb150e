// SPDX-License-Identifier: Apache-2.0
// Plans of reductions over axes that are not the last ones: neighbouring results in a workgroup, and lanes that share each of them.
#include <fmt/format.h>

#include <algorithm>

#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"
#include "passes/schedule/vector_width.h"

namespace lockstep::passes {

using namespace graph;
using program::ColumnsPlan;
using program::ExecutionStyle;

namespace {

/// What is reduced, as the plans need to know it.
struct ColumnSpace : ReduceSpace {
  const Shape& shape;  ///< of the operand
  bool keeps_last;     ///< neighbouring results are neighbours in memory
  int64_t words;       ///< elements of the widest words of the results; 1 where the words cross ends
  int64_t inner;       ///< rounds of loops per element
};

ColumnSpace columnSpace(const PlanQuery& q) {
  const ReduceSpace space = reduceSpace(q.body);
  const Node& first = q.body[space.node];
  const Shape& shape = q.body.shapeOf(first.operands[0]);
  const auto axes = std::get<ReduceLowering>(*first.op->lower).axes(q.body, first);
  const bool keeps_last = shape.rank() > 0 && !axes.empty() && axes.back() + 1 < static_cast<int64_t>(shape.rank());
  const int64_t words = wordElements(q);
  return {space, shape, keeps_last, space.results % words == 0 ? words : 1, elementRounds(q.body)};
}

/// Columns that an invocation sums up side by side: vectors of them where that leaves enough for every unit, else the elements of a word.
int64_t columnsPerLane(const PlanQuery& q, const ColumnSpace& space) {
  if (!space.keeps_last || space.inner > 0) return space.words;
  const int64_t vector = vectorElements(q, space.shape.elementCount()), read = std::max<int64_t>(vector / cost::kVectorElements, 1);
  const auto fills_units = [&](int64_t width) {
    return q.profile.style == ExecutionStyle::Gpu && space.results >= width * cost::kColumnsGpu * q.profile.parallel_units;
  };
  for (const int64_t width : {vector, cost::kVectorElements}) {
    if (space.shape.extents().back() % width == 0 && width >= space.words && fills_units(width)) return width;
  }
  return std::max(space.words, space.shape.extents().back() % read == 0 ? read : 1);
}

int64_t roundsOf(const ColumnSpace& space, int64_t lanes, int64_t unroll) {
  return loopCost(divideUp(space.length, lanes), unroll, space.inner) + loopCost(unroll - 1, 1, space.inner) + 2 * space.inner;
}

int64_t reductionsIn(const graph::Graph& body) {
  return std::ranges::count_if(body.body().nodes,
                               [&](graph::NodeId id) { return std::holds_alternative<ReduceLowering>(*body[id].op->lower); });
}

/// The subgroup's size where lanes of a column are in one, and few values are left of each: they go through workgroup memory at once.
int64_t subgroupOf(const PlanQuery& q, const ColumnsPlan& plan) {
  const int64_t size = q.profile.subgroup_size;
  if (!q.profile.fixed_subgroups || plan.lanes == 1 || !isPowerOfTwo(plan.width) || plan.width * plan.lanes % size != 0) return 1;
  const int64_t values = plan.lanes / std::clamp<int64_t>(size / plan.width, 1, plan.lanes);
  const int64_t bytes = 4 * reductionsIn(q.body) * plan.vector * values * plan.width;
  return values <= cost::kMostValuesPerColumn && bytes <= cost::kColumnBytes && bytes <= q.profile.max_workgroup_bytes ? size : 1;
}

PlanChoice planned(const PlanQuery& q, const ColumnSpace& space, ColumnsPlan plan) {
  plan.subgroup = subgroupOf(q, plan);
  return {plan, splitGroups(divideUp(space.results, plan.width * plan.vector), q.profile)};
}

bool fits(const PlanQuery& q, const ColumnSpace& space, const ColumnsPlan& plan) {
  if (plan.width < 1 || plan.unroll < 1 || !isPowerOfTwo(plan.lanes) || !isPowerOfTwo(plan.vector)) return false;
  const bool is_vector = space.keeps_last && space.inner == 0 && space.shape.extents().back() % plan.vector == 0;
  const bool has_words = space.results % plan.vector == 0 && plan.vector % space.words == 0 && plan.vector <= cost::kMostVectorElements;
  const int64_t text = plan.vector * plan.unroll * static_cast<int64_t>(q.body.nodes.size());
  const int64_t invocations = plan.width * plan.lanes;
  return has_words && (is_vector || plan.vector == space.words) && (plan.vector * plan.unroll == 1 || text <= cost::kMostHeldText) &&
         plan.unroll <= kMostUnroll && invocations <= mostInvocations(q.profile) &&
         4 * invocations * kReducedTypes <= q.profile.max_workgroup_bytes &&
         roundsOf(space, plan.lanes, plan.unroll) <= plannedRounds(q.profile) && divideUp(space.length, plan.lanes) <= kLongestSum;
}

/// Whether something that all columns share is multiplied with them, as in a product of one row.
bool isProductOfRow(const PlanQuery& q, const ColumnSpace& space) {
  return std::ranges::any_of(q.body.body().nodes, [&](graph::NodeId id) {
    return leafKind(q.body[id]) != LeafKind::None && q.body.shapeOf(q.body[id].results[0]).elementCount() == space.length;
  });
}

/// Columns that are long and few: workgroups of narrow pieces of a row, so that there are enough of them, with many lanes per column. All
/// that an invocation loads in a round is under way at once.
std::optional<ColumnsPlan> planOfFewLong(const PlanQuery& q, const ColumnSpace& space) {
  const program::DeviceProfile& profile = q.profile;
  if (profile.style != ExecutionStyle::Gpu || !space.keeps_last || space.inner > 0 || space.length < cost::kShortestInner)
    return std::nullopt;
  if (!isProductOfRow(q, space)) return std::nullopt;
  const int64_t vector = vectorElements(q, space.shape.elementCount()) / 2;
  if (vector < space.words || space.shape.extents().back() % vector != 0) return std::nullopt;
  ColumnsPlan plan{.width = cost::kNarrowColumns, .vector = vector};
  const auto groups = [&](int64_t width) { return divideUp(space.results, width * plan.vector); };
  const auto nearlyFills = [&](int64_t width) { return 8 * groups(width) >= 7 * int64_t{profile.parallel_units}; };
  while (plan.width < cost::kWideColumns && nearlyFills(2 * plan.width)) plan.width *= 2;
  if (groups(plan.width) >= cost::kGroupsPerUnit * profile.parallel_units) return std::nullopt;
  // Beside the sum of a product there is often one for a norm, of numbers that all columns share.
  const bool is_one = reductionsIn(q.body) <= 2, is_large = is_one || 2 * groups(plan.width) <= profile.parallel_units;
  const int64_t invocations = is_large ? cost::kLargestWorkgroup : cost::kLargestWorkgroup / 2;
  plan.lanes = std::min<int64_t>(invocations, profile.max_workgroup_invocations) / plan.width;
  while (plan.lanes * cost::kRowsInFlight > space.length) plan.lanes /= 2;
  plan.unroll = std::min(is_one ? cost::kRowsInFlightOfFew : cost::kRowsInFlight, divideUp(space.length, plan.lanes));
  return fits(q, space, plan) ? std::optional(plan) : std::nullopt;
}

}  // namespace

Result<PlanChoice> chooseColumns(const PlanQuery& q) {
  const ColumnSpace space = columnSpace(q);
  const int64_t length = space.length;
  if (const auto few = planOfFewLong(q, space)) return planned(q, space, *few);
  const bool is_gpu = q.profile.style == ExecutionStyle::Gpu, is_large = length * space.results >= cost::kManyElementsCpu;
  ColumnsPlan plan{.width = cost::kColumnsCpu};
  plan.vector = columnsPerLane(q, space);
  int64_t rows_in_flight = cost::kRowsInFlight;
  if (is_gpu) {
    // Workgroups are full however short the columns are: equal ones can be merged.
    int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
    const int64_t side_by_side =
        std::max<int64_t>(plan.vector < cost::kVectorElements ? cost::kColumnsGpu / plan.vector : cost::kColumnsGpu, 1);
    // Few workgroups have to keep as many loads under way as many.
    const int64_t most = std::min<int64_t>(q.profile.max_workgroup_invocations, side_by_side * cost::kMostLanesPerColumn);
    const auto fills_units = [&] {
      return divideUp(space.results, side_by_side * plan.vector) * invocations >=
             cost::kGroupsPerUnit * cost::kFullWorkgroup * q.profile.parallel_units;
    };
    while (2 * invocations <= most && !fills_units() && length >= 2 * cost::kRowsInFlight * invocations / side_by_side) invocations *= 2;
    if (invocations > cost::kFullWorkgroup && !fills_units()) rows_in_flight = cost::kRowsInFlightOfFew;
    plan.lanes = std::clamp<int64_t>(largestPowerOfTwo(length), 1, invocations / side_by_side);
    plan.width = invocations / plan.lanes;
  } else if (is_large) {
    // Every unit has some of the columns, and few columns are shared by lanes so that vectors are full. Small sums stay as they are,
    // so that they can be merged.
    const int64_t places = divideUp(space.results, plan.vector);
    const int64_t shared = largestPowerOfTwo(std::max<int64_t>(places / q.profile.parallel_units, 1));
    plan.width = std::clamp<int64_t>(shared, std::min(cost::kLeastLanesCpu, roundedUp(places)), plan.width);
    const int64_t groups = divideUp(places, plan.width);
    while (groups < cost::kGroupsPerUnit * q.profile.parallel_units && 2 * plan.lanes * plan.width <= cost::kFullWorkgroup &&
           2 * plan.lanes * cost::kRowsInFlight <= length)
      plan.lanes *= 2;
  }
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((roundsOf(space, plan.lanes, 1) > plannedRounds(q.profile) || divideUp(length, plan.lanes) > kLongestSum) &&
         plan.lanes < most_lanes) {
    plan.lanes *= 2;
    while (plan.width * plan.lanes > most_lanes) plan.width /= 2;
  }
  LS_TRY(plan.unroll, chooseUnroll(q, [&](int64_t unroll) { return roundsOf(space, plan.lanes, unroll); }));
  if ((is_gpu || is_large) && space.inner == 0) plan.unroll = std::max(plan.unroll, std::min(rows_in_flight, divideUp(length, plan.lanes)));
  return planned(q, space, plan);
}

std::string columnsSizes(const PlanQuery& q) {
  const ReduceSpace space = reduceSpace(q.body);
  return fmt::format("{}x{}", roundedUp(space.length), roundedUp(space.results));
}

std::optional<PlanChoice> columnsChoice(const program::Plan& plan, const PlanQuery& q) {
  const auto* columns = std::get_if<ColumnsPlan>(&plan);
  if (columns == nullptr) return std::nullopt;
  const ColumnSpace space = columnSpace(q);
  return fits(q, space, *columns) ? std::optional(planned(q, space, *columns)) : std::nullopt;
}

std::vector<program::Plan> columnsCandidates(const PlanQuery& q) {
  const ColumnSpace space = columnSpace(q);
  std::vector<program::Plan> plans;
  for (const int64_t vector : {1, 2, 4, 8})
    for (const int64_t invocations : cost::kMeasuredWorkgroups)
      for (int64_t lanes = 1; lanes <= std::min(invocations, space.length); lanes *= 4)
        for (const int64_t unroll : {1, 4}) {
          const bool is_wasted = lanes * unroll > space.length || invocations / lanes * vector >= 2 * space.results;
          const ColumnsPlan plan{.width = invocations / lanes, .lanes = lanes, .unroll = unroll, .vector = vector};
          if (!is_wasted) plans.push_back(planned(q, space, plan).plan);
        }
  return plans;
}

}  // namespace lockstep::passes
