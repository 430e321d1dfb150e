// SPDX-License-Identifier: Apache-2.0
// Evaluation of constant expressions: AbstractInt is exactly i64, AbstractFloat exactly f64; concrete integers wrap; a float result that
// is not finite is an error. f32 and f16 are computed in f64 and rounded, which for + - * / and sqrt rounds correctly.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/wgsl/check/builtins.h"
#include "frontend/wgsl/check/types.h"
#include "frontend/wgsl/syntax/ast.h"

namespace lockstep::wgsl {

struct ConstValue {
  Ty type;
  int64_t integer = 0;                                      ///< Bool, integers (u32 as 0..2^32-1)
  double number = 0;                                        ///< floats
  std::shared_ptr<const std::vector<ConstValue>> elements;  ///< composites; null = zero value. Shared, never changed.
};

/// A value, or why there is none.
struct Evaluated {
  std::optional<ConstValue> value;
  std::string error;
  Evaluated(ConstValue v) : value(std::move(v)) {}
  explicit Evaluated(std::string e) : error(std::move(e)) {}
};

/// Composite constants with more scalars than this are refused (zero values may be of any size).
inline constexpr uint64_t kMaximumConstantScalars = 1u << 16u;

class ConstEval {
 public:
  explicit ConstEval(Types& types) : types_(types) {}

  static ConstValue integer(Ty type, int64_t value) { return {.type = type, .integer = value, .elements = {}}; }
  static ConstValue boolean(bool value) { return integer(kBool, value ? 1 : 0); }
  static ConstValue floating(Ty type, double value) { return {.type = type, .number = value, .elements = {}}; }
  static ConstValue zero(Ty type) { return {.type = type, .elements = {}}; }
  static ConstValue composite(Ty type, std::vector<ConstValue> elements);
  [[nodiscard]] ConstValue element(const ConstValue& composite, uint32_t index) const;

  /// Automatic conversion (abstract to concrete, checked); `to` must be a feasible target.
  Evaluated convert(const ConstValue& value, Ty to) const;
  /// Explicit conversion of scalars, vectors and matrices, as in i32(x).
  Evaluated cast(const ConstValue& value, Ty to) const;
  Evaluated bitcast(const ConstValue& value, Ty to) const;
  Evaluated unary(UnaryOp op, const ConstValue& operand) const;
  /// Operands are already of the types that the operator takes (scalar operands of vector operators are splat here).
  Evaluated binary(BinaryOp op, const ConstValue& left, const ConstValue& right, Ty result) const;
  Evaluated builtin(Builtin builtin, std::span<const ConstValue> arguments, Ty result) const;

 private:
  Evaluated makeFloat(Ty type, double value) const;
  Evaluated makeInteger(Ty type, __int128 value) const;
  Evaluated scalarBinary(BinaryOp op, const ConstValue& a, const ConstValue& b) const;
  Evaluated scalarShift(BinaryOp op, const ConstValue& a, const ConstValue& b) const;
  Evaluated scalarCast(const ConstValue& value, Ty to) const;
  Evaluated matrixProduct(const ConstValue& left, const ConstValue& right, Ty result) const;
  Evaluated scalarBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const;
  Evaluated floatBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const;
  Evaluated integerBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const;
  Evaluated bitsBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const;
  Evaluated vectorBuiltin(Builtin builtin, std::span<const ConstValue> arguments, Ty result) const;
  Evaluated floatParts(Builtin builtin, const ConstValue& argument, Ty result) const;
  Evaluated packBuiltin(Builtin builtin, const ConstValue& argument, Ty result) const;
  /// Sum of products; f(i) is the pair of factors.
  Evaluated dot(const ConstValue& a, const ConstValue& b) const;
  Evaluated geometry(Builtin builtin, std::span<const ConstValue> arguments, Ty result) const;
  Types& types_;
};

/// The bits that a scalar of concrete type has in memory (bool: 0 or 1).
uint32_t scalarBits(const ConstValue& value);

}  // namespace lockstep::wgsl
