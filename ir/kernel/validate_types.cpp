// SPDX-License-Identifier: Apache-2.0
// Types, module-scope variables and function signatures.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "ir/kernel/validate_internal.h"

namespace lockstep::kernel {
namespace {

constexpr std::string_view kType = "kernel.type";
constexpr std::string_view kMemory = "kernel.memory";
constexpr std::string_view kLayout = "kernel.layout";
constexpr std::string_view kEntryPoint = "kernel.entry_point";
constexpr std::string_view kCapability = "kernel.capability";

bool isStorable(const Type& type) { return type.kind != TypeKind::Void && type.kind != TypeKind::Pointer; }

/// Checks the types that the module uses. Only structs have a line of their own; another type is reported where it is first used.
class TypeChecker {
 public:
  TypeChecker(const Module& module, Problems& problems)
      : module_(module), types_(module.types), problems_(problems), users_(module.types.size()) {}

  void run() {
    for (size_t i = 0; i < module_.globals.size(); ++i) markUsed(module_[module_.globals[i].value].type, atGlobal(i));
    for (size_t i = 0; i < module_.functions.size(); ++i) markFunction(FunctionId(i));
    for (size_t i = 0; i < types_.size(); ++i) {
      if (users_[i]) checkType(TypeId(i), *users_[i]);
    }
  }

 private:
  void markFunction(FunctionId id) {
    const Function& function = module_[id];
    for (size_t i = 0; i < function.parameters.size(); ++i) markUsed(module_[function.parameters[i].value].type, atParameter(id, i));
    markUsed(function.return_type, at(id));
    forEachInstruction(module_, function.body, [&](InstructionId instruction_id, const Instruction& instruction) {
      markUsed(instruction.type, at(instruction_id));
      for (size_t i = 0; i < instruction.operands.size(); ++i) {
        markUsed(module_[instruction.operands[i]].type, atOperand(instruction_id, i));
      }
    });
  }

  void markUsed(TypeId id, Subject user) {
    if (users_[id.index()]) return;
    const Type& type = types_[id];
    Subject own = type.kind == TypeKind::Struct ? at(id) : user;
    users_[id.index()] = own;
    if (type.element.valid()) markUsed(type.element, own);
    for (const Member& member : type.members) markUsed(member.type, own);
  }

  void checkType(TypeId id, Subject user) {
    const Type& type = types_[id];
    const bool in_numbers = type.isScalarOrVector() || type.kind == TypeKind::Matrix || type.kind == TypeKind::Atomic;
    if (in_numbers && type.scalar == Scalar::BF16) {
      problems_.add(user, kType, "bf16 is only a component of subgroup matrices");
    } else if (type.kind == TypeKind::SubgroupMatrix) {
      checkSubgroupMatrix(id, user);
    } else if (types_.nestingOf(id) > kMaxTypeNesting) {
      problems_.add(user, kType, fmt::format("types nest deeper than {}", kMaxTypeNesting));
    } else if (type.kind != TypeKind::Pointer && types_.sizeOf(id) == TypeTable::kTooLarge) {
      problems_.add(user, kType, fmt::format("type {} is larger than 4 GiB", types_.toString(id)));
    } else if (type.kind == TypeKind::Array) {
      bool fits = isStorable(types_[type.element]) && !types_.isRuntimeSized(type.element);
      if (!fits) problems_.add(user, kType, fmt::format("there are no arrays of {}", types_.toString(type.element)));
    } else if (type.kind == TypeKind::Pointer && !isStorable(types_[type.element])) {
      problems_.add(user, kType, fmt::format("memory cannot hold {}", types_.toString(type.element)));
    } else if (type.kind == TypeKind::Struct) {
      checkStruct(type, user);
    }
  }

  void checkSubgroupMatrix(TypeId id, Subject user) {
    const Type& type = types_[id];
    const bool is_float = type.scalar == Scalar::F32 || type.scalar == Scalar::F16;
    const bool fits = is_float || (type.scalar == Scalar::BF16 && type.use != MatrixUse::Result);
    if (!fits) problems_.add(user, kType, fmt::format("there is no {}", types_.toString(id)));
  }

  void checkStruct(const Type& type, Subject user) {
    if (type.members.empty()) problems_.add(user, kType, fmt::format("struct {} has no members", type.name));
    uint64_t end = 0;
    for (const Member& member : type.members) {
      checkMember(type, member, user, end);
      end = uint64_t{member.offset} + std::max(types_.sizeOf(member.type), member.size);
    }
  }

  void checkMember(const Type& type, const Member& member, Subject user, uint64_t end) {
    auto report = [&](std::string_view code, const std::string& problem) {
      problems_.add(user, code, fmt::format("member {} of struct {} {}", member.name, type.name, problem));
    };
    const Type& member_type = types_[member.type];
    bool runtime_sized = types_.isRuntimeSized(member.type);
    bool runtime_allowed = &member == &type.members.back() && member_type.kind == TypeKind::Array;
    uint32_t size = types_.sizeOf(member.type);
    uint32_t align = member.align != 0 ? member.align : types_.alignOf(member.type);
    uint64_t offset = (end + align - 1) / std::max(align, 1u) * align;
    if (!isStorable(member_type) || (runtime_sized && !runtime_allowed) || contains(types_, member.type, TypeKind::SubgroupMatrix)) {
      report(kType, fmt::format("cannot be of type {}", types_.toString(member.type)));
    } else if (!std::has_single_bit(align) || align % types_.alignOf(member.type) != 0) {
      report(kLayout,
             fmt::format("is aligned to {}, which is not a power of two and a multiple of {}", align, types_.alignOf(member.type)));
    } else if (member.size != 0 && (member.size < size || runtime_sized)) {
      report(kLayout, fmt::format("has size {}, but its type needs {}", member.size, size));
    } else if (member.offset != offset) {
      report(kLayout, fmt::format("is at offset {}, not at {}", member.offset, offset));
    }
  }

  const Module& module_;
  const TypeTable& types_;
  Problems& problems_;
  std::vector<std::optional<Subject>> users_;
};

void checkStoreType(const Module& module, size_t index, Problems& problems) {
  const GlobalVariable& global = module.globals[index];
  const TypeTable& types = module.types;
  Subject here = atGlobal(index);
  const bool shared_with_host = isBound(global.space) || global.space == AddressSpace::Immediate;
  std::string space(toString(global.space));
  if (shared_with_host && contains(types, global.type, Scalar::Bool)) {
    problems.add(here, kMemory, "a bool cannot be in " + space + " memory", "store it as u32");
  }
  if (types.isRuntimeSized(global.type) && global.space != AddressSpace::Storage) {
    problems.add(here, kMemory, "a runtime-sized array cannot be in " + space + " memory");
  }
  if (contains(types, global.type, TypeKind::Array) && global.space == AddressSpace::Immediate) {
    problems.add(here, kMemory, "an array cannot be in immediate memory", "use a uniform variable");
  }
  if (contains(types, global.type, TypeKind::SubgroupMatrix) && global.space != AddressSpace::Private) {
    problems.add(here, kMemory, "subgroup matrices are in private memory or in function variables only");
  }
  bool atomics_allowed =
      global.space == AddressSpace::Workgroup || (global.space == AddressSpace::Storage && global.access == Access::ReadWrite);
  if (contains(types, global.type, TypeKind::Atomic) && !atomics_allowed) {
    problems.add(here, kMemory, "atomics are in workgroup memory or in read_write storage only");
  }
}

void checkGlobal(const Module& module, size_t index, Problems& problems) {
  const GlobalVariable& global = module.globals[index];
  Subject here = atGlobal(index);
  checkStoreType(module, index, problems);
  if (global.space == AddressSpace::Function) problems.add(here, kMemory, "a module-scope variable cannot be in function memory");
  bool access_fits = global.space == AddressSpace::Storage ? global.access != Access::Write : global.access == defaultAccess(global.space);
  if (!access_fits) {
    problems.add(here, kMemory, fmt::format("{} memory cannot have access {}", toString(global.space), toString(global.access)));
  }
  if (!global.zero_initialized && global.space != AddressSpace::Workgroup)
    problems.add(here, kMemory, "only a workgroup variable can go without its initial zero");
  if (!global.initializer.valid()) return;
  if (global.space != AddressSpace::Private) problems.add(here, kMemory, "only a private variable has an initializer");
  TypeId type = module[global.initializer].type;
  if (type != global.type) {
    problems.add(here, kType,
                 fmt::format("the initializer is of type {}, not {}", module.types.toString(type), module.types.toString(global.type)));
  }
}

/// Two resources that one entry point reaches, directly or through calls, have different bindings, and it has one immediate variable.
void checkBindings(const Module& module, Problems& problems) {
  std::vector<std::set<size_t>> used(module.functions.size());
  for (size_t i = 0; i < module.functions.size(); ++i) {
    forEachInstruction(module, module.functions[i].body, [&](InstructionId, const Instruction& instruction) {
      for (ValueId operand : instruction.operands) {
        if (module[operand].kind == ValueKind::Variable) used[i].insert(module[operand].index);
      }
      if (instruction.op == Op::Call && instruction.immediate < i) {
        used[i].insert(used[instruction.immediate].begin(), used[instruction.immediate].end());
      }
    });
    if (!module.functions[i].workgroup_size) continue;
    std::map<std::pair<uint32_t, uint32_t>, size_t> bound;
    bool has_immediate = false;
    for (size_t index : used[i]) {
      const GlobalVariable& global = module.globals[index];
      if (global.space == AddressSpace::Immediate && std::exchange(has_immediate, true)) {
        problems.add(atGlobal(index), "kernel.binding",
                     fmt::format("entry point {} has another immediate variable", module.functions[i].name), "make them one struct");
      }
      if (!isBound(global.space)) continue;
      auto [entry, is_new] = bound.emplace(std::pair(global.group, global.binding), index);
      if (is_new) continue;
      problems.add(atGlobal(index), "kernel.binding",
                   fmt::format("group {} binding {} is also that of another variable of entry point {}", global.group, global.binding,
                               module.functions[i].name));
    }
  }
}

/// The type that WGSL gives to a builtin.
std::pair<Scalar, uint32_t> builtinShape(Builtin builtin) { return {Scalar::U32, isVector(builtin) ? 3 : 1}; }

/// Subgroups of a wanted size are full and made of neighbouring invocations, which only workgroups of one dimension promise.
void checkSubgroupSize(const Module& module, FunctionId id, Problems& problems) {
  const uint32_t wanted = module[id].subgroup_size;
  const std::array<uint32_t, 3> size = *module[id].workgroup_size;
  if (wanted == 0) return;
  if (!std::has_single_bit(wanted) || wanted < 4 || wanted > 128)
    problems.add(at(id), kEntryPoint, fmt::format("the subgroup size is {}; it must be a power of two from 4 to 128", wanted));
  if (size[0] % wanted != 0 || size[1] != 1 || size[2] != 1) {
    problems.add(at(id), kEntryPoint,
                 fmt::format("a workgroup of {} x {} x {} cannot be split into subgroups of {}: give it one dimension and a multiple of {}",
                             size[0], size[1], size[2], wanted, wanted));
  }
}

void checkEntryPoint(const Module& module, FunctionId id, Problems& problems) {
  const Function& function = module[id];
  const TypeTable& types = module.types;
  if (function.return_type != types.voidType()) problems.add(at(id), kEntryPoint, "an entry point returns no value");
  for (uint32_t size : *function.workgroup_size) {
    if (size == 0) problems.add(at(id), kEntryPoint, "each workgroup size is at least 1");
  }
  checkSubgroupSize(module, id, problems);
  for (size_t i = 0; i < id.index(); ++i) {
    bool same = module.functions[i].workgroup_size && module.functions[i].name == function.name;
    if (same) problems.add(at(id), kEntryPoint, fmt::format("two entry points are called {}", function.name));
  }
  std::set<Builtin> seen;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    if (parameter.builtin == Builtin::None) {
      problems.add(atParameter(id, i), kEntryPoint, "a parameter of an entry point is a builtin");
      continue;
    }
    auto [scalar, width] = builtinShape(parameter.builtin);
    const Type& type = module.typeOf(parameter.value);
    if (!type.isScalarOrVector() || type.scalar != scalar || type.width() != width) {
      std::string wanted = width == 1 ? std::string(toString(scalar)) : fmt::format("vec{}<{}>", width, toString(scalar));
      problems.add(atParameter(id, i), kEntryPoint,
                   fmt::format("builtin {} is of type {}, not {}", toString(parameter.builtin), wanted,
                               types.toString(module[parameter.value].type)));
    }
    if (!seen.insert(parameter.builtin).second) {
      problems.add(atParameter(id, i), kEntryPoint, fmt::format("builtin {} is given twice", toString(parameter.builtin)));
    }
  }
}

void checkHelper(const Module& module, FunctionId id, Problems& problems) {
  const Function& function = module[id];
  const TypeTable& types = module.types;
  if (function.return_type != types.voidType() && !isConstructible(types, function.return_type)) {
    problems.add(at(id), kType, fmt::format("a function cannot return {}", types.toString(function.return_type)));
  }
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    TypeId type = module[parameter.value].type;
    if (parameter.builtin != Builtin::None) problems.add(atParameter(id, i), kEntryPoint, "only an entry point has builtin parameters");
    if (types[type].kind != TypeKind::Pointer && !isConstructible(types, type)) {
      problems.add(atParameter(id, i), kType, fmt::format("a parameter cannot be of type {}", types.toString(type)));
    }
  }
}

/// Reports what has a type that needs a capability which the module does not list.
void checkTypeCapability(const Module& module, Capability capability, TypeFacts::Question question, const std::string& problem,
                         Problems& problems) {
  if (std::ranges::find(module.capabilities, capability) != module.capabilities.end()) return;
  TypeFacts needs(module.types, question);
  auto report = [&](Subject subject) { problems.add(subject, kCapability, problem); };
  for (size_t i = 0; i < module.globals.size(); ++i) {
    if (needs(module.globals[i].type)) report(atGlobal(i));
  }
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    for (size_t p = 0; p < function.parameters.size(); ++p) {
      if (needs(module[function.parameters[p].value].type)) report(atParameter(FunctionId(i), p));
    }
    forEachInstruction(module, function.body, [&](InstructionId id, const Instruction& instruction) {
      bool used = needs(instruction.type);
      for (ValueId operand : instruction.operands)
        used = used || (module[operand].kind == ValueKind::Constant && needs(module[operand].type));
      if (used) report(at(id));
    });
  }
}

/// Whether an instruction is about one of the elements of a subgroup matrix that the invocation holds.
bool selectsHeldElement(const Module& module, const Instruction& instruction) {
  if (instruction.op == Op::SubgroupMatrixRow || instruction.op == Op::SubgroupMatrixColumn) return true;
  if ((instruction.op != Op::Extract && instruction.op != Op::Access) || instruction.operands.empty()) return false;
  const Type* part = &module.typeOf(instruction.operands[0]);
  if (instruction.op == Op::Access && part->element.valid()) part = &module.types[part->element];
  for (size_t i = 1; i + 1 < instruction.operands.size() && part->kind == TypeKind::Array; ++i) part = &module.types[part->element];
  return part->kind == TypeKind::SubgroupMatrix;
}

void checkCapabilities(const Module& module, Problems& problems) {
  auto lists = [&](Capability capability) {
    return std::find(module.capabilities.begin(), module.capabilities.end(), capability) != module.capabilities.end();
  };
  for (size_t i = 0; i < module.functions.size() && !lists(Capability::Subgroups); ++i) {
    for (size_t p = 0; p < module.functions[i].parameters.size(); ++p) {
      Builtin builtin = module.functions[i].parameters[p].builtin;
      if (!needsSubgroups(builtin)) continue;
      problems.add(atParameter(FunctionId(i), p), kCapability, fmt::format("builtin {} needs the capability subgroups", toString(builtin)));
    }
    forEachInstruction(module, module.functions[i].body, [&](InstructionId id, const Instruction& instruction) {
      if (info(instruction.op).group != OpGroup::Subgroup) return;
      problems.add(at(id), kCapability, fmt::format("{} needs the capability subgroups", info(instruction.op).text));
    });
  }
  // How many elements an invocation holds, and which, follows from the size of its subgroup.
  const Function* entry = module.entryPoint();
  for (size_t i = 0; i < module.functions.size() && entry != nullptr && entry->subgroup_size == 0; ++i) {
    forEachInstruction(module, module.functions[i].body, [&](InstructionId id, const Instruction& instruction) {
      if (!selectsHeldElement(module, instruction)) return;
      problems.add(at(id), kEntryPoint, "elements of a subgroup matrix can be used where the entry point states its subgroup size");
    });
  }
  checkTypeCapability(
      module, Capability::F16, [](const TypeTable& types, TypeId type) { return contains(types, type, Scalar::F16); },
      "f16 needs the capability f16", problems);
  checkTypeCapability(
      module, Capability::SubgroupMatrices,
      [](const TypeTable& types, TypeId type) { return contains(types, type, TypeKind::SubgroupMatrix); },
      "a subgroup matrix needs the capability subgroup_matrices", problems);
}

}  // namespace

bool isConstructible(const TypeTable& types, TypeId id) {
  return !anyPart(types, id, [](const Type& type) {
    return !isStorable(type) || type.kind == TypeKind::Atomic || (type.kind == TypeKind::Array && type.count == 0);
  });
}

void checkGlobals(const Module& module, Problems& problems) {
  TypeChecker(module, problems).run();
  for (size_t i = 0; i < module.globals.size(); ++i) checkGlobal(module, i, problems);
  checkBindings(module, problems);
}

void checkFunctions(const Module& module, Problems& problems) {
  for (size_t i = 0; i < module.functions.size(); ++i) {
    if (module.functions[i].workgroup_size) {
      checkEntryPoint(module, FunctionId(i), problems);
    } else {
      checkHelper(module, FunctionId(i), problems);
    }
  }
  checkCapabilities(module, problems);
}

}  // namespace lockstep::kernel
