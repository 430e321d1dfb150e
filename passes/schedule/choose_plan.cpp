// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/choose_plan.h"

#include <algorithm>

#include "passes/cost.h"
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

Result<PlanChoice> chooseMap(const PlanQuery& q) {
  int64_t elements = 1;
  for (const Output& output : q.body.outputs) elements = std::max(elements, q.body.shapeOf(output.value).elementCount());
  // Enough workgroups for every unit before they grow to their full size.
  int64_t lanes = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
  while (lanes > cost::kLeastWorkgroup && elements / lanes < q.profile.parallel_units) lanes /= 2;
  int64_t per_word = 1;
  for (const Output& output : q.body.outputs) per_word = std::max(per_word, elementsPerWord(q.body.typeOf(output.value).dtype));
  if (per_word > 1) {
    const program::VectorPlan vector{.lanes = lanes, .width = per_word};
    return PlanChoice{vector, splitGroups(divideUp(elements, lanes * per_word), q.profile)};
  }
  const bool is_long = elements >= cost::kManyElements && q.profile.style == ExecutionStyle::Gpu;
  if (!is_long || q.body.nodes.size() > cost::kShortBody || elementRounds(q.body) > 0)
    return PlanChoice{program::MapPlan{.lanes = lanes}, splitGroups(divideUp(elements, lanes), q.profile)};
  const program::StripsPlan strips{.lanes = lanes, .per_lane = cost::kElementsPerLane};
  return PlanChoice{strips, splitGroups(divideUp(elements, strips.lanes * strips.per_lane), q.profile)};
}

Result<PlanChoice> chooseRows(const PlanQuery& q) {
  const RowPhases plan = findRowPhases(q.body);
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

Result<PlanChoice> chooseColumns(const PlanQuery& q) {
  const ReduceSpace space = reduceSpace(q.body);
  const int64_t length = space.length;
  int64_t width = cost::kColumnsCpu, lanes = 1;
  if (q.profile.style == ExecutionStyle::Gpu) {
    // Workgroups are full however short the columns are: equal ones can be merged.
    int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
    lanes = std::clamp<int64_t>(largestPowerOfTwo(length), 1, invocations / cost::kColumnsGpu);
    width = invocations / lanes;
  }
  const int64_t inner = elementRounds(q.body);
  auto rounds = [&](int64_t unroll) { return loopCost(divideUp(length, lanes), unroll, inner) + 2 * inner; };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((rounds(1) > plannedRounds(q.profile) || divideUp(length, lanes) > kLongestSum) && lanes < most_lanes) {
    lanes *= 2;
    while (width * lanes > most_lanes) width /= 2;
  }
  program::ColumnsPlan plan{.width = width, .lanes = lanes};
  LS_TRY(plan.unroll, chooseUnroll(q, rounds));
  return PlanChoice{plan, splitGroups(divideUp(space.results, width), q.profile)};
}

Result<PlanChoice> chooseScan(const PlanQuery& q) {
  ScanSpace space = scanSpace(q.body);
  // Neighbouring lines are neighbouring elements when there is an inner axis; otherwise the lanes of a workgroup share a line.
  int64_t lanes = cost::kLeastWorkgroup, shared = 1;
  if (space.inner < cost::kColumnsGpu) {
    shared = std::clamp<int64_t>(largestPowerOfTwo(divideUp(space.length, cost::kScannedPerLane)), 1, lanes);
  }
  const int64_t inner = elementRounds(q.body);
  // Lanes that share a line go over it twice.
  auto rounds = [&](int64_t unroll) {
    int64_t walk = loopCost(divideUp(space.length, shared), unroll, inner);
    return shared == 1 ? walk : 2 * walk + lanes + 1;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while (rounds(1) > plannedRounds(q.profile) && shared < most_lanes) {
    shared *= 2;
    lanes = std::max(lanes, shared);
  }
  program::ScanPlan plan{.lanes = lanes, .lanes_per_line = shared};
  LS_TRY(plan.unroll, chooseUnroll(q, rounds));
  return PlanChoice{plan, splitGroups(divideUp(space.outer * space.inner, lanes / shared), q.profile)};
}

Result<PlanChoice> chooseScatter(const PlanQuery& q) {
  using program::ScatterPlan;
  const ScatterShape shape = findScatter(q.body).shape;
  // Many rows per segment are added in parts; if the indices are spread evenly, a part has four or more.
  ScatterPlan plan;
  plan.parts = largestPowerOfTwo(std::clamp<int64_t>(shape.length / shape.segments / cost::kScatteredPerPart, 1, cost::kMostParts));
  const int64_t wide = shape.inner == 1 ? 1 : 2 * largestPowerOfTwo(divideUp(shape.inner, 2));
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
  return PlanChoice{plan,
                    splitGroups(shape.outer * divideUp(shape.segments, plan.segments()) * divideUp(shape.inner, plan.columns), q.profile)};
}

Result<PlanChoice> choosePlan(const PlanQuery& query) {
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
