// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/program_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/train/describe_program.h"
#include "passes/schedule/lifetimes.h"

namespace lockstep::detail {

ProgramFacts programFacts(const graph::ParameterLayout& layout, const passes::PlanSummary& plan,
                          const std::vector<passes::PassRecord>& passes) {
  ProgramFacts facts{.device = {},
                     .device_name = {},
                     .driver = {},
                     .device_reason = {},
                     .on_cpu = false,
                     .dispatches = plan.dispatches,
                     .levels = plan.levels,
                     .distinct_kernels = plan.distinct_kernels,
                     .plans = plan.plans,
                     .measured_plans = plan.measured_plans,
                     .planned_bytes = plan.total_bytes,
                     .workspace_bytes = plan.workspace_bytes,
                     .unpooled_bytes = plan.unpooled_bytes,
                     .parameters = 0,
                     .passes = {},
                     .temporaries = {},
                     .outline = {}};
  for (const graph::ParameterLayout::Slot& slot : layout.slots) facts.parameters += slot.size;
  for (const passes::PassRecord& record : passes) {
    facts.passes.push_back(
        fmt::format("{} {:.3f} s: {}{}", record.name, record.seconds, record.statistics, record.changed ? "" : " (unchanged)"));
  }
  return facts;
}

std::vector<PlannedBuffer> temporariesOf(const program::Program& program) {
  std::vector<PlannedBuffer> temporaries;
  for (const passes::Lifetime& life : passes::lifetimesOf(program)) {
    const program::Buffer& buffer = program.buffers[life.buffer];
    if (buffer.role != program::ArenaRole::Workspace || !life.isUsed()) continue;
    temporaries.push_back(
        {.name = buffer.name, .offset = buffer.offset, .bytes = buffer.size, .first_level = life.first, .last_level = life.last});
  }
  return temporaries;
}

ProgramFacts programFacts(const Device& device, const graph::ParameterLayout& layout, const Session* session) {
  ProgramFacts facts = session == nullptr ? programFacts(layout, {}, {}) : programFacts(layout, session->plan(), session->passRecords());
  if (session != nullptr) {
    facts.temporaries = temporariesOf(session->program());
    facts.outline = outlineOf(session->traced());
  }
  facts.device = device.chosen.info.id;
  facts.device_name = device.chosen.info.name;
  facts.driver = device.chosen.info.driver;
  facts.device_reason = device.chosen.reason;
  facts.on_cpu = device.chosen.info.kind == DeviceKind::Reference || device.chosen.info.kind == DeviceKind::CpuDriver;
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
