// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/plan_rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;

int64_t plannedRounds(const DeviceProfile& profile) {
  if (profile.max_loop_iterations == 0) return int64_t{1} << 60;
  // What the closed forms of the plans leave out: loops of a constant number of rounds around the long one.
  return int64_t{profile.max_loop_iterations} * 11 / 12;
}

int64_t mostInvocations(const DeviceProfile& profile) { return std::min(profile.max_workgroup_invocations, profile.max_workgroup_size_x); }

int64_t largestPowerOfTwo(int64_t at_most) {
  int64_t power = 1;
  while (power * 2 <= at_most) power *= 2;
  return power;
}

int64_t elementRounds(const Graph& body) {
  int64_t rounds = 0;
  for (NodeId id : body.body().nodes) {
    const auto* element = std::get_if<ElementLowering>(&*body[id].op->lower);
    if (element != nullptr && element->rounds > 0) rounds += element->rounds + 1;
  }
  return rounds;
}

int64_t loopCost(int64_t count, int64_t unroll, int64_t element) { return divideUp(count, unroll) * (1 + unroll * element) + 1; }

Result<int64_t> chooseUnroll(const PlanQuery& q, const std::function<int64_t(int64_t)>& cost) {
  for (int64_t unroll = 1; unroll <= kMostUnroll; unroll *= 2) {
    if (cost(unroll) <= plannedRounds(q.profile)) return unroll;
  }
  const Node& last = q.body[q.body.body().nodes.back()];
  return fail("schedule.loop_limit",
              fmt::format("a kernel of kind '{}' needs {} rounds of its loops per invocation, and the device ends them after {}",
                          toString(q.kind), cost(kMostUnroll), q.profile.max_loop_iterations),
              last.location == 0 ? Location{} : q.body.locations[last.location - 1],
              "reduce in two steps (reshape the long axis to two) or use a device without this limit");
}

}  // namespace lockstep::passes
