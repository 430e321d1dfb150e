// SPDX-License-Identifier: Apache-2.0
// Types of the kernel IR: WGSL's types of a compute shader, with WGSL's layout (WGSL specification, "Memory Layout").
// A TypeTable is a value that interns types: equal types have equal ids within one module.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/id.h"

namespace lockstep::kernel {

/// BF16 (bfloat16) is a component of subgroup matrices and nothing else.
enum class Scalar : uint8_t { Bool, I32, U32, F32, F16, BF16 };
enum class AddressSpace : uint8_t { Function, Private, Workgroup, Uniform, Storage, Immediate };
enum class Access : uint8_t { Read, Write, ReadWrite };
enum class TypeKind : uint8_t { Void, Scalar, Vector, Matrix, Array, Struct, Atomic, Pointer, SubgroupMatrix };
/// What a subgroup matrix is in a product: left * right + result.
enum class MatrixUse : uint8_t { Left, Right, Result };

using TypeId = Id<struct TypeTag>;

struct Member {
  std::string name;
  TypeId type;
  uint32_t offset = 0;  ///< bytes from the start of the struct; computed by TypeTable::structure, attributes included
  uint32_t align = 0;   ///< @align attribute, 0 when absent
  uint32_t size = 0;    ///< @size attribute, 0 when absent
  friend bool operator==(const Member&, const Member&) = default;
};

/// One type. Which fields are used depends on `kind`; the others keep their defaults, so equality is memberwise.
struct Type {
  TypeKind kind = TypeKind::Void;
  Scalar scalar = Scalar::Bool;                 ///< Scalar, Vector, Matrix, Atomic, SubgroupMatrix
  uint8_t rows = 0;                             ///< Vector: width; Matrix: rows (2..4); SubgroupMatrix: rows
  uint8_t columns = 0;                          ///< Matrix: columns (2..4); SubgroupMatrix: columns
  MatrixUse use = MatrixUse::Left;              ///< SubgroupMatrix
  TypeId element;                               ///< Array: element; Pointer: pointee
  uint32_t count = 0;                           ///< Array: number of elements, 0 = runtime-sized
  AddressSpace space = AddressSpace::Function;  ///< Pointer
  Access access = Access::ReadWrite;            ///< Pointer
  std::string name;                             ///< Struct (unique in a module)
  std::vector<Member> members;                  ///< Struct
  friend bool operator==(const Type&, const Type&) = default;

  [[nodiscard]] bool is(Scalar s) const { return kind == TypeKind::Scalar && scalar == s; }
  [[nodiscard]] bool isNumericScalar() const { return kind == TypeKind::Scalar && scalar != Scalar::Bool; }
  [[nodiscard]] bool isScalarOrVector() const { return kind == TypeKind::Scalar || kind == TypeKind::Vector; }
  /// Scalar or vector of floats.
  [[nodiscard]] bool isFloat() const { return isScalarOrVector() && (scalar == Scalar::F32 || scalar == Scalar::F16); }
  [[nodiscard]] bool isInteger() const { return isScalarOrVector() && (scalar == Scalar::I32 || scalar == Scalar::U32); }
  [[nodiscard]] bool isBool() const { return isScalarOrVector() && scalar == Scalar::Bool; }
  /// Number of scalars of a scalar or vector.
  [[nodiscard]] uint32_t width() const { return kind == TypeKind::Vector ? rows : 1; }
};

/// Layout facts. Sizes in bytes.
uint32_t byteSize(Scalar scalar);

// The spelling in the IR text and in WGSL.
std::string_view toString(Scalar scalar);       ///< "f32"
std::string_view toString(AddressSpace space);  ///< "workgroup"
std::string_view toString(Access access);       ///< "read_write"
std::string_view toString(MatrixUse use);       ///< "subgroup_matrix_left"
std::optional<Scalar> findScalar(std::string_view text);
std::optional<AddressSpace> findAddressSpace(std::string_view text);
std::optional<Access> findAccess(std::string_view text);
std::optional<MatrixUse> findMatrixUse(std::string_view text);
/// The access of a pointer into `space` whose text states none: read for uniform, storage and immediate, else read_write.
Access defaultAccess(AddressSpace space);
/// Whether variables there have a group and a binding: those in uniform and storage.
bool isBound(AddressSpace space);

/// Rows and columns of a subgroup matrix.
inline constexpr uint32_t kMaxSubgroupMatrixExtent = 64;
/// What a subgroup matrix counts for as a part of a variable, in bytes: how much an invocation holds is up to the device.
inline constexpr uint32_t kSubgroupMatrixBytes = 16;

/// Types nest at most this deep in a text and in a valid module (WGSL asks for 15).
inline constexpr uint32_t kMaxTypeNesting = 64;

class TypeTable {
 public:
  TypeTable();
  [[nodiscard]] const Type& operator[](TypeId id) const { return types_[id.index()]; }
  [[nodiscard]] size_t size() const { return types_.size(); }

  TypeId voidType() const { return TypeId(0); }
  TypeId scalar(Scalar scalar) const;
  TypeId boolean() const { return scalar(Scalar::Bool); }
  TypeId i32() const { return scalar(Scalar::I32); }
  TypeId u32() const { return scalar(Scalar::U32); }
  TypeId f32() const { return scalar(Scalar::F32); }
  TypeId vector(Scalar element, uint32_t width);
  /// A scalar (width 1) or vector.
  TypeId scalarOrVector(Scalar element, uint32_t width) { return width == 1 ? scalar(element) : vector(element, width); }
  TypeId matrix(Scalar element, uint32_t columns, uint32_t rows);
  /// A matrix that the invocations of a subgroup hold together; rows and columns from 1 to kMaxSubgroupMatrixExtent.
  TypeId subgroupMatrix(MatrixUse use, Scalar component, uint32_t columns, uint32_t rows);
  /// `count` 0 makes a runtime-sized array.
  TypeId array(TypeId element, uint32_t count);
  /// Computes the members' offsets by WGSL's rules (given align and size attributes respected).
  TypeId structure(std::string name, std::vector<Member> members);
  TypeId atomic(Scalar scalar);
  TypeId pointer(AddressSpace space, TypeId pointee, Access access = Access::ReadWrite);
  /// The result of AtomicCompareExchange on atomic<scalar>: struct {old_value: scalar, exchanged: bool}.
  TypeId atomicExchangeResult(Scalar scalar);
  /// Adds any type; returns the id of an equal one when there is one. Types that it is made of must be in the table.
  TypeId intern(const Type& type);

  /// Alignment and size in bytes (WGSL specification, "Alignment and Size"); a runtime-sized array has the size of one element's
  /// stride, void and pointers have none. A size above 4 GiB reads as kTooLarge.
  static constexpr uint32_t kTooLarge = UINT32_MAX;
  [[nodiscard]] uint32_t alignOf(TypeId id) const;
  [[nodiscard]] uint32_t sizeOf(TypeId id) const;
  [[nodiscard]] uint32_t strideOf(TypeId array) const;
  /// Bytes between columns of a matrix.
  [[nodiscard]] uint32_t columnStride(TypeId matrix) const;
  /// True when a runtime-sized array is the type or its last member.
  [[nodiscard]] bool isRuntimeSized(TypeId id) const;
  /// The type that one index selects: vector -> scalar, matrix -> column, array -> element, subgroup
  /// matrix -> component (of those that the invocation holds), struct -> member `index`.
  /// Invalid when there is none (a scalar, a struct without such a member).
  [[nodiscard]] TypeId elementOf(TypeId composite, uint32_t index = 0);
  /// Number of elements that an index may select (0 where it is not known: of a runtime-sized array and of a subgroup matrix).
  [[nodiscard]] uint32_t elementCount(TypeId composite) const;
  /// How many types are nested in it: 0 for a scalar, 1 + the deepest part's for an array, a pointer or a struct.
  [[nodiscard]] uint32_t nestingOf(TypeId id) const { return layouts_[id.index()].nesting; }
  /// WGSL spelling: "vec4<f32>", "array<f32, 16>", "ptr<workgroup, f32>", "ptr<storage, f32, read_write>", a struct's name,
  /// "subgroup_matrix_left<f16, 16, 8>" (columns, then rows).
  /// With `struct_names` (one for each type id), structs are called by those names instead of their own.
  [[nodiscard]] std::string toString(TypeId id, std::span<const std::string> struct_names = {}) const;

  friend bool operator==(const TypeTable&, const TypeTable&) = default;

 private:
  struct Layout {
    uint32_t align = 0, size = 0, nesting = 0;
    friend bool operator==(const Layout&, const Layout&) = default;
  };
  [[nodiscard]] Layout layoutOf(const Type& type) const;
  std::vector<Type> types_;
  std::vector<Layout> layouts_;  ///< of each type; kept, because computing it anew takes exponential time in nested structs
};

/// Whether the type or one of its parts satisfies a predicate. Visits each type once: nested structs may share parts.
template <class Predicate>
bool anyPart(const TypeTable& types, TypeId root, const Predicate& predicate) {
  std::vector<bool> seen(types.size());
  std::vector<TypeId> stack = {root};
  while (!stack.empty()) {
    TypeId id = stack.back();
    stack.pop_back();
    if (seen[id.index()]) continue;
    seen[id.index()] = true;
    const Type& type = types[id];
    if (predicate(type)) return true;
    if (type.element.valid()) stack.push_back(type.element);
    for (const Member& member : type.members) stack.push_back(member.type);
  }
  return false;
}

/// Whether the type or a part of it is a scalar, vector, matrix, atomic or subgroup matrix of this scalar type.
bool contains(const TypeTable& types, TypeId id, Scalar scalar);
/// Whether the type or a part of it is of this kind.
bool contains(const TypeTable& types, TypeId id, TypeKind kind);

}  // namespace lockstep::kernel
