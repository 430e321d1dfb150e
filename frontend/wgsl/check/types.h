// SPDX-License-Identifier: Apache-2.0
// The checker's types: those of the kernel IR plus abstract numbers, references and the error type. Interned, so equality is id equality.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/id.h"

namespace lockstep::wgsl {

using kernel::Access;
using kernel::AddressSpace;

/// The scalars come first: their position is their type id.
enum class Kind : uint8_t {
  Error,  ///< of an expression that was already reported; fits everywhere
  Void,
  Bool,
  AbstractInt,
  AbstractFloat,
  I32,
  U32,
  F32,
  F16,
  BF16,  ///< no scalar like the others: a component of subgroup matrices and nothing else
  Vector,
  Matrix,
  SubgroupMatrix,
  Array,
  Struct,
  Atomic,
  Pointer,
  Reference,
};

using Ty = Id<struct WgslTypeTag>;

constexpr Ty scalarType(Kind kind) { return Ty(static_cast<size_t>(kind)); }
inline constexpr Ty kError = scalarType(Kind::Error);
inline constexpr Ty kVoid = scalarType(Kind::Void);
inline constexpr Ty kBool = scalarType(Kind::Bool);
inline constexpr Ty kAbstractInt = scalarType(Kind::AbstractInt);
inline constexpr Ty kAbstractFloat = scalarType(Kind::AbstractFloat);
inline constexpr Ty kI32 = scalarType(Kind::I32);
inline constexpr Ty kU32 = scalarType(Kind::U32);
inline constexpr Ty kF32 = scalarType(Kind::F32);
inline constexpr Ty kF16 = scalarType(Kind::F16);
inline constexpr Ty kBF16 = scalarType(Kind::BF16);

struct Type {
  Kind kind = Kind::Error;
  Ty element;           ///< Vector, Matrix, SubgroupMatrix: scalar; Array, Atomic; Pointer, Reference: store type
  uint8_t rows = 0;     ///< Vector: width; Matrix; SubgroupMatrix: 0 when an override without value decides
  uint8_t columns = 0;  ///< Matrix, SubgroupMatrix
  kernel::MatrixUse use = kernel::MatrixUse::Left;  ///< SubgroupMatrix
  uint32_t count = 0;                               ///< Array: 0 = runtime-sized, or unknown when override_count says so
  uint32_t override_count = 0;                      ///< Array: which override expression is the count (Types::overrideCount); 0 = none
  AddressSpace space = AddressSpace::Function;
  Access access = Access::ReadWrite;
  uint32_t structure = 0;  ///< Struct
  friend auto operator<=>(const Type&, const Type&) = default;
};

struct StructMember {
  std::string name;
  Ty type;
  uint32_t align = 0, size = 0;  ///< attributes; 0 = absent
  kernel::Builtin builtin = kernel::Builtin::None;
  bool other_stage = false;  ///< input or output of vertex or fragment shaders
};

struct Structure {
  std::string name;
  std::vector<StructMember> members;
  bool from_builtin = false;  ///< result of a builtin function; has no name in WGSL
};

/// Largest size of a type in bytes, and deepest nesting, that the reader accepts. Rounded up to any alignment it still fits 32 bits.
inline constexpr uint64_t kMaximumTypeSize = 0xFFFF0000u;
inline constexpr uint32_t kMaximumTypeDepth = 15;

class Types {
 public:
  Types();
  [[nodiscard]] const Type& operator[](Ty id) const { return types_[id.index()]; }
  [[nodiscard]] const Structure& structure(Ty id) const { return structures_[types_[id.index()].structure]; }
  Ty vector(Ty scalar, uint32_t width);
  Ty scalarOrVector(Ty scalar, uint32_t width) { return width == 1 ? scalar : vector(scalar, width); }
  Ty matrix(Ty scalar, uint32_t columns, uint32_t rows);
  /// An extent of 0 is not known: an override that has no value decides.
  Ty subgroupMatrix(kernel::MatrixUse use, Ty component, uint32_t columns, uint32_t rows);
  Ty array(Ty element, uint32_t count, uint32_t override_count = 0);
  /// A number for an override expression that sizes arrays; `text` is for messages. Arrays are of one type when their numbers agree.
  uint32_t overrideCount(std::string_view text);
  Ty structure(Structure structure);
  Ty atomic(Ty scalar);
  Ty pointer(AddressSpace space, Ty store_type, Access access);
  Ty reference(AddressSpace space, Ty store_type, Access access);
  /// Results of atomicCompareExchangeWeak, of frexp {fract, exp} and of modf {fract, whole}; `value` is the type of the argument.
  Ty atomicExchangeResult(Ty scalar);
  Ty frexpResult(Ty value);
  Ty modfResult(Ty value);

  // Questions. `id` may be any type; a reference answers for itself, so strip it first.
  [[nodiscard]] bool isScalar(Ty id) const { return id.index() >= kBool.index() && id.index() <= kF16.index(); }
  [[nodiscard]] bool isVector(Ty id) const { return (*this)[id].kind == Kind::Vector; }
  [[nodiscard]] bool isMatrix(Ty id) const { return (*this)[id].kind == Kind::Matrix; }
  [[nodiscard]] bool isSubgroupMatrix(Ty id) const { return (*this)[id].kind == Kind::SubgroupMatrix; }
  [[nodiscard]] bool isArray(Ty id) const { return (*this)[id].kind == Kind::Array; }
  [[nodiscard]] bool isReference(Ty id) const { return (*this)[id].kind == Kind::Reference; }
  [[nodiscard]] bool isPointer(Ty id) const { return (*this)[id].kind == Kind::Pointer; }
  [[nodiscard]] bool isScalarOrVector(Ty id) const { return isScalar(id) || isVector(id); }
  /// The scalar of a scalar, vector or matrix; the error type otherwise.
  [[nodiscard]] Ty scalarOf(Ty id) const;
  [[nodiscard]] uint32_t width(Ty id) const { return isVector(id) ? (*this)[id].rows : 1; }
  [[nodiscard]] bool isAbstract(Ty id) const;
  [[nodiscard]] bool isConstructible(Ty id) const { return facts_[id.index()].constructible; }
  [[nodiscard]] bool isStorable(Ty id) const;
  /// May live in uniform or storage buffers.
  [[nodiscard]] bool isHostShareable(Ty id) const { return facts_[id.index()].host_shareable; }
  [[nodiscard]] bool containsAtomic(Ty id) const { return facts_[id.index()].atomic; }
  [[nodiscard]] bool containsArray(Ty id) const { return facts_[id.index()].array; }
  [[nodiscard]] bool containsSubgroupMatrix(Ty id) const { return facts_[id.index()].subgroup_matrix; }
  [[nodiscard]] bool isRuntimeSized(Ty id) const;
  [[nodiscard]] bool isOverrideSized(Ty id) const;
  [[nodiscard]] uint32_t depth(Ty id) const { return facts_[id.index()].depth; }
  /// The same type with reference removed.
  [[nodiscard]] Ty value(Ty id) const { return isReference(id) ? (*this)[id].element : id; }
  /// The type with every abstract scalar replaced by its default (AbstractInt -> i32, AbstractFloat -> f32).
  Ty concrete(Ty id);
  /// The same shape with another scalar.
  Ty withScalar(Ty id, Ty scalar);
  /// Rank of the automatic conversion; nullopt when there is none. Lower is better, 0 = same type.
  [[nodiscard]] std::optional<int> conversionRank(Ty from, Ty to) const;

  /// The same, or alike but for extents of subgroup matrices that are not known yet.
  [[nodiscard]] bool mayBeSame(Ty a, Ty b) const;

  /// Elements of a composite (struct members, vector components, matrix columns, array elements); 0 for a runtime-sized array.
  [[nodiscard]] uint32_t elementCount(Ty id) const;
  [[nodiscard]] Ty elementOf(Ty id, uint32_t index = 0);

  // Layout in bytes, 64 bits wide so that absurd sizes can be reported. 0 for types without layout.
  [[nodiscard]] uint64_t alignOf(Ty id) const { return facts_[id.index()].align; }
  [[nodiscard]] uint64_t sizeOf(Ty id) const { return facts_[id.index()].size; }
  [[nodiscard]] uint64_t strideOf(Ty array) const;
  [[nodiscard]] std::vector<uint64_t> memberOffsets(Ty structure) const;
  /// Scalars that a value of this type is made of (at most 2^32).
  [[nodiscard]] uint64_t scalarCount(Ty id) const { return facts_[id.index()].scalars; }

  /// WGSL spelling, for messages.
  [[nodiscard]] std::string toString(Ty id) const;

 private:
  /// What follows from a type's parts; computed once, because nested structs may share parts exponentially often.
  struct Facts {
    uint64_t align = 1, size = 0, scalars = 1;
    uint32_t depth = 1;
    bool constructible = false, host_shareable = false, atomic = false, array = false, subgroup_matrix = false;
  };
  Ty intern(const Type& type);
  Ty builtinResult(std::string name, std::vector<StructMember> members);
  [[nodiscard]] Facts factsOf(Ty id) const;
  std::vector<Type> types_;
  std::vector<Facts> facts_;
  std::vector<Structure> structures_;
  std::map<Type, Ty> interned_;
  std::map<std::string, Ty> builtin_results_;
  std::vector<std::string> override_counts_;
};

}  // namespace lockstep::wgsl
