// SPDX-License-Identifier: Apache-2.0
// Result types: the rules of ops.def, and the ops of rule Explicit whose result type follows from the operands' types all the same.
#include <algorithm>

#include "ir/kernel/builder.h"

namespace lockstep::kernel {
namespace {

using Operands = std::span<const TypeId>;

bool allEqual(Operands operands) {
  return std::all_of(operands.begin(), operands.end(), [&](TypeId type) { return type == operands[0]; });
}

std::optional<TypeId> when(bool condition, TypeId type) { return condition ? std::optional(type) : std::nullopt; }

bool isVectorOf(const Type& type, uint32_t width) { return type.kind == TypeKind::Vector && type.rows == width; }

std::optional<TypeId> inferMatMul(TypeTable& types, TypeId left, TypeId right) {
  const Type a = types[left], b = types[right];
  if (a.scalar != b.scalar) return std::nullopt;
  bool a_matrix = a.kind == TypeKind::Matrix, b_matrix = b.kind == TypeKind::Matrix;
  if (a_matrix && b_matrix && a.columns == b.rows) return types.matrix(a.scalar, b.columns, a.rows);
  if (a_matrix && isVectorOf(b, a.columns)) return types.vector(a.scalar, a.rows);
  if (b_matrix && isVectorOf(a, b.rows)) return types.vector(a.scalar, b.columns);
  return std::nullopt;
}

/// (e, [new], offset, count): the result is as e, both numbers are u32.
std::optional<TypeId> inferBits(const TypeTable& types, Operands operands) {
  Operands values = operands.first(operands.size() - 2), numbers = operands.last(2);
  return when(types[operands[0]].isInteger() && allEqual(values) && allEqual(numbers) && numbers[0] == types.u32(), operands[0]);
}

/// The pointee of the first operand, when that is a pointer.
TypeId pointee(const TypeTable& types, TypeId pointer) {
  return types[pointer].kind == TypeKind::Pointer ? types[pointer].element : types.voidType();
}

std::optional<TypeId> inferAtomic(TypeTable& types, Op op, Operands operands) {
  const Type atomic = types[pointee(types, operands[0])];
  if (atomic.kind != TypeKind::Atomic) return std::nullopt;
  TypeId value = types.scalar(atomic.scalar);
  if (!std::all_of(operands.begin() + 1, operands.end(), [&](TypeId type) { return type == value; })) return std::nullopt;
  if (op == Op::AtomicStore) return types.voidType();
  return op == Op::AtomicCompareExchange ? types.atomicExchangeResult(atomic.scalar) : value;
}

bool isComputable(const Type& matrix) { return matrix.kind == TypeKind::SubgroupMatrix && matrix.scalar != Scalar::BF16; }

/// Products of a load are summed in f32, or in the operands' own type.
std::optional<TypeId> inferMatrixProduct(const TypeTable& types, Operands operands) {
  const Type &left = types[operands[0]], &right = types[operands[1]], &sum = types[operands[2]];
  const auto is = [](const Type& type, MatrixUse use) { return type.kind == TypeKind::SubgroupMatrix && type.use == use; };
  const bool uses = is(left, MatrixUse::Left) && is(right, MatrixUse::Right) && is(sum, MatrixUse::Result);
  const bool shapes = left.columns == right.rows && sum.rows == left.rows && sum.columns == right.columns;
  const bool scalars = left.scalar == right.scalar && (sum.scalar == Scalar::F32 || sum.scalar == left.scalar);
  return when(uses && shapes && scalars, operands[2]);
}

/// workgroup_uniform_load reads an atomic as atomic_load does.
TypeId loadedType(const TypeTable& types, Op op, TypeId type) {
  return op == Op::WorkgroupUniformLoad && types[type].kind == TypeKind::Atomic ? types.scalar(types[type].scalar) : type;
}

std::optional<TypeId> inferExplicit(TypeTable& types, Op op, Operands operands) {
  if (info(op).group == OpGroup::Atomic) return inferAtomic(types, op, operands);
  if (op == Op::SubgroupMatrixMultiplyAccumulate) return inferMatrixProduct(types, operands);
  if (op == Op::SubgroupMatrixRow || op == Op::SubgroupMatrixColumn) {
    return when(isComputable(types[operands[0]]) && operands[1] == types.u32(), types.u32());
  }
  if (op == Op::SubgroupMatrixAdd) return when(isComputable(types[operands[0]]) && allEqual(operands), operands[0]);
  if (op == Op::SubgroupMatrixScale) {
    const Type& matrix = types[operands[0]];
    return when(isComputable(matrix) && operands[1] == types.scalar(matrix.scalar), operands[0]);
  }
  if (op == Op::SubgroupMatrixRowMax || op == Op::SubgroupMatrixRowSum) {
    const Type& matrix = types[operands[0]];
    return when(isComputable(matrix) && matrix.use == MatrixUse::Result, operands[0]);
  }
  if (op == Op::SubgroupElect) return types.boolean();
  if (op == Op::SubgroupAll || op == Op::SubgroupAny) return when(operands[0] == types.boolean(), types.boolean());
  if (op == Op::SubgroupBallot) return when(operands[0] == types.boolean(), types.vector(Scalar::U32, 4));
  if (op == Op::MatMul) return inferMatMul(types, operands[0], operands[1]);
  if (op == Op::ExtractBits || op == Op::InsertBits) return inferBits(types, operands);
  if (op == Op::Pack2x16Float) return when(operands[0] == types.vector(Scalar::F32, 2), types.u32());
  if (op == Op::Unpack2x16Float) return when(operands[0] == types.u32(), types.vector(Scalar::F32, 2));
  if (op == Op::Dot4I8Packed || op == Op::Dot4U8Packed) {
    return when(operands[0] == types.u32() && operands[1] == types.u32(), op == Op::Dot4I8Packed ? types.i32() : types.u32());
  }
  if (op == Op::Extract) {
    if (types[operands[0]].kind == TypeKind::Struct || !types[operands[1]].isInteger()) return std::nullopt;
    TypeId element = types.elementOf(operands[0]);
    return when(element.valid() && types[operands[1]].kind == TypeKind::Scalar, element);
  }
  if (op == Op::Load || op == Op::WorkgroupUniformLoad) {
    TypeId type = pointee(types, operands[0]);
    return when(type != types.voidType(), loadedType(types, op, type));
  }
  if (op == Op::ArrayLength) {
    const Type& array = types[pointee(types, operands[0])];
    return when(array.kind == TypeKind::Array && array.count == 0, types.u32());
  }
  return std::nullopt;
}

/// Operand rules of the ops that have no result.
bool checkVoid(const TypeTable& types, Op op, Operands operands) {
  if (op == Op::Store) return types[operands[0]].kind == TypeKind::Pointer && types[operands[0]].element == operands[1];
  if (op == Op::If || op == Op::BreakIf) return operands[0] == types.boolean();
  if (op == Op::Switch) return operands[0] == types.i32() || operands[0] == types.u32();
  if (op == Op::Return) return operands.size() <= 1;
  return true;
}

}  // namespace

std::optional<TypeId> inferType(TypeTable& types, Op op, std::span<const TypeId> operands) {
  int wanted = info(op).operands;
  if (wanted >= 0 && operands.size() != static_cast<size_t>(wanted)) return std::nullopt;
  if (std::any_of(operands.begin(), operands.end(), [&](TypeId type) { return type.index() >= types.size(); })) return std::nullopt;
  // Not used after a type is made, which may move the table's rows.
  static const Type kNone{};
  const Type& first = operands.empty() ? kNone : types[operands[0]];
  bool lanes = first.isScalarOrVector();
  switch (info(op).rule) {
    case TypeRule::Explicit:
      return inferExplicit(types, op, operands);
    case TypeRule::SameFloat: {
      bool only_f32 = op == Op::QuantizeToF16 && first.scalar != Scalar::F32;
      return when(first.isFloat() && !only_f32 && allEqual(operands), operands[0]);
    }
    case TypeRule::SameNumeric: {
      bool negated_unsigned = (op == Op::Neg || op == Op::Sign) && first.scalar == Scalar::U32;
      return when(lanes && !first.isBool() && !negated_unsigned && allEqual(operands), operands[0]);
    }
    case TypeRule::SameInteger:
      return when(first.isInteger() && allEqual(operands), operands[0]);
    case TypeRule::SameAny:
      return when((first.isInteger() || first.isBool()) && allEqual(operands), operands[0]);
    case TypeRule::Compare: {
      bool ordered = op != Op::Eq && op != Op::Ne;
      if (!lanes || (ordered && first.isBool()) || !allEqual(operands)) return std::nullopt;
      return types.scalarOrVector(Scalar::Bool, first.width());
    }
    case TypeRule::Shift: {
      const Type& count = types[operands[1]];
      bool fits = count.isInteger() && count.scalar == Scalar::U32 && count.width() == first.width();
      return when(first.isInteger() && fits, operands[0]);
    }
    case TypeRule::Bool:
      return when(first.isBool(), operands[0]);
    case TypeRule::Reduce: {
      bool wants_bool = op == Op::All || op == Op::Any;
      // all(bool) and any(bool) exist for scalars too.
      bool shape = first.kind == TypeKind::Vector || (wants_bool && first.kind == TypeKind::Scalar);
      return when(shape && wants_bool == first.isBool() && allEqual(operands), types.scalar(first.scalar));
    }
    case TypeRule::Select: {
      const Type& condition = types[operands[2]];
      bool shape = condition.isBool() && (condition.width() == 1 || condition.width() == first.width());
      return when(lanes && shape && operands[0] == operands[1], operands[0]);
    }
    case TypeRule::Lane:
      return when(lanes && !first.isBool() && operands[1] == types.u32(), operands[0]);
    case TypeRule::None:
      if (info(op).group == OpGroup::Atomic) return inferAtomic(types, op, operands);
      return when(checkVoid(types, op, operands), types.voidType());
  }
  internalError("type rule out of range");
}

}  // namespace lockstep::kernel
