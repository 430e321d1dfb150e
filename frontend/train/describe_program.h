// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what compile and run left behind, as facts for users.
#pragma once

#include <vector>

#include "frontend/train/program_cache.h"
#include "frontend/train/program_facts.h"
#include "ir/graph/graph.h"

namespace lockstep::detail {

/// Of a program without a device.
ProgramFacts programFacts(const graph::ParameterLayout& layout, const passes::PlanSummary& plan,
                          const std::vector<passes::PassRecord>& passes);
/// Of a program on a device; null: of the device alone.
ProgramFacts programFacts(const Device& device, const graph::ParameterLayout& layout, const Session* session);
/// In the order of the program's buffers.
std::vector<PlannedBuffer> temporariesOf(const program::Program& program);
RunFacts runFacts(const ProgramCache& programs);

}  // namespace lockstep::detail
