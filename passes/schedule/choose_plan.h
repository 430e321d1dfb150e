// SPDX-License-Identifier: Apache-2.0
// How a group becomes a kernel: one chooser per kind of group. `schedule` asks; the emitters read the plan that comes out.
#pragma once

#include <array>

#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "ir/program/plan.h"
#include "ir/program/profile.h"

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
  bool templates;  ///< shaders/ are at hand
};

/// Error "schedule.loop_limit" when no plan of the kind stays within the device's rounds of loops.
Result<PlanChoice> choosePlan(const PlanQuery& query);

/// Whether one of the templates for contractions sums the whole inner axis within the planned rounds.
bool sumsWithinRounds(const graph::ContractShape& shape, const program::DeviceProfile& profile);

/// Splits a flat number of workgroups over x and y, so that neither is above the device's limit.
std::array<uint32_t, 3> splitGroups(int64_t groups, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
