// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/lower/lower.h"

namespace lockstep::wgsl {

kernel::Module lower(const Ast& ast, Program program, const Source& source) { return Lowerer(ast, std::move(program), source).run(); }

Lowerer::Lowerer(const Ast& ast, Program program, const Source& source)
    : ast_(ast), program_(std::move(program)), types_(program_.types), eval_(program_.types), source_(source) {
  entity_values_.resize(program_.entities.size());
  functions_.resize(program_.functions.size());
  // About an instruction an expression, if the text is not one large constant.
  const size_t likely = std::min<size_t>(ast.expressions.size(), size_t(1) << 16u);
  builder_.module().instructions.reserve(likely);
  builder_.module().values.reserve(likely);
  origins_.reserve(likely);
}

kernel::Module Lowerer::run() {
  for (const EntityId global : program_.globals) lowerGlobal(global);
  for (const uint32_t function : program_.function_order) {
    if (!program_.functions[function].left_out) lowerFunction(function);
  }
  kernel::Module module = builder_.take();
  setLocations(module);
  if (program_.uses_f16) module.capabilities.push_back(kernel::Capability::F16);
  if (program_.uses_subgroups) module.capabilities.push_back(kernel::Capability::Subgroups);
  if (program_.uses_subgroup_matrices) module.capabilities.push_back(kernel::Capability::SubgroupMatrices);
  return module;
}

void Lowerer::setLocations(kernel::Module& module) const {
  std::vector<uint32_t> known(source_.text().size() + 1);  // by offset: 1 + index into the locations
  for (size_t i = 0; i < origins_.size(); ++i) {
    const size_t end = i + 1 < origins_.size() ? origins_[i + 1].instruction : module.instructions.size();
    for (size_t at = origins_[i].instruction; at < end; ++at) {
      uint32_t& location = known[origins_[i].offset];
      if (location == 0) {
        module.locations.push_back(source_.locate(origins_[i].offset));
        location = static_cast<uint32_t>(module.locations.size());
      }
      module.instructions[at].location = location;
    }
  }
}

kernel::Scalar Lowerer::scalar(Ty id) const {
  if (id == kBF16) return kernel::Scalar::BF16;
  const Ty type = types_[id].kind == Kind::Atomic ? types_[id].element : types_.scalarOf(id);
  return type == kBool  ? kernel::Scalar::Bool
         : type == kI32 ? kernel::Scalar::I32
         : type == kU32 ? kernel::Scalar::U32
         : type == kF32 ? kernel::Scalar::F32
         : type == kF16 ? kernel::Scalar::F16
                        : (internalError("an abstract type reached the kernel IR"), kernel::Scalar::Bool);
}

kernel::TypeId Lowerer::type(Ty id) {
  if (type_map_.size() <= id.index()) type_map_.resize(id.index() + 1);
  if (type_map_[id.index()].valid()) return type_map_[id.index()];
  const kernel::TypeId made = makeType(id);
  type_map_[id.index()] = made;
  return made;
}

kernel::TypeId Lowerer::makeType(Ty id) {
  kernel::TypeTable& table = builder_.types();
  const Type wanted = types_[id];
  if (id == kVoid) return table.voidType();
  if (types_.isScalarOrVector(id)) return table.scalarOrVector(scalar(id), types_.width(id));
  if (wanted.kind == Kind::Matrix) return table.matrix(scalar(id), wanted.columns, wanted.rows);
  if (wanted.kind == Kind::SubgroupMatrix) return table.subgroupMatrix(wanted.use, scalar(wanted.element), wanted.columns, wanted.rows);
  if (wanted.kind == Kind::Array) return table.array(type(wanted.element), wanted.count);
  if (wanted.kind == Kind::Atomic) return table.atomic(scalar(id));
  if (wanted.kind == Kind::Pointer || wanted.kind == Kind::Reference)
    return table.pointer(wanted.space, type(wanted.element), wanted.access);
  if (wanted.kind != Kind::Struct) internalError("a type without counterpart reached the kernel IR");
  const Structure& structure = types_.structure(id);
  if (structure.from_builtin && structure.members[0].name == "old_value")
    return table.atomicExchangeResult(scalar(structure.members[0].type));
  std::vector<kernel::Member> members;
  for (const StructMember& member : structure.members) {
    members.push_back({.name = plainName(member.name), .type = type(member.type), .align = member.align, .size = member.size});
  }
  // Results of builtin functions have names that no program can say.
  return table.structure(plainName(structure.name.substr(structure.from_builtin ? 2 : 0)), std::move(members));
}

/// Names in the IR are ASCII; other letters are spelt by their bytes.
std::string Lowerer::plainName(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x80) {
      plain += c;
    } else {
      plain += fmt::format("_x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return plain;
}

kernel::ValueId Lowerer::constant(const ConstValue& value) {
  if (types_.isScalar(value.type)) return builder_.scalar(scalar(value.type), scalarBits(value));
  if (!value.elements) return builder_.zero(type(value.type));
  const auto known = composites_.find(value.elements.get());
  if (known != composites_.end() && builder_.typeIdOf(known->second) == type(value.type)) return known->second;
  std::vector<Value> elements;
  bool all_zero = true;
  for (const ConstValue& element : *value.elements) {
    elements.push_back(constant(element));
    all_zero = all_zero && elements.back() == builder_.zero(type(element.type));
  }
  const Value made = all_zero ? builder_.zero(type(value.type)) : builder_.composite(type(value.type), std::move(elements));
  composites_[value.elements.get()] = made;
  return made;
}

void Lowerer::lowerGlobal(EntityId id) {
  const Entity& entity = program_[id];
  const Type reference = types_[entity.type];
  kernel::GlobalVariable variable;
  variable.name = plainName(entity.name);
  variable.type = type(reference.element);
  variable.space = reference.space;
  variable.access = reference.access;
  variable.group = entity.group;
  variable.binding = entity.binding;
  if (entity.value) {
    const Value initializer = constant(*entity.value);
    // The zero value is the default.
    if (initializer != builder_.zero(variable.type)) variable.initializer = initializer;
  }
  entity_values_[id.index()] = builder_.global(std::move(variable));
}

kernel::ValueId Lowerer::entryParameter(kernel::FunctionId function, const Entity& entity, const FunctionInfo& info, size_t index) {
  const std::string name = plainName(entity.name);
  const bool members = info.workgroup_size && info.builtins[index] == kernel::Builtin::None;
  if (!members) return builder_.parameter(function, name, type(entity.type), info.builtins[index]);
  std::vector<Value> parts;
  for (const StructMember& member : types_.structure(entity.type).members) {
    parts.push_back(builder_.parameter(function, name + "_" + plainName(member.name), type(member.type), member.builtin));
  }
  const Value made = builder_.construct(type(entity.type), std::move(parts));
  builder_.name(made, name);
  return made;
}

void Lowerer::lowerFunction(uint32_t index) {
  const FunctionDecl& decl = ast_.functions[index];
  const FunctionInfo& info = program_.functions[index];
  const kernel::FunctionId function = builder_.function(plainName(decl.name), type(info.return_type));
  functions_[index] = function;
  builder_.enterFunction(function);
  at(decl.name_span);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    entity_values_[info.parameters[i].index()] = entryParameter(function, program_[info.parameters[i]], info, i);
  }
  if (info.workgroup_size) builder_.setWorkgroupSize(function, *info.workgroup_size);
  if (info.subgroup_size != 0) builder_.setSubgroupSize(function, info.subgroup_size);
  jumped_ = false;
  lowerBlock(decl.body);
}

}  // namespace lockstep::wgsl
