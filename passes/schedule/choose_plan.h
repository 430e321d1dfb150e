// SPDX-License-Identifier: Apache-2.0
// How a group becomes a kernel: one chooser per kind of group. `schedule` asks; the emitters read the plan that comes out.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "ir/program/plan.h"
#include "ir/program/profile.h"
#include "ir/program/tuning.h"

namespace lockstep::passes {

struct PlanChoice {
  program::Plan plan;
  std::array<uint32_t, 3> groups{1, 1, 1};  ///< workgroups
};

/// What a plan is chosen for: a group's body as a self-contained graph.
struct PlanQuery {
  const graph::Graph& body;
  graph::GroupKind kind;
  const program::DeviceProfile& profile;
  bool templates;                                  ///< shaders/ are at hand
  const program::TuningTable* measured = nullptr;  ///< asked first; null: every plan is estimated
};

/// The plan of the table where it has one that fits, else an estimate. Error "schedule.loop_limit" when no plan of the kind stays within
/// the device's rounds of loops.
Result<PlanChoice> choosePlan(const PlanQuery& query);

/// The kind of work as tables name it: "contract f32>f32 1x64x256x128", with extents rounded up to powers of two, since work of about the
/// same size wants the same plan. Empty where there is nothing to
/// measure: for other kinds, for small work but products, which is merged with other work, and for rows with a packed result per row.
std::string describeWork(const PlanQuery& query);
/// What the table says of the work; nothing where it says nothing that fits.
std::optional<PlanChoice> measuredChoice(const PlanQuery& query);
/// How many workgroups `plan` needs for the work; nothing where it is a plan of another kind of work or beyond a limit of the device.
std::optional<PlanChoice> choiceOf(const program::Plan& plan, const PlanQuery& query);
/// Every plan that is worth a measurement, each within the device's limits and one that choiceOf() takes; the estimate is among them where
/// it is one.
std::vector<program::Plan> candidatePlans(const PlanQuery& query);

/// Whether one of the templates for contractions sums the whole inner axis within the planned rounds.
bool sumsWithinRounds(const graph::ContractShape& shape, const program::DeviceProfile& profile);

/// Splits a flat number of workgroups over x and y, so that neither is above the device's limit and fewer than y are left over.
std::array<uint32_t, 3> splitGroups(int64_t groups, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
