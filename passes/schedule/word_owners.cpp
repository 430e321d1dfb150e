// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/word_owners.h"

#include <algorithm>

#include "passes/schedule/choosers.h"
#include "passes/schedule/row_phases.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool storesPairs(const PlanQuery& query) {
  const Result<PlanChoice> choice = choosePlan(query);
  const auto* filled = choice.ok() ? std::get_if<program::TemplatePlan>(&choice->plan) : nullptr;
  return filled != nullptr && filled->overrides.contains(kContractPairs);
}

}  // namespace

bool ownsWords(const PlanQuery& query, size_t result) {
  const int64_t per_word = elementsPerWord(query.body.typeOf(query.body.outputs[result].value).dtype);
  switch (query.kind) {
    case GroupKind::Map:
      return true;
    case GroupKind::Rows: {
      const RowPhases phases = findRowPhases(query.body);
      return phases.columns % per_word == 0 && std::ranges::find(phases.full_results, result) != phases.full_results.end();
    }
    case GroupKind::Contract:
      return per_word == kContractRun && storesPairs(query);
    case GroupKind::Columns:
    case GroupKind::Scan:
    case GroupKind::Scatter:
      return false;
  }
  internalError("a group has a kind that does not exist");
}

}  // namespace lockstep::passes
