// SPDX-License-Identifier: Apache-2.0
// Plans of chains of rows: as many rows per workgroup as leave one for each unit, and tiles of right operands as large as memory allows.
#include <algorithm>
#include <bit>
#include <optional>

#include "passes/cost.h"
#include "passes/emit/lane_reduction.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/row_chain.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;
using program::RowChainPlan;

namespace {

int64_t powerAbove(int64_t number) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(number))); }

/// Workgroup memory, of which each array begins at a multiple of 16 bytes.
int64_t bytesOf(const RowChain& chain, const RowChainPlan& plan) {
  const LaneReduction::Shape rows{plan.lanes / plan.rows_per_group, plan.rows_per_group, plan.subgroup};
  const int64_t tile = plan.tile_k * (plan.tile_n + 1);
  constexpr int64_t kArrays = 5;
  return 4 * ((chain.made_elements + chain.left_elements) * plan.rows_per_group + tile + LaneReduction::words(rows, 1)) + 16 * kArrays;
}

/// The rounds of all loops of an invocation, at most.
int64_t roundsOf(const Graph& body, const RowChain& chain, const RowChainPlan& plan) {
  const int64_t inner = elementRounds(body);
  int64_t rounds = 0;
  for (const ChainStep& step : chain.steps) {
    if (step.work == ChainWork::Product) {
      const int64_t across = std::min(plan.tile_n, powerAbove(contractOf(body, step.node).n));
      const int64_t tiles = divideUp(step.columns, across) * divideUp(chain.arrays[step.left].columns, plan.tile_k);
      rounds += loopCost(tiles, 1, loopCost(divideUp(plan.tile_k, RowChain::kVector), 1, 0)) +
                divideUp(plan.tile_k * plan.tile_n, plan.lanes) * inner;
    } else {
      const bool reduces = step.work == ChainWork::Reduce;
      const int64_t columns = reduces ? body.shapeOf(body[step.node].operands[0]).elementCount() / chain.rows : step.columns;
      rounds += loopCost(divideUp(columns * plan.rows_per_group, plan.lanes), 1, inner) + RowChain::kVector * inner;
    }
  }
  return rounds;
}

/// Nothing where the device has no room for it.
std::optional<RowChainPlan> estimate(const PlanQuery& q, const RowChain& chain) {
  const DeviceProfile& profile = q.profile;
  RowChainPlan plan{.lanes = std::min<int64_t>(largestPowerOfTwo(mostInvocations(profile)), cost::kFullWorkgroup)};
  if (profile.fixed_subgroups && plan.lanes % profile.subgroup_size == 0) plan.subgroup = profile.subgroup_size;
  const int64_t share = powerAbove(divideUp(chain.rows, profile.parallel_units));
  plan.rows_per_group = std::min({share, cost::kMostChainRows, plan.lanes});
  plan.tile_n = std::min(plan.lanes, cost::kChainTile);
  const auto fits = [&] {
    return bytesOf(chain, plan) <= int64_t{profile.max_workgroup_bytes} && roundsOf(q.body, chain, plan) <= plannedRounds(profile);
  };
  for (;; plan.rows_per_group /= 2) {
    for (plan.tile_k = std::min(cost::kChainTile, cost::kChainLoads * plan.lanes / plan.tile_n); plan.tile_k >= cost::kLeastChainTile;
         plan.tile_k /= 2) {
      if (fits()) return plan;
    }
    if (plan.rows_per_group == 1) return std::nullopt;
  }
}

}  // namespace

Result<PlanChoice> chooseRowChain(const PlanQuery& q) {
  const std::optional<RowChain> chain = findRowChain(q.body);
  const Node& last = q.body[q.body.body().nodes.back()];
  const Location where = last.location == 0 ? Location{} : q.body.locations[last.location - 1];
  if (!chain) {
    return fail("schedule.group", "a chain of rows needs elements of rows that its workgroup does not have", where,
                "leave chains to the pass 'chainRows'");
  }
  const std::optional<RowChainPlan> plan = estimate(q, *chain);
  if (!plan) {
    return fail("schedule.group", "the rows of a chain do not fit into the workgroup memory of the device, or into the rounds of its loops",
                where, "leave chains to the pass 'chainRows'");
  }
  return PlanChoice{*plan, splitGroups(divideUp(chain->rows, plan->rows_per_group), q.profile)};
}

}  // namespace lockstep::passes
