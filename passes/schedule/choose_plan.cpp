// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/choose_plan.h"

#include <algorithm>

#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;

std::array<uint32_t, 3> splitGroups(int64_t groups, const DeviceProfile& profile) {
  // Rows of equal length: with one of the limit, the last row would be nearly empty, and workgroups without work take time too (add of 2^25
  // elements on a GPU by 65536 workgroups: 172 µs in place of 136).
  const int64_t rows = std::max<int64_t>(divideUp(groups, profile.max_groups_per_dimension), 1);
  return {static_cast<uint32_t>(divideUp(groups, rows)), static_cast<uint32_t>(rows), 1};
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
    case GroupKind::Template:
      return chooseTemplate(query);
    case GroupKind::RowChain:
      return chooseRowChain(query);
  }
  internalError("a group has a kind that does not exist");
}

}  // namespace lockstep::passes
