// SPDX-License-Identifier: Apache-2.0
// Type expressions and the meaning of names.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/check/checker.h"
#include "ir/support/nearest.h"

namespace lockstep::wgsl {
namespace {

struct ScalarName {
  std::string_view name;
  Ty type;
};

constexpr std::array<ScalarName, 5> kScalars{{{"bool", kBool}, {"i32", kI32}, {"u32", kU32}, {"f32", kF32}, {"f16", kF16}}};
constexpr std::array<ScalarName, 4> kSuffixes{{{"i", kI32}, {"u", kU32}, {"f", kF32}, {"h", kF16}}};

bool isWidth(char c) { return c >= '2' && c <= '4'; }

/// The scalar of a short name ("vec3f"); invalid for the bare generator; nullopt when the suffix is wrong.
std::optional<Ty> suffixScalar(std::string_view suffix, bool floats_only) {
  if (suffix.empty()) return Ty();
  const auto* row = std::find_if(kSuffixes.begin(), kSuffixes.end(), [&](const ScalarName& s) { return s.name == suffix; });
  if (row == kSuffixes.end() || (floats_only && row->type != kF32 && row->type != kF16)) return std::nullopt;
  return row->type;
}

}  // namespace

std::optional<TypeName> findTypeName(std::string_view name) {
  const auto* scalar = std::find_if(kScalars.begin(), kScalars.end(), [&](const ScalarName& s) { return s.name == name; });
  if (scalar != kScalars.end()) return TypeName{.kind = static_cast<Kind>(scalar->type.value), .scalar = scalar->type};
  if (name == "bf16") return TypeName{.kind = Kind::BF16, .scalar = kBF16};
  if (const auto use = kernel::findMatrixUse(name)) return TypeName{.kind = Kind::SubgroupMatrix, .scalar = {}, .use = *use};
  if (name == "array") return TypeName{.kind = Kind::Array, .scalar = {}};
  if (name == "atomic") return TypeName{.kind = Kind::Atomic, .scalar = {}};
  if (name == "ptr") return TypeName{.kind = Kind::Pointer, .scalar = {}};
  if (name.size() >= 4 && name.starts_with("vec") && isWidth(name[3])) {
    const auto suffix = suffixScalar(name.substr(4), false);
    if (suffix) return TypeName{.kind = Kind::Vector, .rows = static_cast<uint32_t>(name[3] - '0'), .scalar = *suffix};
  }
  if (name.size() >= 6 && name.starts_with("mat") && isWidth(name[3]) && name[4] == 'x' && isWidth(name[5])) {
    const auto suffix = suffixScalar(name.substr(6), true);
    const auto columns = static_cast<uint32_t>(name[3] - '0'), rows = static_cast<uint32_t>(name[5] - '0');
    if (suffix) return TypeName{.kind = Kind::Matrix, .columns = columns, .rows = rows, .scalar = *suffix};
  }
  return std::nullopt;
}

bool isUnsupportedType(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"sampler", "sampler_comparison", "buffer", "binding_array", "i8", "u8", "i64", "u64", "f64", "acceleration_structure", "ray_query"});
  return name.starts_with("texture_") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Checker::Meaning Checker::lookUp(std::string_view name, Span where) {
  Meaning meaning;
  if (const EntityId local = scopes_.find(name); local.valid()) {
    meaning.kind = Meaning::Kind::Value;
    meaning.entity = local;
    return meaning;
  }
  if (const auto found = global_names_.find(name); found != global_names_.end()) {
    Global& global = globals_[found->second];
    if (unit_ != SIZE_MAX) globals_[unit_].uses.insert(found->second);
    const bool is_function = global.declaration.kind == DeclarationKind::Function;
    // A function that is being checked may be named again: that is recursion, reported with the call graph.
    if (!is_function || global.state == State::Waiting) resolveGlobal(global);
    meaning.kind = Meaning::Kind::Type;
    meaning.type = global.type;
    if (is_function) {
      meaning.kind = Meaning::Kind::Function;
      meaning.function = global.declaration.index;
    } else if (global.declaration.kind == DeclarationKind::Variable) {
      meaning.kind = global.entity.valid() ? Meaning::Kind::Value : Meaning::Kind::Failed;
      meaning.entity = global.entity;
    }
    return meaning;
  }
  if (const auto type_name = findTypeName(name)) {
    meaning.kind = Meaning::Kind::TypeGenerator;
    meaning.type_name = *type_name;
  } else if (const auto builtin = findBuiltinFunction(name)) {
    meaning.kind = Meaning::Kind::Builtin;
    meaning.builtin = *builtin;
  } else {
    const bool unsupported = isUnsupportedBuiltin(name) || isUnsupportedType(name);
    fail(unsupported ? kUnsupported : kName, where,
         unsupported ? fmt::format("'{}' is not supported", name) : fmt::format("'{}' is not declared", name),
         unsupported ? "" : similarName(name));
  }
  return meaning;
}

std::string Checker::similarName(std::string_view name) const {
  if (reporter_.full()) return {};  // nobody would see it
  // Not for what nobody types, nor for messages that nobody will see.
  constexpr size_t kLongest = 40;
  if (name.size() > kLongest || reporter_.full()) return "";
  std::vector<std::string_view> names = builtinNames();
  const auto add = [&](std::string_view candidate) {
    if (candidate.size() <= kLongest) names.push_back(candidate);
  };
  for (const std::string_view local : scopes_.names()) add(local);
  for (const auto& [global, index] : global_names_) add(global);
  for (const ScalarName& scalar : kScalars) add(scalar.name);
  // The order of the tables must not show.
  std::sort(names.begin(), names.end());
  const std::string near = nearestName(name, names);
  return near.empty() || name.size() < 3 ? "" : fmt::format("did you mean '{}'?", near);
}

Ty Checker::resolveType(ExprId id) {
  const Expr& expr = ast_[id];
  if (expr.kind != ExprKind::Identifier) return fail(kType, expr.span, "expected a type, found an expression");
  const Meaning meaning = lookUp(expr.name, expr.name_span);
  if (meaning.kind == Meaning::Kind::Unknown || meaning.kind == Meaning::Kind::Failed) return kError;
  if (meaning.kind == Meaning::Kind::Type) {
    if (expr.has_templates) return fail(kType, expr.span, fmt::format("type '{}' takes no template list", expr.name));
    return meaning.type;
  }
  if (meaning.kind == Meaning::Kind::TypeGenerator) return typeFromName(meaning.type_name, expr);
  return fail(kType, expr.span, fmt::format("'{}' is not a type", expr.name));
}

Ty Checker::typeFromName(const TypeName& type_name, const Expr& expr) {
  if (type_name.kind == Kind::Array) return arrayType(expr);
  if (type_name.kind == Kind::Pointer) return pointerType(expr);
  if (type_name.kind == Kind::SubgroupMatrix) return subgroupMatrixType(type_name, expr);
  if (type_name.kind == Kind::BF16) {
    return fail(kType, expr.span, "bf16 is the component type of subgroup_matrix_left and subgroup_matrix_right, and nothing else",
                "elsewhere keep two of them in a u32");
  }
  Ty scalar = type_name.scalar;
  if (scalar.valid() && expr.has_templates) return fail(kType, expr.span, fmt::format("type '{}' takes no template list", expr.name));
  if (!scalar.valid()) {
    if (expr.templates.size() != 1) return fail(kType, expr.span, fmt::format("'{}' needs one element type", expr.name));
    scalar = resolveType(expr.templates[0]);
    if (scalar == kError) return kError;
    const bool matrix_element = scalar == kF32 || scalar == kF16, atomic_element = scalar == kI32 || scalar == kU32;
    const bool fits = type_name.kind == Kind::Vector   ? types_.isScalar(scalar)
                      : type_name.kind == Kind::Matrix ? matrix_element
                                                       : atomic_element;
    if (!fits)
      return fail(kType, ast_[expr.templates[0]].span, fmt::format("'{}' cannot have elements of type {}", expr.name, name(scalar)));
  }
  if (scalar == kF16 && !f16_enabled_) {
    return fail(kType, expr.span, "f16 is used without being enabled", "write 'enable f16;' at the top of the module");
  }
  if (type_name.kind == Kind::Vector) return types_.vector(scalar, type_name.rows);
  if (type_name.kind == Kind::Matrix) return types_.matrix(scalar, type_name.columns, type_name.rows);
  return type_name.kind == Kind::Atomic ? types_.atomic(scalar) : scalar;
}

Ty Checker::arrayType(const Expr& expr) {
  if (expr.templates.empty() || expr.templates.size() > 2) {
    return fail(kType, expr.span, "array needs an element type and, unless it is runtime-sized, a count");
  }
  const Ty element = resolveType(expr.templates[0]);
  uint32_t count = 0, override_count = 0;
  const bool counted = expr.templates.size() == 1 || arrayCount(expr.templates[1], count, override_count);
  if (element == kError || !counted) return kError;
  const bool fixed_footprint = !types_.isRuntimeSized(element) && !types_.isOverrideSized(element);
  if (!types_.isStorable(element) || !fixed_footprint) {
    const bool overridden = types_.isOverrideSized(element);
    return fail(kType, ast_[expr.templates[0]].span,
                overridden ? "only the outermost count of an array may come from an override"
                           : fmt::format("an array cannot have elements of type {}", name(element)));
  }
  return limitedType(types_.array(element, count, override_count), expr.span);
}

bool Checker::arrayCount(ExprId id, uint32_t& count, uint32_t& override_count) {
  const uint32_t quiet = std::exchange(quiet_, 0);
  const Ty type = checkValue(id);
  quiet_ = quiet;
  if (type == kError) return false;
  const ExprInfo& info = infoOf(id);
  const Span span = ast_[id].span;
  const bool is_integer = type == kAbstractInt || type == kI32 || type == kU32;
  if (!is_integer || info.stage == Stage::Runtime) {
    fail(kType, span,
         is_integer ? "array count is not a constant expression"
                    : fmt::format("array count has type {}, but i32 or u32 is needed", name(type)));
    return false;
  }
  if (info.stage == Stage::Override) {
    // Two counts are surely the same only when both are the same override.
    const bool alone = ast_[id].kind == ExprKind::Identifier;
    uint32_t& known = override_counts_[alone ? info.entity.value : UINT32_MAX];
    if (known == 0 || !alone) known = types_.overrideCount(reporter_.source().text(span));
    override_count = known;
    if (!info.value) return true;
  }
  const int64_t value = info.value->integer;
  if (value < 1 || value > UINT32_MAX) {
    fail(kType, span, fmt::format("array count {} is {}", value, value < 1 ? "not positive" : "too large"));
    return false;
  }
  count = static_cast<uint32_t>(value);
  return true;
}

Ty Checker::limitedType(Ty type, Span where) {
  if (types_.sizeOf(type) > kMaximumTypeSize) return fail(kLimit, where, "type is larger than 4 GiB");
  if (types_.depth(type) > kMaximumTypeDepth + 1) return fail(kLimit, where, "type is nested too deeply");
  return type;
}

/// Names of address spaces and access modes mean something else where a declaration has them.
bool Checker::isShadowed(const Expr& expr) {
  if (expr.kind != ExprKind::Identifier) return false;
  const auto global = global_names_.find(expr.name);
  Span where;
  bool found = global != global_names_.end();
  if (found) where = globals_[global->second].span;
  if (const EntityId local = scopes_.find(expr.name); local.valid()) {
    found = true;
    where = program_[local].span;
  }
  if (found) {
    fail(kName, expr.span, fmt::format("'{}' is a declaration here, not a word of WGSL", expr.name), {},
         {reporter_.note(where, "declared here")});
  }
  return found;
}

bool Checker::readSpace(ExprId id, AddressSpace& space) {
  const Expr& expr = ast_[id];
  if (isShadowed(expr)) return false;
  for (const AddressSpace candidate : {AddressSpace::Function, AddressSpace::Private, AddressSpace::Workgroup, AddressSpace::Uniform,
                                       AddressSpace::Storage, AddressSpace::Immediate}) {
    if (expr.kind != ExprKind::Identifier || expr.has_templates || expr.name != toString(candidate)) continue;
    space = candidate;
    return true;
  }
  fail(kType, expr.span, fmt::format("'{}' is not an address space", reporter_.source().text(expr.span)),
       "use function, private, workgroup, uniform, storage or immediate");
  return false;
}

bool Checker::readAccess(ExprId id, Access& access) {
  const Expr& expr = ast_[id];
  if (isShadowed(expr)) return false;
  for (const Access candidate : {Access::Read, Access::ReadWrite}) {
    if (expr.kind != ExprKind::Identifier || expr.name != toString(candidate)) continue;
    access = candidate;
    return true;
  }
  fail(kType, expr.span, fmt::format("'{}' is not an access mode of a buffer", reporter_.source().text(expr.span)),
       "use read or read_write");
  return false;
}

bool Checker::readDirection(ExprId id, bool& by_columns) {
  const Expr& expr = ast_[id];
  if (isShadowed(expr)) return false;
  by_columns = expr.name == kColumnMajor;
  if (expr.kind == ExprKind::Identifier && !expr.has_templates && (by_columns || expr.name == kRowMajor)) return true;
  fail(kType, expr.span, fmt::format("'{}' is not a direction in which a matrix lies in memory", reporter_.source().text(expr.span)),
       fmt::format("use {} or {}", kRowMajor, kColumnMajor));
  return false;
}

Ty Checker::pointerType(const Expr& expr) {
  if (expr.templates.size() < 2 || expr.templates.size() > 3) return fail(kType, expr.span, "ptr needs an address space and a type");
  AddressSpace space = AddressSpace::Function;
  if (!readSpace(expr.templates[0], space)) return kError;
  const Ty element = resolveType(expr.templates[1]);
  Access access = kernel::defaultAccess(space);
  if (expr.templates.size() == 3) {
    if (space != AddressSpace::Storage) {
      return fail(kType, ast_[expr.templates[2]].span, "only pointers to storage take an access mode");
    }
    if (!readAccess(expr.templates[2], access)) return kError;
  }
  if (element == kError) return kError;
  if (const std::string why = whyNotIn(element, space, access); !why.empty()) {
    return fail(kType, ast_[expr.templates[1]].span,
                fmt::format("no pointer to {} memory: type {} {}", kernel::toString(space), name(element), why));
  }
  return types_.pointer(space, element, access);
}

/// Why no variable of the type can be in the address space; empty when one can.
std::string Checker::whyNotIn(Ty type, AddressSpace space, Access access) const {
  const bool own = space == AddressSpace::Private || space == AddressSpace::Function;
  if (types_.containsSubgroupMatrix(type) && !own) return "holds subgroup matrices, which only function and private variables can have";
  if (kernel::isBound(space) && !types_.isHostShareable(type)) return "cannot be shared with a buffer";
  if (space == AddressSpace::Immediate && !types_.isHostShareable(type)) return "cannot be shared with the host";
  if (space == AddressSpace::Immediate && types_.containsArray(type)) return "holds an array, which immediate data cannot have";
  if (types_.isRuntimeSized(type) && space != AddressSpace::Storage) return "is runtime-sized, which only storage buffers can be";
  if (types_.isOverrideSized(type) && space != AddressSpace::Workgroup) {
    return "has its size from an override, which only workgroup variables can have";
  }
  const bool atomic_place = space == AddressSpace::Workgroup || (space == AddressSpace::Storage && access == Access::ReadWrite);
  if (types_.containsAtomic(type) && !atomic_place) return "holds atomics, which need workgroup memory or read_write storage";
  if (own && !types_.isConstructible(type)) return fmt::format("cannot be the type of a {} variable", kernel::toString(space));
  return types_.isStorable(type) ? "" : "cannot be the type of a variable";
}

}  // namespace lockstep::wgsl
