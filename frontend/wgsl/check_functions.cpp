// SPDX-License-Identifier: Apache-2.0
// Function signatures, bodies and entry points.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/checker.h"

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

}  // namespace

kernel::Builtin Checker::builtinAttribute(const Attribute& attribute, Ty type) {
  const Expr* argument = attribute.arguments.size() == 1 ? &ast_[attribute.arguments[0]] : nullptr;
  if (argument == nullptr || argument->kind != ExprKind::Identifier) {
    fail(kAttribute, attribute.span, "attribute 'builtin' needs the name of a builtin value");
    return kernel::Builtin::None;
  }
  const auto builtin = kernel::findBuiltin(argument->name);
  if (!builtin || *builtin == kernel::Builtin::None) {
    const bool known = std::find(kOtherBuiltins.begin(), kOtherBuiltins.end(), argument->name) != kOtherBuiltins.end();
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
  return *builtin;
}

std::optional<std::array<uint32_t, 3>> Checker::workgroupSize(const Attribute& attribute) {
  std::array<uint32_t, 3> size{1, 1, 1};
  if (attribute.arguments.empty() || attribute.arguments.size() > 3) {
    fail(kAttribute, attribute.span, "attribute 'workgroup_size' needs one to three sizes");
    return std::nullopt;
  }
  Ty common = kAbstractInt;
  for (size_t i = 0; i < attribute.arguments.size(); ++i) {
    const ExprId id = attribute.arguments[i];
    const Ty type = checkValue(id);
    if (type == kError) return std::nullopt;
    const ExprInfo& info = infoOf(id);
    const bool is_integer = type == kAbstractInt || type == kI32 || type == kU32;
    if (!is_integer || !info.value) {
      fail(kAttribute, ast_[id].span, "workgroup size is not an integer that is known at compile time");
      return std::nullopt;
    }
    if (common != kAbstractInt && type != kAbstractInt && type != common) {
      fail(kType, ast_[id].span, "workgroup sizes mix i32 and u32");
      return std::nullopt;
    }
    if (type != kAbstractInt) common = type;
    if (info.value->integer < 1 || info.value->integer > INT32_MAX) {
      fail(kAttribute, ast_[id].span, fmt::format("workgroup size {} is not positive", info.value->integer));
      return std::nullopt;
    }
    size[i] = static_cast<uint32_t>(info.value->integer);
  }
  return size;
}

void Checker::checkSignature(uint32_t index) {
  const FunctionDecl& decl = ast_.functions[index];
  FunctionInfo info;
  bool good = true;
  bool compute = false;
  for (const Attribute& attribute : decl.attributes) {
    if (attribute.name == "compute") {
      compute = true;
    } else if (attribute.name == "vertex" || attribute.name == "fragment") {
      fail(kUnsupported, attribute.span, fmt::format("{} shaders are not supported, only compute shaders are", attribute.name));
      good = false;
    } else if (attribute.name == "workgroup_size") {
      info.workgroup_size = workgroupSize(attribute);
      good = good && info.workgroup_size;
    } else if (attribute.name == "must_use") {
      info.must_use = true;
      if (!decl.return_type.valid()) fail(kAttribute, attribute.span, "attribute 'must_use' needs a function that returns a value");
    } else if (attribute.name != "diagnostic") {
      fail(kAttribute, attribute.span, fmt::format("attribute '{}' is not allowed on a function", attribute.name));
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
  for (const ParameterDecl& parameter : decl.parameters) {
    const Ty type = resolveType(parameter.type);
    Entity entity{.kind = EntityKind::Parameter,
                  .name = std::string(parameter.name),
                  .span = parameter.name_span,
                  .type = type,
                  .value = {},
                  .scope = 1};
    kernel::Builtin builtin = kernel::Builtin::None;
    for (const Attribute& attribute : parameter.attributes) {
      if (attribute.name == "builtin") {
        builtin = builtinAttribute(attribute, type);
        good = good && builtin != kernel::Builtin::None;
        if (!compute) fail(kAttribute, attribute.span, "only parameters of an entry point have builtin values");
      } else if (attribute.name == "location" || attribute.name == "interpolate" || attribute.name == "invariant") {
        fail(kUnsupported, attribute.span,
             fmt::format("attribute '{}' belongs to vertex and fragment shaders, and only compute shaders are supported", attribute.name));
      } else {
        fail(kAttribute, attribute.span, fmt::format("attribute '{}' is not allowed on a parameter", attribute.name));
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
    for (const Attribute& attribute : decl.return_attributes) {
      fail(kAttribute, attribute.span, fmt::format("attribute '{}' is not allowed on the result of a compute shader", attribute.name));
    }
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
             fmt::format("member '{}' of entry point parameter '{}' needs @builtin", member.name, parameter.name));
      } else {
        use(member.builtin, parameter.span);
      }
    }
  }
}

void Checker::checkFunctionBody(uint32_t index) {
  const FunctionDecl& decl = ast_.functions[index];
  FunctionInfo& info = program_.functions[index];
  function_ = index;
  scopes_.assign(1, Scope());
  breakables_.clear();
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Entity& parameter = program_[info.parameters[i]];
    const bool is_new = scopes_.back().try_emplace(decl.parameters[i].name, info.parameters[i]).second;
    if (!is_new) fail(kName, parameter.span, fmt::format("function '{}' has two parameters '{}'", decl.name, parameter.name));
  }
  // The parameters and the body share one scope.
  const Behavior behavior = checkBlock(decl.body, false);
  if (info.return_type != kVoid && info.return_type != kError && (behavior & kNext) != 0) {
    const uint32_t end = ast_[decl.body].span.end;
    fail(kFlow, {end - 1, end}, fmt::format("function '{}' can end without returning a value", decl.name));
  }
  scopes_.clear();
  function_ = UINT32_MAX;
}

}  // namespace lockstep::wgsl
