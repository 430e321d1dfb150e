// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"
#include "passes/schedule/vector_width.h"

namespace lockstep::passes {

using namespace graph;

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

}  // namespace lockstep::passes
