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
Result<PlanChoice> chooseTemplate(const PlanQuery& query);
Result<PlanChoice> chooseRowChain(const PlanQuery& query);

/// The number of a template's plan by which an invocation has its results in pairs of neighbours, and stores words of them.
inline constexpr std::string_view kContractPairs = "pairs";
inline constexpr int64_t kContractRun = 2;
/// The template of contractions for CPU drivers, and its number that splits the inner axis (inner_axis.h).
inline constexpr std::string_view kRegisterRows = "register_rows";
inline constexpr std::string_view kContractInner = "inner";
/// The template of contractions whose operands are read by four elements.
inline constexpr std::string_view kQuadTiled = "quad_tiled";
/// The template of contractions by matrix units; its operands are read by quads too.
inline constexpr std::string_view kMatrixTiled = "matrix_tiled";
/// The number of its plan that says whether its 16 bits are those of bf16.
inline constexpr std::string_view kMatrixBrain = "brain";

// For each kind whose plans are measured: the sizes in the name of its work (describeWork() makes the name), whether a plan fits it
// (choiceOf()), and plans that are worth a measurement (candidatePlans() leaves out those that do not fit).

std::string mapSizes(const PlanQuery& query);
std::string rowsSizes(const PlanQuery& query);
std::string columnsSizes(const PlanQuery& query);
std::string contractSizes(const PlanQuery& query);
std::optional<PlanChoice> mapChoice(const program::Plan& plan, const PlanQuery& query);
std::optional<PlanChoice> rowsChoice(const program::Plan& plan, const PlanQuery& query);
std::optional<PlanChoice> columnsChoice(const program::Plan& plan, const PlanQuery& query);
std::optional<PlanChoice> contractChoice(const program::Plan& plan, const PlanQuery& query);
std::vector<program::Plan> mapCandidates(const PlanQuery& query);
std::vector<program::Plan> rowsCandidates(const PlanQuery& query);
std::vector<program::Plan> columnsCandidates(const PlanQuery& query);
std::vector<program::Plan> contractCandidates(const PlanQuery& query);

/// Types that are reduced, each with an array in workgroup memory.
inline constexpr int64_t kReducedTypes = 4;

/// To the next power of two: work of about the same size wants the same plan.
int64_t roundedUp(int64_t extent);

}  // namespace lockstep::passes
