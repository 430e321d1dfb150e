// SPDX-License-Identifier: Apache-2.0
// Plans of maps: an element per invocation, or several of them, side by side or a workgroup's width apart.
#include <fmt/format.h>

#include <algorithm>

#include "passes/cost.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/vector_width.h"

namespace lockstep::passes {

using namespace graph;
using program::ExecutionStyle;
using program::MapPlan;
using program::StripsPlan;
using program::VectorPlan;

namespace {

int64_t elementsOf(const PlanQuery& q) {
  int64_t elements = 1;
  for (const Output& output : q.body.outputs) elements = std::max(elements, q.body.shapeOf(output.value).elementCount());
  return elements;
}

/// Whether a body may stand in its kernel once for each element of an invocation.
bool isRepeatable(const PlanQuery& q, size_t most_nodes) { return q.body.nodes.size() <= most_nodes && elementRounds(q.body) == 0; }

/// Whether invocations of a map take `width` elements side by side, because all of them can be loaded and stored at once.
bool takesVectors(const PlanQuery& q, int64_t elements, int64_t width) {
  const bool is_gpu = q.profile.style == ExecutionStyle::Gpu;
  const bool fills_units = elements >= (is_gpu ? width * cost::kLeastWorkgroup * q.profile.parallel_units : cost::kManyElementsCpu);
  return fills_units && elements % width == 0 && isRepeatable(q, cost::kVectorBody) && readsNeighbours(q.body, width);
}

/// Whether several tensors as large as the results are read.
bool readsSeveral(const PlanQuery& q, int64_t elements) {
  return std::ranges::count_if(inputsOf(q.body), [&](ValueId input) { return q.body.shapeOf(input).elementCount() == elements; }) > 1;
}

PlanChoice planned(const PlanQuery& q, const program::Plan& plan, int64_t lanes, int64_t per_lane) {
  return {plan, splitGroups(divideUp(elementsOf(q), lanes * per_lane), q.profile)};
}

bool isWorkgroup(const PlanQuery& q, int64_t lanes) { return lanes >= 1 && lanes <= mostInvocations(q.profile); }

}  // namespace

Result<PlanChoice> chooseMap(const PlanQuery& q) {
  const int64_t elements = elementsOf(q);
  const bool is_long = elements >= cost::kManyElements && q.profile.style == ExecutionStyle::Gpu;
  int64_t width = wordElements(q);
  if (const int64_t vector = vectorElements(q, elements) / (is_long && readsSeveral(q, elements) ? 2 : 1);
      takesVectors(q, elements, vector))
    width = std::max(width, vector);
  // Enough workgroups for every unit before they grow to their full size.
  int64_t lanes = std::min<int64_t>(q.profile.max_workgroup_invocations, cost::kFullWorkgroup);
  while (lanes > cost::kLeastWorkgroup && elements / width / lanes < q.profile.parallel_units) lanes /= 2;
  if (width > 1) {
    if (is_long) lanes = std::min(largestPowerOfTwo(mostInvocations(q.profile)), cost::kVectorWorkgroup);
    return planned(q, VectorPlan{.lanes = lanes, .width = width}, lanes, width);
  }
  if (!is_long || !isRepeatable(q, cost::kShortBody)) return planned(q, MapPlan{.lanes = lanes}, lanes, 1);
  return planned(q, StripsPlan{.lanes = lanes, .per_lane = cost::kElementsPerLane}, lanes, cost::kElementsPerLane);
}

std::string mapSizes(const PlanQuery& q) { return fmt::format("{}", roundedUp(elementsOf(q))); }

std::optional<PlanChoice> mapChoice(const program::Plan& plan, const PlanQuery& q) {
  const int64_t words = wordElements(q);
  if (const auto* map = std::get_if<MapPlan>(&plan); map != nullptr && words == 1 && isWorkgroup(q, map->lanes))
    return planned(q, plan, map->lanes, 1);
  if (const auto* strips = std::get_if<StripsPlan>(&plan)) {
    const bool fits = words == 1 && isWorkgroup(q, strips->lanes) && strips->per_lane >= 1 &&
                      strips->per_lane <= cost::kMostVectorElements && isRepeatable(q, cost::kShortBody);
    return fits ? std::optional(planned(q, plan, strips->lanes, strips->per_lane)) : std::nullopt;
  }
  if (const auto* vector = std::get_if<VectorPlan>(&plan)) {
    const int64_t width = vector->width;
    const bool is_vector = isPowerOfTwo(width) && width <= cost::kMostVectorElements && width % words == 0;
    const bool fits = is_vector && isWorkgroup(q, vector->lanes) && (width == words || isRepeatable(q, cost::kVectorBody));
    return fits ? std::optional(planned(q, plan, vector->lanes, width)) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<program::Plan> mapCandidates(const PlanQuery&) {
  std::vector<program::Plan> plans;
  for (const int64_t lanes : cost::kMeasuredWorkgroups) {
    plans.emplace_back(MapPlan{.lanes = lanes});
    for (const int64_t several : {2, 4, 8}) {
      plans.emplace_back(StripsPlan{.lanes = lanes, .per_lane = several});
      plans.emplace_back(VectorPlan{.lanes = lanes, .width = several});
    }
  }
  return plans;
}

}  // namespace lockstep::passes
