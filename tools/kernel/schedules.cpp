// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "backends/sanitize.h"
#include "ir/kernel/queries.h"
#include "tools/kernel/buffer_compare.h"

namespace lockstep::tools {
namespace {

/// What floats may differ by when a sum is reordered: relative to the number, and near zero to the largest of the buffer.
constexpr FloatTolerance kReordered{.relative = 1e-4, .of_largest = 1e-6};

/// The first variable whose values differ by more than rounding, with its worst element.
struct Difference {
  const kernel::GlobalVariable* variable = nullptr;
  std::string element, was, is;
};
std::optional<Difference> compare(const ScheduleInput& input, const std::vector<Bytes>& other) {
  for (size_t k = 0; k < input.slots.size(); ++k) {
    const kernel::GlobalVariable* variable = findVariable(input.module, input.slots[k]);
    if (variable == nullptr) continue;
    const BufferDifference found = compareBuffers(input.module, *variable, other[k], input.results[k], kReordered);
    if (found.numbers.within()) continue;
    return Difference{.variable = variable,
                      .element = variable->name + found.element,
                      .was = numberText(found.numbers.want),
                      .is = numberText(found.numbers.got)};
  }
  return std::nullopt;
}

/// What a run left, or the loop in it that does not end.
struct Outcome {
  std::vector<Bytes> buffers;
  std::optional<Diagnostic> endless;
};
Result<Outcome> runWith(const ScheduleInput& input, const ScheduleOptions& options) {
  const std::unique_ptr<Backend> backend = openSchedule(options);
  std::vector<Bytes> buffers = input.initial;
  LS_TRY(PreparedDispatch prepared, PreparedDispatch::make(*backend, input.program));
  const Status ran = prepared.run(buffers);
  const bool endless = !ran.ok() && ran.diagnostics().front().code == "reference.endless_loop";
  if (!ran.ok() && !endless) return ran.failure();
  if (endless) return Outcome{.buffers = {}, .endless = ran.diagnostics().front()};
  return Outcome{.buffers = std::move(buffers), .endless = std::nullopt};
}

bool usesSubgroups(const kernel::Module& module) {
  return std::ranges::any_of(module.instructions,
                             [](const kernel::Instruction& x) { return kernel::info(x.op).group == kernel::OpGroup::Subgroup; });
}

bool isBuffer(const kernel::Module& module, kernel::ValueId variable) {
  return std::ranges::any_of(module.globals, [&](const kernel::GlobalVariable& one) {
    return one.value == variable && one.space == kernel::AddressSpace::Storage;
  });
}

/// Whether the kernel reads how large its subgroups are, or writes down which invocation is where in them. Then its results may well depend
/// on that.
bool asksForSize(const kernel::Module& module) {
  const kernel::Function* entry = module.entryPoint();
  if (entry == nullptr) return false;
  constexpr std::array kTells{kernel::Builtin::SubgroupSize, kernel::Builtin::NumSubgroups, kernel::Builtin::SubgroupId};
  const auto isStored = [&](kernel::ValueId value) {
    return std::ranges::any_of(module.instructions, [&](const kernel::Instruction& x) {
      return x.op == kernel::Op::Store && x.operands[1] == value && isBuffer(module, kernel::rootOf(module, x.operands[0]));
    });
  };
  return std::ranges::any_of(entry->parameters, [&](const kernel::Parameter& parameter) {
    return std::ranges::find(kTells, parameter.builtin) != kTells.end() ||
           (parameter.builtin == kernel::Builtin::SubgroupInvocationId && isStored(parameter.value));
  });
}

Finding waitsInSchedule(const Diagnostic& endless, int64_t schedule, uint64_t seed) {
  Finding finding;
  finding.diagnostic = {
      .code = "order.waits",
      .message = fmt::format("this loop ends in order and does not end in schedule {} of --schedule-seed {}", schedule, seed),
      .where = endless.where,
      .notes = {},
      .remedy = "split the kernel where it waits for another invocation"};
  return finding;
}

}  // namespace

Result<std::vector<Finding>> findScheduleDependence(const ScheduleInput& input, int64_t count, uint64_t seed) {
  std::map<const kernel::GlobalVariable*, Finding> found;
  std::vector<Finding> findings;
  for (int64_t k = 1; k <= count; ++k) {
    const uint64_t order = seed * 1'000'003 + static_cast<uint64_t>(k);
    LS_TRY(const Outcome other, runWith(input, {.order_seed = order, .loop_budget = input.loop_budget}));
    if (other.endless) {
      if (input.ends) findings.push_back(waitsInSchedule(*other.endless, k, seed));
      break;
    }
    const std::optional<Difference> difference = compare(input, other.buffers);
    if (!difference) continue;
    Finding& finding = found[difference->variable];
    if (finding.diagnostic.code.empty()) {
      finding.count = 0;
      finding.diagnostic = {.code = "order.schedule",
                            .message = fmt::format("{} is {} in order and {} in schedule {} of --schedule-seed {}", difference->element,
                                                   difference->was, difference->is, k, seed),
                            .where = storeTo(input.module, *difference->variable),
                            .notes = {},
                            .remedy = "order the accesses with barriers, or use operations that give the same in every order"};
    }
    ++finding.count;
  }
  for (auto& [variable, finding] : found) findings.push_back(std::move(finding));
  return findings;
}

Result<std::vector<Finding>> findSubgroupDependence(const ScheduleInput& input) {
  std::vector<Finding> findings;
  if (!usesSubgroups(input.module)) return findings;
  constexpr uint32_t kSizes[] = {8, 16, 32, 64, 128};
  for (const uint32_t size : kSizes) {
    LS_TRY(const Outcome other, runWith(input, {.subgroup_size = size, .loop_budget = input.loop_budget}));
    if (other.endless) continue;
    const std::optional<Difference> difference = compare(input, other.buffers);
    if (!difference) continue;
    const auto first = std::ranges::find_if(input.module.instructions, [](const kernel::Instruction& x) {
      return kernel::info(x.op).group == kernel::OpGroup::Subgroup && x.location != 0;
    });
    Finding finding;
    finding.diagnostic = {.code = "subgroup.size",
                          .message = fmt::format("{} is {} with subgroups of 4 invocations and {} with {}", difference->element,
                                                 difference->was, difference->is, size),
                          .where = first == input.module.instructions.end() ? Location{} : input.module.locations[first->location - 1],
                          .notes = {},
                          .remedy = "compute with subgroup_size and subgroup_invocation_id, or exchange values through workgroup memory"};
    if (asksForSize(input.module)) finding.severity = Finding::Severity::Warning;
    findings.push_back(std::move(finding));
    break;
  }
  return findings;
}

}  // namespace lockstep::tools
