// SPDX-License-Identifier: Apache-2.0
// Function signatures, bodies and entry points.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "frontend/wgsl/check/checker.h"

namespace lockstep::wgsl {
namespace {

/// Builtin values that belong to other stages.
constexpr std::array kOtherBuiltins = std::to_array<std::string_view>({
    "vertex_index",
    "instance_index",
    "position",
    "front_facing",
    "frag_depth",
    "sample_index",
    "sample_mask",
    "clip_distances",
    "primitive_index",
});

/// The type of a builtin value of vertex and fragment shaders; clip_distances is an array and has none here.
Ty otherStageType(Types& types, std::string_view name) {
  if (name == "position") return types.vector(kF32, 4);
  if (name == "front_facing") return kBool;
  if (name == "frag_depth") return kF32;
  return name == "clip_distances" ? Ty() : kU32;
}

}  // namespace

kernel::Builtin Checker::builtinAttribute(const Attribute& attribute, Ty type, bool* other_stage) {
  const Expr* argument = attribute.arguments.size() == 1 ? &ast_[attribute.arguments[0]] : nullptr;
  // A name alone, not an expression: neither (name) nor name<...>.
  const bool is_name = argument != nullptr && argument->kind == ExprKind::Identifier && !argument->has_templates &&
                       argument->span.begin == argument->name_span.begin;
  if (!is_name) {
    fail(kAttribute, attribute.span, "attribute 'builtin' needs the name of a builtin value");
    return kernel::Builtin::None;
  }
  const auto builtin = kernel::findBuiltin(argument->name);
  if (!builtin || *builtin == kernel::Builtin::None) {
    const bool known = std::find(kOtherBuiltins.begin(), kOtherBuiltins.end(), argument->name) != kOtherBuiltins.end();
    if (known && other_stage != nullptr) {
      *other_stage = true;
      const Ty wanted = otherStageType(types_, argument->name);
      const bool distances = types_.isArray(type) && types_[type].element == kF32 && types_[type].count <= 8;
      if (type != kError && (wanted.valid() ? type != wanted : !distances)) {
        fail(kType, attribute.span, fmt::format("builtin value '{}' cannot have type {}", argument->name, name(type)));
      }
      const bool enabled =
          std::any_of(ast_.enables.begin(), ast_.enables.end(), [](const Directive& d) { return d.name == "clip_distances"; });
      if (!wanted.valid() && !enabled) {
        fail(kAttribute, attribute.span, "builtin value 'clip_distances' is used without being enabled",
             "write 'enable clip_distances;' at the top of the module");
      }
      return kernel::Builtin::None;
    }
    fail(known ? kUnsupported : kAttribute, argument->span,
         known ? fmt::format("builtin value '{}' is not supported", argument->name)
               : fmt::format("'{}' is not a builtin value", argument->name));
    return kernel::Builtin::None;
  }
  const Ty wanted = kernel::isVector(*builtin) ? types_.vector(kU32, 3) : kU32;
  if (type != wanted && type != kError) {
    fail(kType, attribute.span, fmt::format("builtin value '{}' has type {}, not {}", argument->name, name(wanted), name(type)));
  }
  if (kernel::needsSubgroups(*builtin) && !subgroups_enabled_) {
    fail(kAttribute, attribute.span, fmt::format("builtin value '{}' needs subgroups", argument->name),
         "write 'enable subgroups;' at the top of the module");
  }
  program_.uses_subgroups = program_.uses_subgroups || kernel::needsSubgroups(*builtin);
  return *builtin;
}

std::array<uint32_t, 3> Checker::workgroupSize(const Attribute& attribute, bool& good) {
  std::array<uint32_t, 3> size{1, 1, 1};
  const auto bad = [&](const char* code, ExprId where, std::string message) {
    fail(code, ast_[where].span, std::move(message));
    good = false;
  };
  Ty common = kAbstractInt;
  // checkAttributes() has complained of a fourth one.
  for (size_t i = 0; i < std::min(size.size(), attribute.arguments.size()); ++i) {
    const ExprId id = attribute.arguments[i];
    const Ty type = checkValue(id);
    const ExprInfo& info = infoOf(id);
    const bool is_integer = type == kAbstractInt || type == kI32 || type == kU32;
    if (type == kError) {
      good = false;
    } else if (!is_integer || info.stage == Stage::Runtime) {
      bad(kAttribute, id, "workgroup size is not an integer that is known at compile time");
    } else if (common != kAbstractInt && type != kAbstractInt && type != common) {
      bad(kType, id, "workgroup sizes mix i32 and u32");
    } else if (info.value && (info.value->integer < 1 || info.value->integer > INT32_MAX)) {
      bad(kAttribute, id,
          fmt::format("workgroup size {} is {}", info.value->integer, info.value->integer < 1 ? "not positive" : "too large"));
    } else if (info.value) {
      size[i] = static_cast<uint32_t>(info.value->integer);
    }
    if (is_integer && type != kAbstractInt) common = type;
  }
  return size;
}

uint32_t Checker::subgroupSize(const Attribute& attribute, bool& good) {
  const auto bad = [&](const char* code, Span where, std::string message, std::string remedy = {}) {
    fail(code, where, std::move(message), std::move(remedy));
    good = false;
    return 0u;
  };
  if (!subgroup_sizes_enabled_) {
    return bad(kAttribute, attribute.span, "attribute 'subgroup_size' is used without being enabled",
               "write 'enable subgroup_size_control;' at the top of the module");
  }
  // checkAttributes() has complained of other numbers of them.
  if (attribute.arguments.size() != 1) return 0;
  const ExprId id = attribute.arguments[0];
  const Ty type = checkValue(id);
  const ExprInfo& info = infoOf(id);
  const bool is_integer = type == kAbstractInt || type == kI32 || type == kU32;
  if (type == kError) {
    good = false;
    return 0;
  }
  if (!is_integer || info.stage == Stage::Runtime) {
    return bad(kAttribute, ast_[id].span, "subgroup size is not an integer that is known at compile time");
  }
  if (!info.value) return 0;
  const int64_t size = info.value->integer;
  if (size < 4 || size > 128 || !std::has_single_bit(static_cast<uint64_t>(size))) {
    return bad(kAttribute, ast_[id].span, fmt::format("subgroup size {} is not a power of two from 4 to 128", size));
  }
  return static_cast<uint32_t>(size);
}

/// WGSL asks for whole subgroups along x. That they are neighbours is promised for workgroups of one dimension only, so that others are
/// not supported.
void Checker::checkSubgroups(const FunctionDecl& decl, const FunctionInfo& info, bool& good) {
  if (info.subgroup_size == 0 || !info.workgroup_size) return;
  const auto attribute = std::ranges::find(decl.attributes, "workgroup_size", &Attribute::name);
  const auto known = [&](ExprId id) { return infoOf(id).value.has_value(); };
  if (!std::ranges::all_of(attribute->arguments, known)) return;
  const auto& [x, y, z] = *info.workgroup_size;
  const bool whole = x % info.subgroup_size == 0;
  if (whole && y == 1 && z == 1) return;
  fail(whole ? kUnsupported : kAttribute, attribute->span,
       fmt::format("a workgroup of {} x {} x {} cannot be split into subgroups of {}", x, y, z, info.subgroup_size),
       fmt::format("give it one dimension and a multiple of {}", info.subgroup_size));
  good = false;
}

void Checker::checkSignature(uint32_t index) {
  const FunctionDecl& decl = ast_.functions[index];
  FunctionInfo info;
  bool good = checkAttributes(decl.attributes, AttributePlace::Function);
  bool compute = false, other_stage = false;
  for (const Attribute& attribute : decl.attributes) {
    if (attribute.name == "compute") {
      compute = true;
    } else if (attribute.name == "vertex" || attribute.name == "fragment") {
      fail(kUnsupported, attribute.span, fmt::format("{} shaders are not supported, only compute shaders are", attribute.name));
      good = false;
      other_stage = true;
    } else if (attribute.name == "workgroup_size") {
      info.workgroup_size = workgroupSize(attribute, good);
    } else if (attribute.name == "subgroup_size") {
      info.subgroup_size = subgroupSize(attribute, good);
    } else if (attribute.name == "must_use") {
      info.must_use = true;
      if (!decl.return_type.valid()) fail(kAttribute, attribute.span, "attribute 'must_use' needs a function that returns a value");
    }
  }
  const bool has_size =
      std::any_of(decl.attributes.begin(), decl.attributes.end(), [](const Attribute& a) { return a.name == "workgroup_size"; });
  if (compute != has_size) {
    fail(kAttribute, decl.name_span,
         compute ? fmt::format("compute shader '{}' needs @workgroup_size", decl.name)
                 : fmt::format("function '{}' has @workgroup_size but not @compute", decl.name));
    good = false;
  }
  const auto wanted = std::ranges::find(decl.attributes, "subgroup_size", &Attribute::name);
  if (wanted != decl.attributes.end() && !compute && !other_stage) {
    fail(kAttribute, wanted->span, fmt::format("function '{}' has @subgroup_size but not @compute", decl.name));
    good = false;
  }
  if (good) checkSubgroups(decl, info, good);
  // Also what SPIR-V can say.
  constexpr size_t kMaximumParameters = 255;
  const size_t count = std::min(decl.parameters.size(), kMaximumParameters);
  if (count < decl.parameters.size()) {
    fail(kLimit, decl.parameters[count].name_span,
         fmt::format("a function has at most {} parameters, '{}' has {}", kMaximumParameters, decl.name, decl.parameters.size()));
    good = false;
  }
  for (const ParameterDecl& parameter : std::span(decl.parameters).first(count)) {
    const Ty type = resolveType(parameter.type);
    Entity entity{.kind = EntityKind::Parameter,
                  .name = std::string(parameter.name),
                  .span = parameter.name_span,
                  .type = type,
                  .value = {},
                  .scope = 1};
    kernel::Builtin builtin = kernel::Builtin::None;
    const bool entry = compute || other_stage;
    if (!checkAttributes(parameter.attributes, entry ? AttributePlace::EntryParameter : AttributePlace::Parameter)) {
      good = false;
    } else if (compute) {
      for (const Attribute& attribute : parameter.attributes) {
        if (attribute.name == "builtin") {
          builtin = builtinAttribute(attribute, type);
          good = good && builtin != kernel::Builtin::None;
        } else {
          fail(kAttribute, attribute.span, fmt::format("attribute '{}' belongs to vertex and fragment shaders", attribute.name));
        }
      }
    }
    const bool fits = types_.isConstructible(type) || (types_.isPointer(type) && !compute);
    if (!fits) fail(kType, parameter.name_span, fmt::format("parameter '{}' cannot have type {}", parameter.name, name(type)));
    good = good && fits && type != kError;
    info.parameters.push_back(addEntity(std::move(entity)));
    info.builtins.push_back(builtin);
  }
  if (decl.return_type.valid()) {
    info.return_type = resolveType(decl.return_type);
    if (info.return_type != kError && !types_.isConstructible(info.return_type)) {
      info.return_type = fail(kType, ast_[decl.return_type].span, fmt::format("a function cannot return type {}", name(info.return_type)));
    }
    good = good && info.return_type != kError;
    good = checkAttributes(decl.return_attributes, compute || other_stage ? AttributePlace::EntryResult : AttributePlace::Result) && good;
  }
  info.valid = good;
  program_.functions[index] = std::move(info);
  if (compute && good) checkEntryPoint(index);
}

void Checker::checkEntryPoint(uint32_t index) {
  const FunctionDecl& decl = ast_.functions[index];
  FunctionInfo& info = program_.functions[index];
  if (info.return_type != kVoid) fail(kType, ast_[decl.return_type].span, "a compute shader returns nothing");
  std::set<kernel::Builtin> seen;
  const auto use = [&](kernel::Builtin builtin, Span where) {
    if (!seen.insert(builtin).second) {
      fail(kAttribute, where, fmt::format("builtin value '{}' is taken twice", kernel::toString(builtin)));
    }
  };
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Entity& parameter = program_[info.parameters[i]];
    if (info.builtins[i] != kernel::Builtin::None) {
      use(info.builtins[i], parameter.span);
      continue;
    }
    const bool is_struct = types_[parameter.type].kind == Kind::Struct;
    if (!is_struct) {
      fail(kAttribute, parameter.span, fmt::format("entry point parameter '{}' needs @builtin", parameter.name));
      continue;
    }
    for (const StructMember& member : types_.structure(parameter.type).members) {
      if (member.builtin == kernel::Builtin::None) {
        fail(kAttribute, parameter.span,
             member.other_stage ? fmt::format("member '{}' of entry point parameter '{}' belongs to vertex and fragment shaders",
                                              member.name, parameter.name)
                                : fmt::format("member '{}' of entry point parameter '{}' needs @builtin", member.name, parameter.name));
      } else {
        use(member.builtin, parameter.span);
      }
    }
  }
}

void Checker::checkFunctionBody(uint32_t index) {
  const FunctionDecl& decl = ast_.functions[index];
  FunctionInfo& info = program_.functions[index];
  info.broken = !decl.whole;
  // What is not there may be what a statement needs.
  if (info.broken) return;
  function_ = index;
  unit_ = function_globals_[index];
  scopes_.enter();
  breakables_.clear();
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Entity& parameter = program_[info.parameters[i]];
    const bool is_new = scopes_.declare(decl.parameters[i].name, info.parameters[i]) == info.parameters[i];
    if (!is_new) fail(kName, parameter.span, fmt::format("function '{}' has two parameters '{}'", decl.name, parameter.name));
  }
  // The parameters and the body share one scope.
  const Behavior behavior = checkBlock(decl.body, false);
  if (info.return_type != kVoid && info.return_type != kError && (behavior & kNext) != 0) {
    const uint32_t end = ast_[decl.body].span.end;
    fail(kFlow, {end - 1, end}, fmt::format("function '{}' can end without returning a value", decl.name));
  }
  scopes_.leave();
  function_ = UINT32_MAX;
  unit_ = SIZE_MAX;
}

}  // namespace lockstep::wgsl
