// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/module.h"

#include <algorithm>

namespace lockstep::kernel {
namespace {

constexpr std::array<std::string_view, 12> kBuiltinNames = {
    "none",         "local_invocation_id", "local_invocation_index", "global_invocation_id",
    "workgroup_id", "num_workgroups",      "subgroup_size",          "subgroup_invocation_id",
    "subgroup_id",  "num_subgroups",       "workgroup_index",        "global_invocation_index"};

constexpr std::array<std::string_view, 3> kCapabilityNames = {"f16", "subgroups", "subgroup_matrices"};

}  // namespace

std::string_view toString(Builtin builtin) { return kBuiltinNames[static_cast<size_t>(builtin)]; }

std::optional<Builtin> findBuiltin(std::string_view text) {
  auto found = std::find(kBuiltinNames.begin(), kBuiltinNames.end(), text);
  if (found == kBuiltinNames.end()) return std::nullopt;
  return static_cast<Builtin>(found - kBuiltinNames.begin());
}

bool isVector(Builtin builtin) { return builtin <= Builtin::NumWorkgroups && builtin != Builtin::LocalInvocationIndex; }

bool needsSubgroups(Builtin builtin) { return builtin >= Builtin::SubgroupSize && builtin <= Builtin::NumSubgroups; }

std::string_view toString(Capability capability) { return kCapabilityNames[static_cast<size_t>(capability)]; }

std::optional<Capability> findCapability(std::string_view text) {
  auto found = std::find(kCapabilityNames.begin(), kCapabilityNames.end(), text);
  if (found == kCapabilityNames.end()) return std::nullopt;
  return static_cast<Capability>(found - kCapabilityNames.begin());
}

const Function* Module::findFunction(std::string_view name) const {
  auto found = std::find_if(functions.begin(), functions.end(), [&](const Function& function) { return function.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

uint32_t scalarCount(const TypeTable& types, TypeId id, uint32_t limit) {
  const Type& type = types[id];
  uint64_t count = 0;
  if (type.kind == TypeKind::Struct) {
    for (const Member& member : type.members) {
      if (count < limit) count += scalarCount(types, member.type, limit);
    }
  } else if (type.kind == TypeKind::Array) {
    count = uint64_t{type.count} * scalarCount(types, type.element, limit);
  } else {
    count = type.kind == TypeKind::Matrix ? uint64_t{type.columns} * type.rows : type.width();
  }
  return static_cast<uint32_t>(std::min<uint64_t>(count, limit));
}

uint32_t immediateBytes(const Module& module) {
  const auto variable = std::ranges::find(module.globals, AddressSpace::Immediate, &GlobalVariable::space);
  return variable == module.globals.end() ? 0 : (module.types.sizeOf(variable->type) + 3) / 4 * 4;
}

const Function* Module::entryPoint() const {
  auto found =
      std::find_if(functions.begin(), functions.end(), [](const Function& function) { return function.workgroup_size.has_value(); });
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace lockstep::kernel
