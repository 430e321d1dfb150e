// SPDX-License-Identifier: Apache-2.0
// Variables, structs and functions at module scope.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "frontend/wgsl/check/checker.h"
#include "frontend/wgsl/syntax/half.h"

namespace lockstep::wgsl {
namespace {

const Attribute* findAttribute(const std::vector<Attribute>& attributes, std::string_view name) {
  const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == name; });
  return found == attributes.end() ? nullptr : &*found;
}

}  // namespace

std::optional<uint32_t> Checker::attributeNumber(const Attribute& attribute, size_t argument) {
  if (argument >= attribute.arguments.size()) return std::nullopt;
  const ExprId id = attribute.arguments[argument];
  const Ty type = checkValue(id);
  if (type == kError) return std::nullopt;
  const ExprInfo& info = infoOf(id);
  const bool is_integer = type == kAbstractInt || type == kI32 || type == kU32;
  const bool fits = is_integer && info.value && info.stage == Stage::Const && info.value->integer >= 0 && info.value->integer <= INT32_MAX;
  if (!fits) {
    fail(kAttribute, ast_[id].span, fmt::format("argument of '{}' is not a non-negative integer constant", attribute.name));
    return std::nullopt;
  }
  return static_cast<uint32_t>(info.value->integer);
}

EntityId Checker::checkGlobalVariable(const VariableDecl& decl) {
  if (decl.kind == VariableKind::Const) return checkConst(decl, 0);
  return decl.kind == VariableKind::Override ? checkOverride(decl) : checkModuleVar(decl);
}

EntityId Checker::checkConst(const VariableDecl& decl, size_t scope) {
  Entity entity{
      .kind = EntityKind::Const, .name = std::string(decl.name), .span = decl.name_span, .type = kError, .value = {}, .scope = scope};
  entity.stage = Stage::Const;
  const Ty declared = decl.type.valid() ? resolveType(decl.type) : Ty();
  Ty type = checkValue(decl.initializer);
  if (type != kError && infoOf(decl.initializer).stage != Stage::Const) {
    type = fail(kConstant, ast_[decl.initializer].span, fmt::format("value of const '{}' is not a constant expression", decl.name));
  }
  if (declared.valid() && type != kError && declared != kError) {
    type = materialize(decl.initializer, declared, "initializer") ? declared : kError;
  }
  if (type != kError && !types_.isConstructible(type)) {
    type = fail(kType, decl.name_span, fmt::format("const '{}' cannot have type {}", decl.name, name(type)));
  }
  entity.type = type;
  entity.value = infoOf(decl.initializer).value;
  if (type != kError && !entity.value) entity.type = kError;
  return addEntity(std::move(entity));
}

std::optional<ConstValue> Checker::overrideValue(double value, Ty type) {
  if (type == kBool) return ConstEval::boolean(value != 0 && !std::isnan(value));
  if (type == kF32 || type == kF16) {
    const double rounded = type == kF32 ? static_cast<double>(static_cast<float>(value)) : roundToHalf(value);
    return std::isfinite(rounded) ? std::optional(ConstEval::floating(type, rounded)) : std::nullopt;
  }
  const double low = type == kI32 ? -2147483648.0 : 0.0, high = type == kI32 ? 2147483647.0 : 4294967295.0;
  if (!(value >= low && value <= high) || value != std::trunc(value)) return std::nullopt;
  return ConstEval::integer(type, static_cast<int64_t>(value));
}

EntityId Checker::checkOverride(const VariableDecl& decl) {
  Entity entity{.kind = EntityKind::Override, .name = std::string(decl.name), .span = decl.name_span, .type = kError, .value = {}};
  entity.stage = overrides_ == Overrides::AreConstants ? Stage::Const : Stage::Override;
  std::string key(decl.name);
  if (const Attribute* id = findAttribute(decl.attributes, "id")) {
    if (const auto number = attributeNumber(*id)) {
      key = std::to_string(*number);
      if (*number > 65535) fail(kAttribute, id->span, fmt::format("override id {} is above 65535", *number));
      if (!override_ids_.insert(*number).second) fail(kAttribute, id->span, fmt::format("override id {} is used twice", *number));
    }
  }
  const bool has_values = overrides_ != Overrides::HaveNoValues;
  checkAttributes(decl.attributes, AttributePlace::Override);
  const auto given = options_.overrides.find(key);
  const bool is_given = has_values && given != options_.overrides.end();
  used_overrides_.insert(key);

  Ty type = decl.type.valid() ? resolveType(decl.type) : Ty();
  if (decl.initializer.valid()) {
    if (is_given) ++quiet_;
    const Ty value_type = checkValue(decl.initializer);
    if (!type.valid()) type = types_.concrete(value_type);
    if (value_type != kError && infoOf(decl.initializer).stage == Stage::Runtime) {
      type = fail(kConstant, ast_[decl.initializer].span, fmt::format("value of override '{}' is not known at compile time", decl.name));
    }
    if (type != kError && value_type != kError && !materialize(decl.initializer, type, "initializer")) type = kError;
    if (is_given) --quiet_;
    if (has_values) entity.value = infoOf(decl.initializer).value;
  } else if (!type.valid()) {
    type = fail(kType, decl.name_span, fmt::format("override '{}' has neither a type nor a value", decl.name));
  }
  if (type != kError && !(types_.isScalar(type) && !types_.isAbstract(type))) {
    type = fail(kType, decl.name_span, fmt::format("override '{}' cannot have type {}", decl.name, name(type)), "use a scalar type");
  }
  if (type != kError && is_given) {
    entity.value = overrideValue(given->second, type);
    if (!entity.value) {
      type = fail(kOverride, decl.name_span,
                  fmt::format("value {} given for override '{}' does not fit {}", given->second, decl.name, name(type)));
    }
  } else if (type != kError && !decl.initializer.valid() && has_values) {
    type = fail(kOverride, decl.name_span, fmt::format("override '{}' has no default and no value is given for it", decl.name),
                fmt::format("give a value for '{}' when reading the module", key));
  }
  entity.type = entity.value || !has_values ? type : kError;
  return addEntity(std::move(entity));
}

EntityId Checker::checkModuleVar(const VariableDecl& decl) {
  Entity entity{.kind = EntityKind::Var, .name = std::string(decl.name), .span = decl.name_span, .type = kError, .value = {}};
  Ty type = decl.type.valid() ? resolveType(decl.type) : Ty();
  AddressSpace space = AddressSpace::Private;
  Access access = Access::ReadWrite;
  bool good = type != kError;
  if (decl.templates.empty()) {
    if (good)
      fail(kType, decl.name_span, fmt::format("variable '{}' needs an address space", decl.name),
           "write var<private>, var<workgroup>, var<uniform>, var<storage> or var<immediate>");
    good = false;
  } else {
    good = readSpace(decl.templates[0], space) && good;
    access = kernel::defaultAccess(space);
    if (decl.templates.size() > 2) {
      fail(kType, ast_[decl.templates[2]].span, "var takes an address space and an access mode, and nothing else");
      good = false;
    } else if (decl.templates.size() > 1 && space != AddressSpace::Storage) {
      fail(kType, ast_[decl.templates[1]].span, "only variables in storage take an access mode");
      good = false;
    } else if (decl.templates.size() > 1) {
      good = readAccess(decl.templates[1], access) && good;
    }
  }
  if (space == AddressSpace::Function && good) {
    fail(kType, decl.name_span, "a module-scope variable cannot be in the function address space");
    good = false;
  }
  if (decl.initializer.valid()) {
    const Ty value_type = checkValue(decl.initializer);
    if (space != AddressSpace::Private) {
      fail(kType, ast_[decl.initializer].span, fmt::format("a variable in address space {} takes no initializer", toString(space)));
      good = false;
    } else if (value_type != kError && infoOf(decl.initializer).stage == Stage::Runtime) {
      fail(kConstant, ast_[decl.initializer].span, fmt::format("initializer of '{}' is not known at compile time", decl.name));
      good = false;
    } else if (value_type != kError && type != kError) {
      if (!type.valid()) type = types_.concrete(value_type);
      good = materialize(decl.initializer, type, "initializer") && good;
      entity.value = infoOf(decl.initializer).value;
    }
    if (value_type == kError) good = false;
  } else if (!type.valid()) {
    fail(kType, decl.name_span, fmt::format("variable '{}' has neither a type nor a value", decl.name));
    good = false;
  }

  checkAttributes(decl.attributes, AttributePlace::Variable);
  for (const Attribute& attribute : decl.attributes) {
    if (attribute.name != "group" && attribute.name != "binding") continue;
    const auto number = attributeNumber(attribute);
    if (number) (attribute.name == "group" ? entity.group : entity.binding) = *number;
  }
  const bool is_resource = kernel::isBound(space);
  entity.has_binding = findAttribute(decl.attributes, "group") != nullptr && findAttribute(decl.attributes, "binding") != nullptr;
  if (good && is_resource && !entity.has_binding) {
    fail(kAttribute, decl.name_span, fmt::format("variable '{}' needs @group and @binding", decl.name));
  } else if (good && !is_resource && !decl.attributes.empty()) {
    fail(kAttribute, decl.attributes[0].span, fmt::format("a variable in address space {} has no group or binding", toString(space)));
  }
  if (!good) return addEntity(std::move(entity));

  if (const std::string why = whyNotIn(type, space, access); !why.empty()) {
    fail(kType, decl.name_span, fmt::format("type {} {}", name(type), why));
  } else if (space != AddressSpace::Uniform || checkUniformLayout(type, decl.name_span)) {
    entity.type = types_.reference(space, type, access);
  }
  return addEntity(std::move(entity));
}

/// Without the language feature uniform_buffer_standard_layout: strides and nested offsets are multiples of 16.
bool Checker::checkUniformLayout(Ty type, Span where) {
  // A type may be part of others very many times.
  if (!uniform_types_.insert(type).second) return true;
  const bool standard = std::any_of(ast_.requirements.begin(), ast_.requirements.end(),
                                    [](const Directive& d) { return d.name == "uniform_buffer_standard_layout"; });
  if (standard) return true;
  const auto bad = [&](std::string message) {
    uniform_types_.clear();
    fail(kType, where, std::move(message), "pad the elements, or write 'requires uniform_buffer_standard_layout;'");
    return false;
  };
  if (types_.isArray(type)) {
    if (types_.strideOf(type) % 16 != 0) {
      return bad(fmt::format("array stride {} of {} in a uniform buffer is not a multiple of 16", types_.strideOf(type), name(type)));
    }
    return checkUniformLayout(types_.elementOf(type), where);
  }
  if (types_[type].kind != Kind::Struct) return true;
  const auto offsets = types_.memberOffsets(type);
  const auto& members = types_.structure(type).members;
  for (size_t i = 0; i < members.size(); ++i) {
    const bool nested = types_[members[i].type].kind == Kind::Struct;
    const bool composite = nested || types_.isArray(members[i].type);
    if (composite && offsets[i] % 16 != 0) {
      return bad(fmt::format("offset {} of member '{}' in a uniform buffer is not a multiple of 16", offsets[i], members[i].name));
    }
    const uint64_t nested_end = offsets[i] + (types_.sizeOf(members[i].type) + 15) / 16 * 16;
    if (nested && i + 1 < members.size() && offsets[i + 1] < nested_end) {
      return bad(fmt::format("member '{}' follows a struct too closely for a uniform buffer", members[i + 1].name));
    }
    if (!checkUniformLayout(members[i].type, where)) return false;
  }
  return true;
}

Ty Checker::checkStruct(const StructDecl& decl) {
  Structure structure;
  structure.name = std::string(decl.name);
  std::unordered_map<std::string_view, Span> names;
  bool good = true;
  const auto bad = [&](const char* code, Span where, std::string message) {
    fail(code, where, std::move(message));
    good = false;
  };
  // SPIR-V has no larger struct. WGSL asks for 1023.
  constexpr size_t kMaximumMembers = 16383;
  if (decl.members.size() > kMaximumMembers) {
    return fail(kLimit, decl.members[kMaximumMembers].name_span,
                fmt::format("a struct has at most {} members, '{}' has {}", kMaximumMembers, decl.name, decl.members.size()));
  }
  if (decl.members.empty()) bad(kType, decl.name_span, fmt::format("struct '{}' has no members", decl.name));
  for (size_t i = 0; i < decl.members.size(); ++i) {
    const ParameterDecl& member = decl.members[i];
    StructMember out;
    out.name = std::string(member.name);
    out.type = resolveType(member.type);
    if (out.type == kError) {
      good = false;
      continue;
    }
    const auto [first, is_new] = names.try_emplace(member.name, member.name_span);
    if (!is_new) {
      fail(kName, member.name_span, fmt::format("struct '{}' has two members '{}'", decl.name, member.name), {},
           {reporter_.note(first->second, "first declared here")});
      good = false;
    }
    const bool sized = !types_.isRuntimeSized(out.type) && !types_.isOverrideSized(out.type);
    const bool last_array = i + 1 == decl.members.size() && types_.isArray(out.type) && types_.isRuntimeSized(out.type);
    // Dawn has matrices in structs.
    const bool matrix = types_.containsSubgroupMatrix(out.type);
    if (!types_.isStorable(out.type) || (!sized && !last_array) || matrix) {
      bad(matrix ? kUnsupported : kType, member.name_span, fmt::format("member '{}' cannot have type {}", member.name, name(out.type)));
      continue;
    }
    good = checkAttributes(member.attributes, AttributePlace::Member) && checkInterface(member.attributes, out.type) && good;
    for (const Attribute& attribute : member.attributes) {
      out.other_stage = out.other_stage || attribute.name == "location";
      if (attribute.name == "builtin") {
        out.builtin = builtinAttribute(attribute, out.type, &out.other_stage);
      } else if (attribute.name == "align" || attribute.name == "size") {
        const auto number = attributeNumber(attribute);
        if (!number) continue;
        if (attribute.name == "align") {
          if (!std::has_single_bit(*number)) {
            bad(kAttribute, attribute.span, fmt::format("alignment {} is not a power of two", *number));
          } else if (*number < types_.alignOf(out.type)) {
            bad(kAttribute, attribute.span,
                fmt::format("alignment {} is below the {} that type {} needs", *number, types_.alignOf(out.type), name(out.type)));
          }
          out.align = *number;
        } else {
          const bool fits = *number >= types_.sizeOf(out.type) && sized;
          if (!fits)
            bad(kAttribute, attribute.span,
                fmt::format("size {} is below the {} bytes of type {}", *number, types_.sizeOf(out.type), name(out.type)));
          out.size = *number;
        }
      }
    }
    structure.members.push_back(std::move(out));
  }
  if (!good) return kError;
  return limitedType(types_.structure(std::move(structure)), decl.name_span);
}

}  // namespace lockstep::wgsl
