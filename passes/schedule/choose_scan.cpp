// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"
#include "passes/schedule/vector_width.h"

namespace lockstep::passes {

namespace {

/// Of the distance between lanes that are combined: a workgroup has at most 2^10.
constexpr int64_t kMostDoublings = 11;

}  // namespace

Result<PlanChoice> chooseScan(const PlanQuery& q) {
  ScanSpace space = scanSpace(q.body);
  // Neighbouring lines are neighbouring elements when there is an inner axis; otherwise the lanes of a workgroup share a line.
  int64_t lanes = cost::kLeastWorkgroup, shared = 1;
  if (space.inner < cost::kColumnsGpu) {
    if (space.is_total && q.profile.style == program::ExecutionStyle::Gpu)
      lanes = std::max(lanes, largestPowerOfTwo(std::min(mostInvocations(q.profile), divideUp(space.length, cost::kFoldedPerLane))));
    shared = std::clamp<int64_t>(largestPowerOfTwo(divideUp(space.length, cost::kScannedPerLane)), 1, lanes);
  }
  const int64_t inner = elementRounds(q.body), lines = space.outer * space.inner;
  const int64_t vector = vectorAlong(q, space.inner == 1 ? space.length : space.inner, lines * space.length,
                                     space.inner == 1 ? lines * shared : space.length * lanes * q.profile.parallel_units);
  const int64_t along = space.inner == 1 ? vector : 1;
  // Lanes that share a line go over it twice, unless its total is enough.
  auto rounds = [&](int64_t unroll) {
    int64_t walk = loopCost(divideUp(space.length, shared * along), unroll, inner);
    return shared == 1 ? walk : space.is_total ? walk + kMostDoublings : 2 * walk + lanes + 1;
  };
  // Of each lane the workgroup keeps a tuple per line.
  const int64_t lane_bytes = 4 * std::ssize(q.body[space.node].operands) * (vector / along);
  const int64_t most_lanes = largestPowerOfTwo(std::min(mostInvocations(q.profile), int64_t{q.profile.max_workgroup_bytes} / lane_bytes));
  while (rounds(1) > plannedRounds(q.profile) && shared < most_lanes) {
    shared *= 2;
    lanes = std::max(lanes, shared);
  }
  lanes = std::min(lanes, most_lanes);
  shared = std::min(shared, lanes);
  program::ScanPlan plan{.lanes = lanes, .lanes_per_line = shared, .vector = vector};
  LS_TRY(plan.unroll, chooseUnroll(q, rounds));
  return PlanChoice{plan, splitGroups(divideUp(lines * along / vector, lanes / shared), q.profile)};
}

}  // namespace lockstep::passes
