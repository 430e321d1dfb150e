// SPDX-License-Identifier: Apache-2.0
// Plans of ops with templates.
#include <fmt/format.h>

#include <algorithm>

#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;
using program::StreamPlan;

namespace {

/// Of the hooks load_NAME4.
constexpr int64_t kStreamVector = 4;

}  // namespace

Result<PlanChoice> chooseTemplate(const PlanQuery& q) {
  const TemplateShape shape = findTemplate(q.body).shape;
  if (!q.templates) return fail("template.name", "there are no kernel templates here, and an op needs one");
  StreamPlan plan;
  plan.lanes = std::min<int64_t>(q.profile.style == program::ExecutionStyle::Cpu ? cost::kStreamLanesCpu : cost::kStreamLanes,
                                 mostInvocations(q.profile));
  plan.block = std::clamp<int64_t>(cost::kStreamElements / shape.registers, 1, cost::kStreamBlock);
  const bool has_fours = std::ranges::all_of(shape.operands, [](const TemplateTensor& tensor) {
    return !tensor.along_last || tensor.space.extent(tensor.space.rank() - 1) % kStreamVector == 0;
  });
  plan.vector = has_fours ? kStreamVector : 1;
  const int64_t rounds = loopCost(shape.repeats, 1, loopCost(shape.length, plan.block, 0));
  if (rounds > plannedRounds(q.profile)) {
    return fail("schedule.loop_limit",
                fmt::format("a row takes {} rounds of a loop, and the device ends loops after {}", rounds, q.profile.max_loop_iterations),
                {}, "use a shorter sequence, or choose a device without that limit (lockstep devices)");
  }
  return PlanChoice{plan, splitGroups(divideUp(shape.rows, plan.lanes), q.profile)};
}

}  // namespace lockstep::passes
