// SPDX-License-Identifier: Apache-2.0
// One chooser per kind of group; choosePlan() asks the right one.
#pragma once

#include <string_view>

#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {

Result<PlanChoice> chooseMap(const PlanQuery& query);
Result<PlanChoice> chooseRows(const PlanQuery& query);
Result<PlanChoice> chooseColumns(const PlanQuery& query);
Result<PlanChoice> chooseScan(const PlanQuery& query);
Result<PlanChoice> chooseScatter(const PlanQuery& query);
Result<PlanChoice> chooseContract(const PlanQuery& query);

/// The number of a template's plan by which an invocation has its results in pairs of neighbours, and stores words of them.
inline constexpr std::string_view kContractPairs = "pairs";
inline constexpr int64_t kContractRun = 2;

/// Of plans for contractions: see choiceOf() and candidatePlans().
std::optional<PlanChoice> contractChoice(const program::Plan& plan, const PlanQuery& query);
std::vector<program::Plan> contractCandidates(const PlanQuery& query);

}  // namespace lockstep::passes
