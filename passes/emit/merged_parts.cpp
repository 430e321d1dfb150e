// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/merged_parts.h"

#include <algorithm>

#include "ir/kernel/queries.h"
#include "passes/cost.h"

namespace lockstep::passes {

using kernel::AddressSpace;
using kernel::Builtin;
using kernel::Function;
using kernel::GlobalVariable;
using kernel::Module;
using kernel::TypeKind;
using program::DeviceProfile;

namespace {

/// Its one entry point asks for nothing but the workgroup and the lane, so others can be given to it.
bool isCallable(const Module& module) {
  auto isEntry = [](const Function& function) { return function.workgroup_size.has_value(); };
  if (std::ranges::count_if(module.functions, isEntry) != 1) return false;
  for (size_t i = 0; i < module.types.size(); ++i) {
    if (module.types[kernel::TypeId(i)].kind == TypeKind::Struct) return false;  // another part may have one of the same name
  }
  return std::ranges::all_of(module.entryPoint()->parameters, [](const kernel::Parameter& parameter) {
    return parameter.builtin == Builtin::WorkgroupId || parameter.builtin == Builtin::LocalInvocationIndex;
  });
}

}  // namespace

KernelFacts factsOf(const Module& module) {
  KernelFacts facts{.module = &module, .is_callable = isCallable(module), .variables = {}};
  if (!facts.is_callable) return facts;
  facts.workgroup_size = *module.entryPoint()->workgroup_size;
  for (const GlobalVariable& global : module.globals) {
    const kernel::Type& type = module.types[global.type];
    const bool is_array = type.kind == TypeKind::Array;
    facts.variables.push_back({.space = global.space,
                               .binding = global.binding,
                               .type = module.types.toString(global.type),
                               .element = is_array ? module.types.toString(type.element) : "",
                               .count = is_array ? type.count : 0,
                               .bytes = global.space == AddressSpace::Workgroup ? module.types.sizeOf(global.type) : 0,
                               .zero_initialized = global.zero_initialized});
    facts.workgroup_bytes += kernel::workgroupBytes(facts.variables.back().bytes);
  }
  return facts;
}

bool isHeldUp(const Part& one, const Part& other, const DeviceProfile& profile) {
  const auto fills = [&](const Part& part, double share) { return part.dispatch.groups[0] > share * profile.parallel_units; };
  return fills(one, 1) && fills(other, cost::kNearlyEvery) && other.kernel->workgroup_bytes > cost::kLargeWorkgroupBytes &&
         2 * one.kernel->workgroup_bytes < other.kernel->workgroup_bytes;
}

std::vector<size_t> SharedVariables::add(const Part& part) {
  const size_t old_bindings = bindings_.size(), old_memory = memory_.size();
  std::vector<size_t> places;
  std::vector<size_t> taken;
  for (const KernelFacts::Variable& variable : part.kernel->variables) {
    size_t place = kNone;
    if (kernel::isBound(variable.space)) {
      const program::Range& range = part.dispatch.bindings[variable.binding];
      place = 0;
      while (place < old_bindings && !isSame(bindings_[place], variable, range)) ++place;
      if (place == old_bindings) {
        place = bindings_.size();
        bindings_.push_back({variable.space, variable.type, range});
      }
    } else if (variable.space == AddressSpace::Workgroup) {
      place = 0;
      while (place < old_memory && (std::ranges::find(taken, place) != taken.end() || !canGrow(memory_[place], variable))) ++place;
      if (place == old_memory) {
        place = memory_.size();
        memory_.push_back(variable);
      } else {
        taken.push_back(place);
        if (variable.count > memory_[place].count) memory_[place] = variable;
      }
    }
    places.push_back(place);
  }
  return places;
}

std::vector<program::Range> SharedVariables::ranges() const {
  std::vector<program::Range> ranges;
  for (const Binding& binding : bindings_) ranges.push_back(binding.range);
  return ranges;
}

uint64_t SharedVariables::workgroupBytes() const {
  uint64_t bytes = 0;
  for (const KernelFacts::Variable& array : memory_) bytes += kernel::workgroupBytes(array.bytes);
  return bytes;
}

}  // namespace lockstep::passes
