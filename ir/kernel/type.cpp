// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/support/diagnostic.h"

namespace lockstep::kernel {
namespace {

constexpr std::array<std::string_view, 6> kScalarNames = {"bool", "i32", "u32", "f32", "f16", "bf16"};
constexpr std::array<std::string_view, 6> kSpaceNames = {"function", "private", "workgroup", "uniform", "storage", "immediate"};
constexpr std::array<std::string_view, 3> kAccessNames = {"read", "write", "read_write"};
constexpr std::array<std::string_view, 3> kUseNames = {"subgroup_matrix_left", "subgroup_matrix_right", "subgroup_matrix_result"};

template <class Enum, size_t N>
std::optional<Enum> findName(const std::array<std::string_view, N>& names, std::string_view text) {
  auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

uint64_t roundUp(uint64_t align, uint64_t value) { return align == 0 ? value : (value + align - 1) / align * align; }
uint32_t saturate(uint64_t bytes) { return static_cast<uint32_t>(std::min<uint64_t>(bytes, TypeTable::kTooLarge)); }
/// A vector of three is aligned as one of four.
uint32_t vectorAlign(Scalar scalar, uint32_t width) { return byteSize(scalar) * (width == 3 ? 4 : width); }
uint32_t memberAlign(const Member& member, uint32_t type_align) { return member.align != 0 ? member.align : type_align; }
uint32_t memberSize(const Member& member, uint32_t type_size) { return member.size != 0 ? member.size : type_size; }

}  // namespace

uint32_t byteSize(Scalar scalar) { return scalar == Scalar::F16 || scalar == Scalar::BF16 ? 2 : 4; }

std::string_view toString(Scalar scalar) { return kScalarNames[static_cast<size_t>(scalar)]; }
std::string_view toString(AddressSpace space) { return kSpaceNames[static_cast<size_t>(space)]; }
std::string_view toString(MatrixUse use) { return kUseNames[static_cast<size_t>(use)]; }
std::string_view toString(Access access) { return kAccessNames[static_cast<size_t>(access)]; }
std::optional<Scalar> findScalar(std::string_view text) { return findName<Scalar>(kScalarNames, text); }
std::optional<AddressSpace> findAddressSpace(std::string_view text) { return findName<AddressSpace>(kSpaceNames, text); }
std::optional<Access> findAccess(std::string_view text) { return findName<Access>(kAccessNames, text); }
std::optional<MatrixUse> findMatrixUse(std::string_view text) { return findName<MatrixUse>(kUseNames, text); }

Access defaultAccess(AddressSpace space) { return isBound(space) || space == AddressSpace::Immediate ? Access::Read : Access::ReadWrite; }

bool isBound(AddressSpace space) { return space == AddressSpace::Uniform || space == AddressSpace::Storage; }

TypeTable::TypeTable() {
  intern({});
  for (Scalar scalar : {Scalar::Bool, Scalar::I32, Scalar::U32, Scalar::F32, Scalar::F16, Scalar::BF16}) {
    intern({.kind = TypeKind::Scalar, .scalar = scalar, .element = {}, .name = {}, .members = {}});
  }
}

TypeId TypeTable::scalar(Scalar scalar) const { return TypeId(1 + static_cast<size_t>(scalar)); }

TypeId TypeTable::vector(Scalar element, uint32_t width) {
  if (width < 2 || width > 4) internalError(fmt::format("a vector of {} components", width));
  return intern(
      {.kind = TypeKind::Vector, .scalar = element, .rows = static_cast<uint8_t>(width), .element = {}, .name = {}, .members = {}});
}

TypeId TypeTable::matrix(Scalar element, uint32_t columns, uint32_t rows) {
  if (columns < 2 || columns > 4 || rows < 2 || rows > 4) internalError(fmt::format("a matrix of {} columns and {} rows", columns, rows));
  if (element != Scalar::F32 && element != Scalar::F16) internalError(fmt::format("a matrix of {}", kernel::toString(element)));
  return intern({.kind = TypeKind::Matrix,
                 .scalar = element,
                 .rows = static_cast<uint8_t>(rows),
                 .columns = static_cast<uint8_t>(columns),
                 .element = {},
                 .name = {},
                 .members = {}});
}

TypeId TypeTable::subgroupMatrix(MatrixUse use, Scalar component, uint32_t columns, uint32_t rows) {
  const bool fits = columns >= 1 && columns <= kMaxSubgroupMatrixExtent && rows >= 1 && rows <= kMaxSubgroupMatrixExtent;
  if (!fits) internalError(fmt::format("a subgroup matrix of {} columns and {} rows", columns, rows));
  return intern({.kind = TypeKind::SubgroupMatrix,
                 .scalar = component,
                 .rows = static_cast<uint8_t>(rows),
                 .columns = static_cast<uint8_t>(columns),
                 .use = use,
                 .element = {},
                 .name = {},
                 .members = {}});
}

TypeId TypeTable::array(TypeId element, uint32_t count) {
  return intern({.kind = TypeKind::Array, .element = element, .count = count, .name = {}, .members = {}});
}

TypeId TypeTable::structure(std::string name, std::vector<Member> members) {
  uint64_t end = 0;
  for (Member& member : members) {
    if (member.type.index() >= size()) internalError("a struct member of a type that is not in the table");
    member.offset = saturate(roundUp(memberAlign(member, alignOf(member.type)), end));
    end = uint64_t{member.offset} + memberSize(member, sizeOf(member.type));
  }
  return intern({.kind = TypeKind::Struct, .element = {}, .name = std::move(name), .members = std::move(members)});
}

TypeId TypeTable::atomic(Scalar scalar) {
  if (scalar != Scalar::I32 && scalar != Scalar::U32) internalError(fmt::format("an atomic of {}", kernel::toString(scalar)));
  return intern({.kind = TypeKind::Atomic, .scalar = scalar, .element = {}, .name = {}, .members = {}});
}

TypeId TypeTable::pointer(AddressSpace space, TypeId pointee, Access access) {
  return intern({.kind = TypeKind::Pointer, .element = pointee, .space = space, .access = access, .name = {}, .members = {}});
}

TypeId TypeTable::atomicExchangeResult(Scalar scalar) {
  std::vector<Member> members(2);
  members[0] = {.name = "old_value", .type = this->scalar(scalar)};
  members[1] = {.name = "exchanged", .type = boolean()};
  return structure(fmt::format("atomic_compare_exchange_result_{}", kernel::toString(scalar)), std::move(members));
}

TypeId TypeTable::intern(const Type& type) {
  auto found = std::find(types_.begin(), types_.end(), type);
  if (found != types_.end()) return TypeId(static_cast<size_t>(found - types_.begin()));
  bool nests = type.kind == TypeKind::Array || type.kind == TypeKind::Pointer;
  bool known = !nests || type.element.index() < size();
  for (const Member& member : type.members) known = known && member.type.index() < size();
  if (!known) internalError("a type made of a type that is not in the table");
  Layout layout = layoutOf(type);
  types_.push_back(type);
  layouts_.push_back(layout);
  return TypeId(types_.size() - 1);
}

TypeTable::Layout TypeTable::layoutOf(const Type& type) const {
  switch (type.kind) {
    case TypeKind::Void:
      return {};
    case TypeKind::Pointer:
      return {.nesting = nestingOf(type.element) + 1};
    case TypeKind::Scalar:
    case TypeKind::Atomic:
      return {.align = byteSize(type.scalar), .size = byteSize(type.scalar)};
    case TypeKind::Vector:
      return {.align = vectorAlign(type.scalar, type.rows), .size = byteSize(type.scalar) * type.rows};
    case TypeKind::Matrix: {
      uint32_t column = vectorAlign(type.scalar, type.rows);
      return {.align = column, .size = column * type.columns};
    }
    case TypeKind::SubgroupMatrix:
      return {.align = kSubgroupMatrixBytes, .size = kSubgroupMatrixBytes};
    case TypeKind::Array: {
      uint64_t stride = roundUp(alignOf(type.element), sizeOf(type.element));
      return {.align = alignOf(type.element),
              .size = saturate(stride * std::max<uint32_t>(type.count, 1)),
              .nesting = nestingOf(type.element) + 1};
    }
    case TypeKind::Struct: {
      uint64_t end = 0;
      uint32_t align = 1, nesting = 0;
      for (const Member& member : type.members) {
        align = std::max(align, memberAlign(member, alignOf(member.type)));
        nesting = std::max(nesting, nestingOf(member.type) + 1);
        end = std::max(end, uint64_t{member.offset} + memberSize(member, sizeOf(member.type)));
      }
      return {.align = align, .size = saturate(roundUp(align, end)), .nesting = nesting};
    }
  }
  internalError("type kind out of range");
}

uint32_t TypeTable::alignOf(TypeId id) const { return layouts_[id.index()].align; }
uint32_t TypeTable::sizeOf(TypeId id) const { return layouts_[id.index()].size; }

uint32_t TypeTable::strideOf(TypeId array) const {
  TypeId element = types_[array.index()].element;
  return saturate(roundUp(alignOf(element), sizeOf(element)));
}

uint32_t TypeTable::columnStride(TypeId matrix) const { return alignOf(matrix); }

bool TypeTable::isRuntimeSized(TypeId id) const {
  const Type& type = types_[id.index()];
  if (type.kind == TypeKind::Struct && !type.members.empty()) return isRuntimeSized(type.members.back().type);
  return type.kind == TypeKind::Array && type.count == 0;
}

TypeId TypeTable::elementOf(TypeId composite, uint32_t index) {
  const Type& type = types_[composite.index()];
  if (type.kind == TypeKind::Vector) return scalar(type.scalar);
  if (type.kind == TypeKind::SubgroupMatrix && type.scalar != Scalar::BF16) return scalar(type.scalar);
  if (type.kind == TypeKind::Matrix) return vector(type.scalar, type.rows);
  if (type.kind == TypeKind::Array) return type.element;
  if (type.kind == TypeKind::Struct && index < type.members.size()) return type.members[index].type;
  return {};
}

uint32_t TypeTable::elementCount(TypeId composite) const {
  const Type& type = types_[composite.index()];
  if (type.kind == TypeKind::Vector) return type.rows;
  if (type.kind == TypeKind::Matrix) return type.columns;
  if (type.kind == TypeKind::Array) return type.count;
  if (type.kind == TypeKind::Struct) return static_cast<uint32_t>(type.members.size());
  return 0;
}

std::string TypeTable::toString(TypeId id, std::span<const std::string> struct_names) const {
  if (id.index() >= size()) return "invalid";
  const Type& type = types_[id.index()];
  std::string_view scalar_name = kernel::toString(type.scalar);
  switch (type.kind) {
    case TypeKind::Void:
      return "void";
    case TypeKind::Scalar:
      return std::string(scalar_name);
    case TypeKind::Vector:
      return fmt::format("vec{}<{}>", type.rows, scalar_name);
    case TypeKind::Matrix:
      return fmt::format("mat{}x{}<{}>", type.columns, type.rows, scalar_name);
    case TypeKind::Array:
      return type.count == 0 ? fmt::format("array<{}>", toString(type.element, struct_names))
                             : fmt::format("array<{}, {}>", toString(type.element, struct_names), type.count);
    case TypeKind::Struct:
      return struct_names.empty() ? type.name : struct_names[id.index()];
    case TypeKind::Atomic:
      return fmt::format("atomic<{}>", scalar_name);
    case TypeKind::SubgroupMatrix:
      return fmt::format("{}<{}, {}, {}>", kernel::toString(type.use), scalar_name, type.columns, type.rows);
    case TypeKind::Pointer: {
      std::string text = fmt::format("ptr<{}, {}", kernel::toString(type.space), toString(type.element, struct_names));
      // WGSL lets only storage pointers state their access, and there we always state it.
      if (type.space == AddressSpace::Storage || type.access != defaultAccess(type.space)) {
        text += fmt::format(", {}", kernel::toString(type.access));
      }
      return text + ">";
    }
  }
  internalError("type kind out of range");
}

bool contains(const TypeTable& types, TypeId id, Scalar scalar) {
  return anyPart(types, id, [&](const Type& type) {
    const bool has_scalar =
        type.isScalarOrVector() || type.kind == TypeKind::Matrix || type.kind == TypeKind::Atomic || type.kind == TypeKind::SubgroupMatrix;
    return has_scalar && type.scalar == scalar;
  });
}

bool contains(const TypeTable& types, TypeId id, TypeKind kind) {
  return anyPart(types, id, [&](const Type& type) { return type.kind == kind; });
}

}  // namespace lockstep::kernel
