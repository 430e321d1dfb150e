// SPDX-License-Identifier: Apache-2.0
// Faults as diagnostics.
#include <fmt/format.h>

#include "backends/reference/dispatch.h"
#include "ir/kernel/print_places.h"

namespace lockstep::reference {
namespace {

std::string triple(const std::array<uint32_t, 3>& id) { return fmt::format("({}, {}, {})", id[0], id[1], id[2]); }

/// "invocation (5, 0, 0) (workgroup (0, 0, 0), local (5, 0, 0))"
std::string invocation(const Fault& fault, const Bytecode& code, std::array<uint32_t, 3> groups) {
  const InvocationIds ids = idsOf(fault.first_group + fault.lane / code.group_lanes, fault.lane % code.group_lanes, code, groups);
  return fmt::format("invocation {} (workgroup {}, local {})", triple(ids.global), triple(ids.workgroup), triple(ids.local));
}

std::string_view lineOf(std::string_view text, uint32_t line) {
  for (uint32_t k = 1; k < line && !text.empty(); ++k) text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  text = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  return text;
}

}  // namespace

InvocationIds idsOf(uint64_t group, uint64_t lane, const Bytecode& code, std::array<uint32_t, 3> groups) {
  const std::array<uint32_t, 3>& size = code.workgroup_size;
  const std::array<uint64_t, 3> workgroup{group % groups[0], group / groups[0] % groups[1], group / groups[0] / groups[1]};
  const std::array<uint64_t, 3> local{lane % size[0], lane / size[0] % size[1], lane / (size[0] * size[1])};
  InvocationIds ids;
  for (size_t k = 0; k < 3; ++k) {
    ids.workgroup[k] = static_cast<uint32_t>(workgroup[k]);
    ids.local[k] = static_cast<uint32_t>(local[k]);
    ids.global[k] = static_cast<uint32_t>(workgroup[k] * size[k] + local[k]);
  }
  return ids;
}

Location placeOf(uint32_t site, const kernel::Module& module, const std::string& kernel) {
  if (site == 0) return {};
  const kernel::Instruction& instruction = module.instructions[site - 1];
  if (instruction.location != 0) return module.locations[instruction.location - 1];
  const kernel::PrintedModule printed = kernel::printWithPlaces(module, false);
  return {.file = kernel + ".kir", .line = printed.instructions[site - 1].line, .column = 0};
}

std::string invocationText(uint64_t group, uint64_t lane, const Bytecode& code, std::array<uint32_t, 3> groups) {
  const InvocationIds ids = idsOf(group, lane, code, groups);
  return fmt::format("workgroup {}, local {}", triple(ids.workgroup), triple(ids.local));
}

Failure report(const Fault& fault, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
               std::array<uint32_t, 3> groups) {
  std::string who = invocation(fault, code, groups);
  auto variable = [&] {
    uint32_t index = code.accesses[fault.access].variable;
    return index == UINT32_MAX ? std::string("a value") : code.variables[index].name;
  };
  Diagnostic diagnostic;
  switch (fault.kind) {
    case Fault::Kind::None:
      internalError("a report without a fault");
    case Fault::Kind::OutOfBounds:
      diagnostic.code = "reference.out_of_bounds";
      diagnostic.message = fmt::format("kernel {}: index {} is out of bounds of {} with {} elements, in {}", kernel,
                                       static_cast<int64_t>(static_cast<int32_t>(fault.index)) < 0 && fault.index > 0xffff0000u
                                           ? fmt::format("{} ({})", fault.index, static_cast<int32_t>(fault.index))
                                           : fmt::format("{}", fault.index),
                                       variable(), fault.length, who);
      diagnostic.remedy = "guard the access or correct the size of the buffer or of the dispatch";
      break;
    case Fault::Kind::Uninitialised:
      diagnostic.code = "reference.uninitialised";
      diagnostic.message =
          fmt::format("kernel {}: word {} of {} is read but was never written in this step, in {}", kernel, fault.index, variable(), who);
      break;
    case Fault::Kind::DivergentBarrier:
      diagnostic.code = "reference.divergent_barrier";
      diagnostic.message = fmt::format("kernel {}: a barrier is reached by only a part of a workgroup and not by {}", kernel, who);
      diagnostic.remedy = "move the barrier out of control flow that depends on the invocation";
      break;
    case Fault::Kind::EndlessLoop:
      diagnostic.code = "reference.endless_loop";
      diagnostic.message = fmt::format("kernel {}: a loop does not end, in {}", kernel, who);
      diagnostic.remedy = "correct the loop's condition or raise the loop budget";
      break;
  }
  if (fault.site != 0) {
    const kernel::Instruction& instruction = module.instructions[fault.site - 1];
    const kernel::PrintedModule printed = kernel::printWithPlaces(module, false);
    const uint32_t line = fault.site - 1 < printed.instructions.size() ? printed.instructions[fault.site - 1].line : 0;
    Note note{.message = fmt::format("the instruction is `{}`", lineOf(printed.text, line)), .where = {}};
    if (instruction.location != 0) {
      diagnostic.where = module.locations[instruction.location - 1];
      if (!module.source.empty()) diagnostic.excerpt = excerptOf(module.source, diagnostic.where, 1);
    } else {
      // A dump has the file.
      note.where = {.file = kernel + ".kir", .line = line};
    }
    if (line != 0) diagnostic.notes.push_back(std::move(note));
  }
  return {.diagnostics = {std::move(diagnostic)}, .exit_code = ExitCode::BadInput};
}

}  // namespace lockstep::reference
