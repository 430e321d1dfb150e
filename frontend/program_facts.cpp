// SPDX-License-Identifier: Apache-2.0
#include "frontend/program_facts.h"

#include <fmt/format.h>

#include "frontend/trainer_impl.h"

namespace lockstep::detail {

ProgramFacts programFacts(const Device& device, const graph::ParameterLayout& layout, const Session* session) {
  const passes::PlanSummary plan = session == nullptr ? passes::PlanSummary{} : session->plan();
  const ChosenDevice& chosen = device.chosen;
  ProgramFacts facts{.device = chosen.info.id,
                     .device_name = chosen.info.name,
                     .device_reason = chosen.reason,
                     .dispatches = plan.dispatches,
                     .levels = plan.levels,
                     .distinct_kernels = plan.distinct_kernels,
                     .planned_bytes = plan.total_bytes,
                     .workspace_bytes = plan.workspace_bytes,
                     .unpooled_bytes = plan.unpooled_bytes,
                     .parameters = 0,
                     .passes = {}};
  for (const graph::ParameterLayout::Slot& slot : layout.slots) facts.parameters += slot.size;
  if (session == nullptr) return facts;
  for (const passes::PassRecord& record : session->passRecords()) {
    facts.passes.push_back(
        fmt::format("{} {:.3f} s: {}{}", record.name, record.seconds, record.statistics, record.changed ? "" : " (unchanged)"));
  }
  return facts;
}

RunFacts runFacts(const ProgramCache& programs) {
  const ExecutionStatistics counts = programs.statistics();
  return {.submissions = counts.submissions,
          .steps = counts.steps,
          .device_allocations = counts.device_allocations,
          .device_bytes = counts.device_bytes,
          .compilations = programs.compiled(),
          .programs = programs.size()};
}

}  // namespace lockstep::detail
