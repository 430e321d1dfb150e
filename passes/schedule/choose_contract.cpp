// SPDX-License-Identifier: Apache-2.0
// Plans of contractions: a template of shaders/ by the style of the device, else one invocation per result.
#include <algorithm>
#include <array>

#include "ir/kernel/queries.h"
#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;
using program::ExecutionStyle;
using program::NaiveContractPlan;
using program::TemplatePlan;

namespace {

/// CPU drivers.
PlanChoice registerRows(const ContractShape& shape, const DeviceProfile& profile) {
  const bool knows_vectors = profile.subgroup_size > 1;
  const int64_t widest = knows_vectors ? profile.subgroup_size : cost::kMostLanesCpu;
  const int64_t most_columns = knows_vectors ? cost::kVectorColumns : cost::kPlainColumns;
  const int64_t shared_by = std::min(widest, cost::kColumnsBeforeSharing);
  const int64_t columns = std::clamp<int64_t>(largestPowerOfTwo(divideUp(shape.n, shared_by)), 1, most_columns);
  const int64_t lanes = std::clamp<int64_t>(largestPowerOfTwo(divideUp(shape.n, columns)), cost::kLeastLanesCpu, widest);
  const int64_t rows = std::min(cost::kRegisterRows, largestPowerOfTwo(shape.m));
  int64_t groups = shape.batch * divideUp(shape.m, rows) * divideUp(shape.n, lanes * columns);
  // A driver that runs a workgroup as a loop on one core keeps the sums of a tile in registers only where no counter indexes them.
  return {.plan = TemplatePlan{.name = "register_rows",
                               .overrides = {{"rows", rows}, {"columns", columns}, {"lanes", lanes}},
                               .unrolled_stores = rows * columns},
          .groups = splitGroups(groups, profile)};
}

/// GPUs: the largest tile that still gives every unit a workgroup; small products with a long k split it among the invocations.
struct Tile : cost::Tile {
  int64_t slices = 1;  ///< invocations that share a sum

  [[nodiscard]] int64_t threads() const { return (m / thread_m) * (n / thread_n); }
};

Tile chooseTile(const ContractShape& shape, const DeviceProfile& profile) {
  Tile tile{cost::kTiles.back()};
  for (const cost::Tile& candidate : cost::kTiles) {
    int64_t groups = shape.batch * divideUp(shape.m, candidate.m) * divideUp(shape.n, candidate.n);
    if (groups >= profile.parallel_units && candidate.m <= 2 * shape.m && candidate.n <= 2 * shape.n) {
      tile = {candidate};
      break;
    }
  }
  // The three arrays of the template. Partial sums go through workgroup memory only where there are several.
  auto bytes = [&](int64_t slices) {
    const int64_t words[] = {slices * tile.k * (tile.m + 1), slices * tile.k * (tile.n + 1), slices > 1 ? slices * tile.m * tile.n : 1};
    uint64_t sum = 0;
    for (const int64_t count : words) sum += kernel::workgroupBytes(4 * static_cast<uint64_t>(count));
    return sum;
  };
  int64_t& slices = tile.slices;
  while (slices * 2 * tile.k <= shape.k &&
         slices * 2 * tile.threads() <= std::min<int64_t>(profile.max_workgroup_invocations, cost::kFullWorkgroup) &&
         bytes(slices * 2) <= profile.max_workgroup_bytes)
    slices *= 2;
  return tile;
}

PlanChoice sharedTiled(const ContractShape& shape, const DeviceProfile& profile) {
  const Tile tile = chooseTile(shape, profile);
  return {.plan = TemplatePlan{.name = "shared_tiled",
                               .overrides = {{"tile_m", tile.m},
                                             {"tile_n", tile.n},
                                             {"tile_k", tile.k},
                                             {"thread_m", tile.thread_m},
                                             {"thread_n", tile.thread_n},
                                             {"slices", tile.slices}}},
          .groups = splitGroups(shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n), profile)};
}

/// Of shared_tiled with its loops over one thread's tile dissolved: a round loads both tiles and goes over them.
int64_t tiledRounds(const ContractShape& shape, const Tile& tile) {
  const int64_t invocations = tile.slices * tile.threads();
  const int64_t load = loopCost(divideUp(tile.slices * tile.k * tile.m, invocations), 1, 0) +
                       loopCost(divideUp(tile.slices * tile.k * tile.n, invocations), 1, 0);
  const int64_t add_up = loopCost(divideUp(tile.m * tile.n, invocations), 1, loopCost(tile.slices, 1, 0));
  return loopCost(divideUp(shape.k, tile.slices * tile.k), 1, load + loopCost(tile.k, 1, 0)) + add_up;
}

}  // namespace

Result<PlanChoice> chooseContract(const PlanQuery& q) {
  ContractShape shape = findContract(q.body).shape;
  // Without shaders/, and for products that are no more than an outer product, one invocation per result does. It is also the only form for
  // an inner axis that the templates are not made for; splitReductions leaves none where it runs.
  if (!q.templates || shape.k <= cost::kOuterProduct || !sumsWithinRounds(shape, q.profile)) {
    const int64_t inner = elementRounds(q.body);
    NaiveContractPlan plan{.lanes = cost::kLeastWorkgroup};
    LS_TRY(plan.unroll, chooseUnroll(q, [&](int64_t unroll) { return loopCost(shape.k, unroll, inner) + inner; }));
    return PlanChoice{plan, splitGroups(divideUp(shape.batch * shape.m * shape.n, plan.lanes), q.profile)};
  }
  return q.profile.style == ExecutionStyle::Cpu ? registerRows(shape, q.profile) : sharedTiled(shape, q.profile);
}

bool sumsWithinRounds(const ContractShape& shape, const DeviceProfile& profile) {
  if (profile.style == ExecutionStyle::Cpu) return shape.k <= std::min(plannedRounds(profile), kLongestSum);
  if (profile.max_loop_iterations == 0) return true;
  return tiledRounds(shape, chooseTile(shape, profile)) <= plannedRounds(profile);
}

}  // namespace lockstep::passes
