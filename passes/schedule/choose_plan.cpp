// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/choose_plan.h"

#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;

std::array<uint32_t, 3> splitGroups(int64_t groups, const DeviceProfile& profile) {
  const int64_t limit = profile.max_groups_per_dimension;
  if (groups <= limit) return {static_cast<uint32_t>(groups), 1, 1};
  return {static_cast<uint32_t>(limit), static_cast<uint32_t>(divideUp(groups, limit)), 1};
}

Result<PlanChoice> choosePlan(const PlanQuery& query) {
  if (std::optional<PlanChoice> measured = measuredChoice(query)) return std::move(*measured);
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
