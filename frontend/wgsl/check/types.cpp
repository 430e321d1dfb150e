// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::wgsl {
namespace {

constexpr std::array<std::string_view, 10> kScalarNames{"<error>", "void", "bool", "abstract-int", "abstract-float",
                                                        "i32",     "u32",  "f32",  "f16",          "bf16"};

/// "f32", "vec2_f16", "vec3_abstract"
std::string resultSuffix(const Types& types, Ty value) {
  const Ty scalar = types.scalarOf(value);
  const std::string name = scalar == kAbstractFloat ? "abstract" : types.toString(scalar);
  return types.isVector(value) ? fmt::format("vec{}_{}", types.width(value), name) : name;
}

}  // namespace

Types::Types() {
  // Nobody asks for these by their parts, so they need no place in the map.
  for (size_t i = 0; i < kScalarNames.size(); ++i) {
    types_.push_back({.kind = static_cast<Kind>(i), .element = {}});
    facts_.push_back(factsOf(Ty(i)));
  }
}

Ty Types::intern(const Type& type) {
  const auto [entry, is_new] = interned_.try_emplace(type, Ty(types_.size()));
  if (!is_new) return entry->second;
  types_.push_back(type);
  const Ty id = entry->second;
  facts_.push_back(factsOf(id));
  return id;
}

Ty Types::vector(Ty scalar, uint32_t width) {
  return intern({.kind = Kind::Vector, .element = scalar, .rows = static_cast<uint8_t>(width)});
}

Ty Types::matrix(Ty scalar, uint32_t columns, uint32_t rows) {
  return intern({.kind = Kind::Matrix, .element = scalar, .rows = static_cast<uint8_t>(rows), .columns = static_cast<uint8_t>(columns)});
}

Ty Types::subgroupMatrix(kernel::MatrixUse use, Ty component, uint32_t columns, uint32_t rows) {
  return intern({.kind = Kind::SubgroupMatrix,
                 .element = component,
                 .rows = static_cast<uint8_t>(rows),
                 .columns = static_cast<uint8_t>(columns),
                 .use = use});
}

Ty Types::array(Ty element, uint32_t count, uint32_t override_count) {
  return intern({.kind = Kind::Array, .element = element, .count = count, .override_count = override_count});
}

uint32_t Types::overrideCount(std::string_view text) {
  override_counts_.emplace_back(text);
  return static_cast<uint32_t>(override_counts_.size());
}

Ty Types::structure(Structure structure) {
  structures_.push_back(std::move(structure));
  return intern({.kind = Kind::Struct, .element = {}, .structure = static_cast<uint32_t>(structures_.size() - 1)});
}

Ty Types::atomic(Ty scalar) { return intern({.kind = Kind::Atomic, .element = scalar}); }

Ty Types::pointer(AddressSpace space, Ty store_type, Access access) {
  return intern({.kind = Kind::Pointer, .element = store_type, .space = space, .access = access});
}

Ty Types::reference(AddressSpace space, Ty store_type, Access access) {
  return intern({.kind = Kind::Reference, .element = store_type, .space = space, .access = access});
}

Ty Types::atomicExchangeResult(Ty scalar) {
  return builtinResult(fmt::format("__atomic_compare_exchange_result<{}>", toString(scalar)),
                       {{.name = "old_value", .type = scalar}, {.name = "exchanged", .type = kBool}});
}

Ty Types::frexpResult(Ty value) {
  const Ty exponent = withScalar(value, scalarOf(value) == kAbstractFloat ? kAbstractInt : kI32);
  return builtinResult(fmt::format("__frexp_result_{}", resultSuffix(*this, value)),
                       {{.name = "fract", .type = value}, {.name = "exp", .type = exponent}});
}

Ty Types::modfResult(Ty value) {
  return builtinResult(fmt::format("__modf_result_{}", resultSuffix(*this, value)),
                       {{.name = "fract", .type = value}, {.name = "whole", .type = value}});
}

Ty Types::builtinResult(std::string name, std::vector<StructMember> members) {
  Ty& known = builtin_results_[name];
  if (!known.valid()) known = structure({.name = std::move(name), .members = std::move(members), .from_builtin = true});
  return known;
}

Ty Types::scalarOf(Ty id) const {
  if (isScalar(id)) return id;
  return isVector(id) || isMatrix(id) ? (*this)[id].element : kError;
}

bool Types::isAbstract(Ty id) const {
  const Type& type = (*this)[id];
  if (type.kind == Kind::Vector || type.kind == Kind::Matrix || type.kind == Kind::Array) return isAbstract(type.element);
  if (type.kind == Kind::Struct && structure(id).from_builtin) return isAbstract(structure(id).members[0].type);
  return id == kAbstractInt || id == kAbstractFloat;
}

bool Types::isStorable(Ty id) const {
  const Kind kind = (*this)[id].kind;
  return kind != Kind::Void && kind != Kind::Pointer && kind != Kind::Reference;
}

bool Types::isRuntimeSized(Ty id) const {
  const Type& type = (*this)[id];
  if (type.kind == Kind::Struct) {
    const auto& members = structure(id).members;
    return !members.empty() && isRuntimeSized(members.back().type);
  }
  return type.kind == Kind::Array && type.count == 0 && type.override_count == 0;
}

bool Types::isOverrideSized(Ty id) const { return isArray(id) && (*this)[id].override_count != 0; }

Ty Types::withScalar(Ty id, Ty scalar) {
  const Type type = (*this)[id];
  if (type.kind == Kind::Vector) return vector(scalar, type.rows);
  if (type.kind == Kind::Matrix) return matrix(scalar, type.columns, type.rows);
  if (type.kind == Kind::Array) return array(withScalar(type.element, scalar), type.count, type.override_count);
  if (type.kind == Kind::Struct) {
    const auto& members = structure(id).members;
    const Ty value = withScalar(members[0].type, scalar);
    return members[1].name == "exp" ? frexpResult(value) : modfResult(value);
  }
  return scalar;
}

Ty Types::concrete(Ty id) {
  if (!isAbstract(id)) return id;
  Ty scalar = id;
  while (!isScalar(scalar)) scalar = elementOf(scalar);
  return withScalar(id, scalar == kAbstractInt ? kI32 : kF32);
}

std::optional<int> Types::conversionRank(Ty from, Ty to) const {
  if (from == to || from == kError || to == kError) return 0;
  struct Row {
    Ty from, to;
    int rank;
  };
  constexpr std::array<Row, 7> kRanks{{{kAbstractFloat, kF32, 1},
                                       {kAbstractFloat, kF16, 2},
                                       {kAbstractInt, kI32, 3},
                                       {kAbstractInt, kU32, 4},
                                       {kAbstractInt, kAbstractFloat, 5},
                                       {kAbstractInt, kF32, 6},
                                       {kAbstractInt, kF16, 7}}};
  for (const Row& row : kRanks) {
    if (row.from == from && row.to == to) return row.rank;
  }
  const Type &a = (*this)[from], &b = (*this)[to];
  const bool composite = a.kind == Kind::Vector || a.kind == Kind::Matrix || a.kind == Kind::Array;
  if (composite && a.kind == b.kind && a.rows == b.rows && a.columns == b.columns && a.count == b.count && b.override_count == 0) {
    return conversionRank(a.element, b.element);
  }
  if (a.kind == Kind::Struct && b.kind == Kind::Struct && isAbstract(from) && structure(to).from_builtin) {
    const auto &given = structure(from).members, &wanted = structure(to).members;
    if (given[1].name == wanted[1].name) return conversionRank(given[0].type, wanted[0].type);
  }
  return std::nullopt;
}

bool Types::mayBeSame(Ty from, Ty to) const {
  if (from == to) return true;
  const Type &a = (*this)[from], &b = (*this)[to];
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::SubgroupMatrix) {
    const auto agree = [](uint8_t one, uint8_t other) { return one == other || one == 0 || other == 0; };
    return a.use == b.use && a.element == b.element && agree(a.rows, b.rows) && agree(a.columns, b.columns);
  }
  const bool arrays = a.kind == Kind::Array && a.count == b.count && a.override_count == b.override_count;
  const bool pointers = a.kind == Kind::Pointer && a.space == b.space && a.access == b.access;
  return (arrays || pointers) && mayBeSame(a.element, b.element);
}

uint32_t Types::elementCount(Ty id) const {
  const Type& type = (*this)[id];
  if (type.kind == Kind::Vector) return type.rows;
  if (type.kind == Kind::Matrix) return type.columns;
  if (type.kind == Kind::Struct) return static_cast<uint32_t>(structure(id).members.size());
  return type.kind == Kind::Array ? type.count : 0;
}

Ty Types::elementOf(Ty id, uint32_t index) {
  const Type type = (*this)[id];
  if (type.kind == Kind::Matrix) return vector(type.element, type.rows);
  if (type.kind == Kind::Struct) return structure(id).members[index].type;
  return type.element;
}

std::string Types::toString(Ty id) const {
  const Type& type = (*this)[id];
  if (id.index() < kScalarNames.size()) return std::string(kScalarNames[id.index()]);
  if (type.kind == Kind::Vector) return fmt::format("vec{}<{}>", type.rows, toString(type.element));
  if (type.kind == Kind::Matrix) return fmt::format("mat{}x{}<{}>", type.columns, type.rows, toString(type.element));
  if (type.kind == Kind::SubgroupMatrix) {
    const auto extent = [](uint8_t count) { return count == 0 ? std::string("?") : std::to_string(count); };
    return fmt::format("{}<{}, {}, {}>", kernel::toString(type.use), toString(type.element), extent(type.columns), extent(type.rows));
  }
  if (type.override_count != 0) {
    return fmt::format("array<{}, {}>", toString(type.element), override_counts_[type.override_count - 1]);
  }
  if (type.kind == Kind::Array && type.count == 0) return fmt::format("array<{}>", toString(type.element));
  if (type.kind == Kind::Array) return fmt::format("array<{}, {}>", toString(type.element), type.count);
  if (type.kind == Kind::Struct) return structure(id).name;
  if (type.kind == Kind::Atomic) return fmt::format("atomic<{}>", toString(type.element));
  const bool show_access = type.space == AddressSpace::Storage;
  return fmt::format("{}<{}, {}{}{}>", type.kind == Kind::Pointer ? "ptr" : "ref", kernel::toString(type.space), toString(type.element),
                     show_access ? ", " : "", show_access ? kernel::toString(type.access) : "");
}

}  // namespace lockstep::wgsl
