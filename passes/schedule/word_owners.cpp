// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/word_owners.h"

#include <algorithm>
#include <optional>

#include "passes/schedule/choosers.h"
#include "passes/schedule/row_phases.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// The plan of the work where it is one of this kind.
template <typename Kind>
std::optional<Kind> planned(const PlanQuery& query) {
  const Result<PlanChoice> choice = choosePlan(query);
  const auto* plan = choice.ok() ? std::get_if<Kind>(&choice->plan) : nullptr;
  return plan == nullptr ? std::nullopt : std::optional(*plan);
}

bool rowsOwnWords(const PlanQuery& query, size_t result, int64_t per_word) {
  const RowPhases phases = findRowPhases(query.body);
  if (std::ranges::find(phases.full_results, result) != phases.full_results.end()) return phases.columns % per_word == 0;
  const auto held = planned<program::HeldRowsPlan>(query);
  return held && held->rows_per_group % per_word == 0;
}

}  // namespace

bool ownsWords(const PlanQuery& query, size_t result) {
  const int64_t per_word = elementsPerWord(query.body.typeOf(query.body.outputs[result].value).dtype);
  switch (query.kind) {
    case GroupKind::Map:
      return true;
    case GroupKind::Template:
    case GroupKind::RowChain:
      return false;
    case GroupKind::Rows:
      return rowsOwnWords(query, result, per_word);
    case GroupKind::Contract: {
      const auto filled = planned<program::TemplatePlan>(query);
      return per_word == kContractRun && filled && filled->overrides.contains(kContractPairs);
    }
    case GroupKind::Columns: {
      const auto columns = planned<program::ColumnsPlan>(query);
      return columns && columns->vector % per_word == 0;
    }
    case GroupKind::Scan: {
      const auto scan = planned<program::ScanPlan>(query);
      const ScanSpace space = scanSpace(query.body);
      return scan && scan->vector % per_word == 0 && !(space.is_total && space.inner == 1);
    }
    case GroupKind::Scatter: {
      const auto scatter = planned<program::ScatterPlan>(query);
      return scatter && scatter->vector % per_word == 0;
    }
  }
  internalError("a group has a kind that does not exist");
}

}  // namespace lockstep::passes
