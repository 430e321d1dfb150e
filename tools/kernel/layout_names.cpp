// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tools/kernel/layout_text.h"

namespace lockstep::tools {
namespace {

using kernel::TypeId;
using kernel::TypeKind;

bool isPlain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

void collect(const kernel::TypeTable& types, TypeId id, std::vector<TypeId>& found) {
  const kernel::Type& type = types[id];
  if (type.kind == TypeKind::Array) return collect(types, type.element, found);
  if (type.kind != TypeKind::Struct || std::ranges::find(found, id) != found.end()) return;
  for (const kernel::Member& member : type.members) collect(types, member.type, found);
  found.push_back(id);
}

}  // namespace

std::string HostNames::take(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) name += isPlain(c) ? c : '_';
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) name = "_" + name;
  while (std::ranges::find(taken_, name) != taken_.end()) name += '_';
  taken_.push_back(name);
  return name;
}

std::vector<const kernel::GlobalVariable*> hostVariables(const kernel::Module& module) {
  std::vector<const kernel::GlobalVariable*> variables;
  for (const kernel::GlobalVariable& global : module.globals) {
    if (kernel::isBound(global.space) || global.space == kernel::AddressSpace::Immediate) variables.push_back(&global);
  }
  return variables;
}

std::vector<HostStruct> hostStructs(const kernel::Module& module, const std::vector<std::string_view>& reserved) {
  std::vector<TypeId> found;
  for (const kernel::GlobalVariable* variable : hostVariables(module)) collect(module.types, variable->type, found);
  HostNames names(reserved);
  std::vector<HostStruct> structs;
  for (const TypeId id : found) structs.push_back({.type = id, .name = names.take(module.types[id].name), .members = {}});
  for (HostStruct& one : structs) {
    // `P P;` would give the name another meaning, which C++ refuses.
    HostNames members = names;
    for (const kernel::Member& member : module.types[one.type].members) one.members.push_back(members.take(member.name));
  }
  return structs;
}

std::string memoryText(const kernel::GlobalVariable& variable) {
  const bool storage = variable.space == kernel::AddressSpace::Storage;
  return std::string(kernel::toString(variable.space)) + (storage ? fmt::format(", {}", kernel::toString(variable.access)) : "");
}

RuntimeArray runtimeArrayOf(const kernel::TypeTable& types, TypeId id) {
  const kernel::Type& type = types[id];
  if (type.kind == TypeKind::Array && type.count == 0) return {.type = id};
  if (type.kind != TypeKind::Struct || !types.isRuntimeSized(id)) return {};
  return {.type = type.members.back().type, .offset = type.members.back().offset};
}

}  // namespace lockstep::tools
