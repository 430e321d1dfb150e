// SPDX-License-Identifier: Apache-2.0
// The builtin functions that the reader knows, as a table (builtins.def).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/kernel/op.h"

namespace lockstep::wgsl {

enum class Builtin : uint8_t {
#define LS_WGSL_BUILTIN(name, text, signature, op, uniformity) name,
#include "frontend/wgsl/check/builtins.def"
#undef LS_WGSL_BUILTIN
};

/// Which argument types a builtin takes. "T" is a scalar or vector.
enum class Signature : uint8_t {
  FloatUnary,    ///< T -> T
  F32Unary,      ///< T of f32 -> T
  FloatBinary,   ///< (T, T) -> T
  FloatTernary,  ///< (T, T, T) -> T
  Mix,           ///< FloatTernary, or a scalar as third argument
  Ldexp,         ///< (T of floats, T of integers) -> first
  FloatParts,    ///< T -> a struct of two T, or of T and integers
  NumericUnary,
  SignedUnary,  ///< numeric without u32
  NumericBinary,
  NumericTernary,
  IntegerUnary,
  ExtractBits,         ///< (T, u32, u32) -> T
  InsertBits,          ///< (T, T, u32, u32) -> T
  Dot,                 ///< numeric vectors -> scalar
  Cross,               ///< two vec3 of floats
  Distance,            ///< (T, T) -> scalar
  Length,              ///< T -> scalar
  FloatVectorUnary,    ///< vectors only
  FloatVectorBinary,   ///< vectors only
  FloatVectorTernary,  ///< vectors only
  Refract,             ///< (vector, vector, scalar)
  Transpose,
  Determinant,
  BoolReduce,  ///< bool or vector of bool -> bool
  Select,
  Pack,         ///< vector -> u32
  Unpack,       ///< u32 -> vector
  DotPacked,    ///< (u32, u32) -> i32 or u32
  ArrayLength,  ///< pointer to a runtime-sized array -> u32
  Atomic,
  Barrier,
  Print,  ///< texts and values that can be constructed -> nothing
  UniformLoad,
  Derivative,                        ///< T of f32 -> T, in fragment shaders only
  SubgroupElect,                     ///< () -> bool
  SubgroupVote,                      ///< bool -> bool or, for a ballot, vec4<u32>
  SubgroupNumeric,                   ///< T -> T
  SubgroupInteger,                   ///< T -> T
  SubgroupLane,                      ///< (T, lane, delta or mask) -> T
  SubgroupMatrixLoad,                ///< <M, direction>(pointer to an array, offset, stride) -> M
  SubgroupMatrixStore,               ///< <direction>(pointer to an array, offset, M, stride) -> nothing
  SubgroupMatrixMultiply,            ///< <T>(left, right) -> result of T
  SubgroupMatrixMultiplyAccumulate,  ///< (left, right, result) -> result
  SubgroupMatrixAdd,                 ///< (M, M) -> M
  SubgroupMatrixRows,                ///< (result) -> result
  SubgroupMatrixConvert,             ///< <M>(result) -> M
  SubgroupMatrixPlace,               ///< (M, u32) -> u32
  SubgroupMatrixScalar,              ///< (M, scalar) -> M
  Bitcast,
};

/// What uniformity analysis knows of a call, besides its arguments.
enum class Uniformity : uint8_t {
  Pure,             ///< asks for nothing; as uniform as its arguments
  Varying,          ///< asks for nothing; the result may differ between invocations
  Barrier,          ///< uniform control flow, always an error
  UniformLoad,      ///< uniform control flow and pointer, always an error; the result is uniform
  Subgroup,         ///< uniform control flow, rule subgroup_uniformity; the result, if there is one, varies
  SubgroupShuffle,  ///< as Subgroup, and the second argument (delta or mask) is uniform
  Derivative,       ///< uniform control flow, rule derivative_uniformity; the result varies
};

struct BuiltinInfo {
  std::string_view text;
  Signature signature;
  kernel::Op op;
  Uniformity uniformity;
};

const BuiltinInfo& info(Builtin builtin);
constexpr bool isSubgroupMatrix(Signature signature) {
  return signature >= Signature::SubgroupMatrixLoad && signature <= Signature::SubgroupMatrixScalar;
}
/// The directions in which a matrix lies in memory: words in template lists of loads and stores, and nothing elsewhere.
inline constexpr std::string_view kRowMajor = "row_major", kColumnMajor = "col_major";
std::optional<Builtin> findBuiltinFunction(std::string_view name);
std::vector<std::string_view> builtinNames();
/// Builtin functions of WGSL that this reader does not support (textures, ...).
bool isUnsupportedBuiltin(std::string_view name);

/// How a pack or unpack builtin maps its vector to the lanes of a u32.
struct PackFormat {
  uint32_t lanes = 0;  ///< 2 or 4
  enum class Lane : uint8_t { Half, Snorm, Unorm, Signed, Unsigned } lane = Lane::Half;
  bool clamp = false;
};
/// Only for signatures Pack and Unpack.
PackFormat packFormat(Builtin builtin);

}  // namespace lockstep::wgsl
