// SPDX-License-Identifier: Apache-2.0
// The table of pure ops and those handlers that need more than one instruction, with the WGSL rule that plain SPIR-V would break.
#include <array>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::Instruction;
using kernel::Op;
using kernel::Scalar;
using kernel::Type;
using kernel::TypeKind;
using kernel::ValueId;

uint32_t Emitter::Row::of(LaneKind kind) const {
  const std::array<uint32_t, 4> columns{of_float, of_signed, of_unsigned, of_bool};
  uint32_t chosen = columns[static_cast<size_t>(kind)];
  if (chosen == 0) internalError("an op has no SPIR-V form for the type of its operands");
  return chosen;
}

const Emitter::Row& Emitter::row(Op op) {
  // One constant for each op that is a pure function; the ops of the other groups have their own emitters.
  using E = Emitter;
  static constexpr Row Neg{&E::emitFloatOrWrapping, spv::OpFNegate, spv::OpSNegate, 0, 0};
  static constexpr Row Not{&E::emitCore, 0, 0, 0, spv::OpLogicalNot};
  static constexpr Row Complement{&E::emitCore, 0, spv::OpNot, spv::OpNot, 0};
  static constexpr Row Add{&E::emitFloatOrWrapping, spv::OpFAdd, spv::OpIAdd, spv::OpIAdd, 0};
  static constexpr Row Sub{&E::emitFloatOrWrapping, spv::OpFSub, spv::OpISub, spv::OpISub, 0};
  static constexpr Row Mul{&E::emitFloatOrWrapping, spv::OpFMul, spv::OpIMul, spv::OpIMul, 0};
  static constexpr Row Div{&E::emitDiv, spv::OpFDiv, 0, 0, 0};
  static constexpr Row Rem{&E::emitRem, spv::OpFRem, 0, 0, 0};
  static constexpr Row And{&E::emitCore, 0, spv::OpBitwiseAnd, spv::OpBitwiseAnd, spv::OpLogicalAnd};
  static constexpr Row Or{&E::emitCore, 0, spv::OpBitwiseOr, spv::OpBitwiseOr, spv::OpLogicalOr};
  static constexpr Row Xor{&E::emitCore, 0, spv::OpBitwiseXor, spv::OpBitwiseXor, spv::OpLogicalNotEqual};
  static constexpr Row Shl{&E::emitShift, 0, spv::OpShiftLeftLogical, spv::OpShiftLeftLogical, 0};
  static constexpr Row Shr{&E::emitShift, 0, spv::OpShiftRightArithmetic, spv::OpShiftRightLogical, 0};
  static constexpr Row Eq{&E::emitCore, spv::OpFOrdEqual, spv::OpIEqual, spv::OpIEqual, spv::OpLogicalEqual};
  // Unordered: NaN differs from everything.
  static constexpr Row Ne{&E::emitCore, spv::OpFUnordNotEqual, spv::OpINotEqual, spv::OpINotEqual, spv::OpLogicalNotEqual};
  static constexpr Row Lt{&E::emitCore, spv::OpFOrdLessThan, spv::OpSLessThan, spv::OpULessThan, 0};
  static constexpr Row Le{&E::emitCore, spv::OpFOrdLessThanEqual, spv::OpSLessThanEqual, spv::OpULessThanEqual, 0};
  static constexpr Row Gt{&E::emitCore, spv::OpFOrdGreaterThan, spv::OpSGreaterThan, spv::OpUGreaterThan, 0};
  static constexpr Row Ge{&E::emitCore, spv::OpFOrdGreaterThanEqual, spv::OpSGreaterThanEqual, spv::OpUGreaterThanEqual, 0};
  static constexpr Row Select{&E::emitSelect};
  static constexpr Row MatMul{&E::emitMatMul};
  static constexpr Row Abs{&E::emitAbs, GLSLstd450FAbs, GLSLstd450SMax, 0, 0};
  static constexpr Row Sign{&E::emitSign, GLSLstd450FSign, GLSLstd450SSign, GLSLstd450UMin, 0};
  // NMin and NMax return the number when one side is NaN; FMin and FMax leave it open.
  static constexpr Row Min{&E::emitExt, GLSLstd450NMin, GLSLstd450SMin, GLSLstd450UMin, 0};
  static constexpr Row Max{&E::emitExt, GLSLstd450NMax, GLSLstd450SMax, GLSLstd450UMax, 0};
  static constexpr Row Clamp{&E::emitClamp};
  static constexpr Row Saturate{&E::emitSaturate};
  static constexpr Row Floor{&E::emitExt, GLSLstd450Floor};
  static constexpr Row Ceil{&E::emitExt, GLSLstd450Ceil};
  static constexpr Row Round{&E::emitExt, GLSLstd450RoundEven};
  static constexpr Row Trunc{&E::emitExt, GLSLstd450Trunc};
  static constexpr Row Fract{&E::emitExt, GLSLstd450Fract};
  static constexpr Row Sqrt{&E::emitExt, GLSLstd450Sqrt};
  static constexpr Row InverseSqrt{&E::emitExt, GLSLstd450InverseSqrt};
  static constexpr Row Exp{&E::emitExt, GLSLstd450Exp};
  static constexpr Row Exp2{&E::emitExt, GLSLstd450Exp2};
  static constexpr Row Log{&E::emitExt, GLSLstd450Log};
  static constexpr Row Log2{&E::emitExt, GLSLstd450Log2};
  static constexpr Row Pow{&E::emitExt, GLSLstd450Pow};
  static constexpr Row Sin{&E::emitExt, GLSLstd450Sin};
  static constexpr Row Cos{&E::emitExt, GLSLstd450Cos};
  static constexpr Row Tan{&E::emitExt, GLSLstd450Tan};
  static constexpr Row Asin{&E::emitExt, GLSLstd450Asin};
  static constexpr Row Acos{&E::emitExt, GLSLstd450Acos};
  static constexpr Row Atan{&E::emitExt, GLSLstd450Atan};
  static constexpr Row Atan2{&E::emitExt, GLSLstd450Atan2};
  static constexpr Row Sinh{&E::emitExt, GLSLstd450Sinh};
  static constexpr Row Cosh{&E::emitExt, GLSLstd450Cosh};
  static constexpr Row Tanh{&E::emitTanh};
  static constexpr Row Asinh{&E::emitExt, GLSLstd450Asinh};
  static constexpr Row Acosh{&E::emitExt, GLSLstd450Acosh};
  static constexpr Row Atanh{&E::emitExt, GLSLstd450Atanh};
  static constexpr Row Fma{&E::emitExt, GLSLstd450Fma};
  static constexpr Row Step{&E::emitExt, GLSLstd450Step};
  static constexpr Row CountLeadingZeros{&E::emitCountLeadingZeros};
  static constexpr Row CountTrailingZeros{&E::emitCountTrailingZeros};
  static constexpr Row CountOneBits{&E::emitCore, 0, spv::OpBitCount, spv::OpBitCount, 0};
  static constexpr Row ReverseBits{&E::emitCore, 0, spv::OpBitReverse, spv::OpBitReverse, 0};
  static constexpr Row FirstLeadingBit{&E::emitExt, 0, GLSLstd450FindSMsb, GLSLstd450FindUMsb, 0};
  static constexpr Row FirstTrailingBit{&E::emitExt, 0, GLSLstd450FindILsb, GLSLstd450FindILsb, 0};
  static constexpr Row ExtractBits{&E::emitExtractBits, 0, spv::OpBitFieldSExtract, spv::OpBitFieldUExtract, 0};
  static constexpr Row InsertBits{&E::emitInsertBits};
  static constexpr Row QuantizeToF16{&E::emitQuantize};
  static constexpr Row Pack2x16Float{&E::emitExt, GLSLstd450PackHalf2x16};
  static constexpr Row Unpack2x16Float{&E::emitExt, 0, 0, GLSLstd450UnpackHalf2x16, 0};
  static constexpr Row Dot{&E::emitDot};
  static constexpr Row Dot4I8Packed{&E::emitDotPacked, 0, spv::OpBitFieldSExtract, 0, 0};
  static constexpr Row Dot4U8Packed{&E::emitDotPacked, 0, 0, spv::OpBitFieldUExtract, 0};
  static constexpr Row All{&E::emitAllAny, 0, 0, 0, spv::OpAll};
  static constexpr Row Any{&E::emitAllAny, 0, 0, 0, spv::OpAny};
  static constexpr Row Convert{&E::emitConvert};
  static constexpr Row Bitcast{&E::emitBitcast};
  static constexpr Row Construct{&E::emitConstruct};
  static constexpr Row Extract{&E::emitExtract};
  static constexpr Row Swizzle{&E::emitSwizzle};
  static constexpr Row Other{&E::notHere};
  static constexpr Row Var = Other, Access = Other, Load = Other, Store = Other, ArrayLength = Other, AtomicLoad = Other,
                       AtomicStore = Other, AtomicAdd = Other, AtomicSub = Other, AtomicMax = Other, AtomicMin = Other, AtomicAnd = Other,
                       AtomicOr = Other, AtomicXor = Other, AtomicExchange = Other, AtomicCompareExchange = Other, WorkgroupBarrier = Other,
                       StorageBarrier = Other, WorkgroupUniformLoad = Other, Print = Other, SubgroupElect = Other, SubgroupAll = Other,
                       SubgroupAny = Other, SubgroupBallot = Other, SubgroupAdd = Other, SubgroupExclusiveAdd = Other,
                       SubgroupInclusiveAdd = Other, SubgroupMul = Other, SubgroupExclusiveMul = Other, SubgroupInclusiveMul = Other,
                       SubgroupMin = Other, SubgroupMax = Other, SubgroupAnd = Other, SubgroupOr = Other, SubgroupXor = Other,
                       SubgroupBroadcast = Other, SubgroupBroadcastFirst = Other, SubgroupShuffle = Other, SubgroupShuffleXor = Other,
                       SubgroupShuffleUp = Other, SubgroupShuffleDown = Other, QuadBroadcast = Other, QuadSwapX = Other, QuadSwapY = Other,
                       QuadSwapDiagonal = Other, SubgroupMatrixLoad = Other, SubgroupMatrixStore = Other,
                       SubgroupMatrixMultiplyAccumulate = Other, SubgroupMatrixAdd = Other, SubgroupMatrixScale = Other,
                       SubgroupMatrixRowMax = Other, SubgroupMatrixRowSum = Other, SubgroupMatrixConvert = Other, SubgroupMatrixRow = Other,
                       SubgroupMatrixColumn = Other, If = Other, Loop = Other, Switch = Other, Break = Other, BreakIf = Other,
                       Continue = Other, Return = Other, Call = Other;
  static constexpr kernel::OpArray<const Row*> kRows{
#define LS_KERNEL_OP(name, text, group, operands, rule) &name,
#include "ir/kernel/ops.def"
#undef LS_KERNEL_OP
  };
  return *kRows[static_cast<size_t>(op)];
}

spv::Id Emitter::notHere(const Instruction& in) {
  internalError("op " + std::string(kernel::info(in.op).text) + " is not a pure function");
}

LaneKind Emitter::laneKind(const Type& type) const {
  switch (type.scalar) {
    case Scalar::Bool:
      return LaneKind::Bool;
    case Scalar::I32:
      return LaneKind::Signed;
    case Scalar::U32:
      return LaneKind::Unsigned;
    case Scalar::F32:
    case Scalar::F16:
    case Scalar::BF16:
      return LaneKind::Float;
  }
  internalError("scalar out of range");
}

spv::Id Emitter::ext(spv::Id type, uint32_t instruction, const std::vector<spv::Id>& operands) {
  return builder_.createBuiltinCall(type, glsl_, static_cast<int>(instruction), operands);
}

spv::Id Emitter::asUnsigned(spv::Id value, const Type& type) {
  return type.scalar == Scalar::U32 ? value : builder_.createUnaryOp(spv::OpBitcast, lanesType(Scalar::U32, type.width()), value);
}

spv::Id Emitter::asSigned(spv::Id value, const Type& type) {
  return type.scalar == Scalar::U32 ? value : builder_.createUnaryOp(spv::OpBitcast, lanesType(Scalar::I32, type.width()), value);
}

spv::Id Emitter::splat(spv::Id scalar, Scalar kind, uint32_t width) {
  return width == 1 ? scalar : builder_.createCompositeConstruct(lanesType(kind, width), std::vector<spv::Id>(width, scalar));
}

spv::Id Emitter::emitCore(const Instruction& in) {
  spv::Id made =
      builder_.createOp(static_cast<spv::Op>(row(in.op).of(laneKind(typeOf(in.operands[0])))), valueType(in.type), values(in.operands));
  if (in.float_mode == kernel::FloatMode::Strict && types_[in.type].isFloat()) builder_.addDecoration(made, spv::DecorationNoContraction);
  return made;
}

spv::Id Emitter::emitExt(const Instruction& in) {
  return ext(valueType(in.type), row(in.op).of(laneKind(typeOf(in.operands[0]))), values(in.operands));
}

// Integer arithmetic wraps. SPIR-V says so too, but drivers that lower i32 to C-like arithmetic have exploited overflow.
spv::Id Emitter::emitWrapping(const Instruction& in) {
  const Type& type = types_[in.type];
  std::vector<spv::Id> operands;
  for (ValueId operand : in.operands) operands.push_back(asUnsigned(value(operand), type));
  if (hidesStep(in.result)) {
    operands[1] = builder_.createBinOp(spv::OpIAdd, lanesType(Scalar::U32, type.width()), operands[1], hiddenZero(type.width()));
  }
  spv::Id made = builder_.createOp(static_cast<spv::Op>(row(in.op).of(laneKind(type))), lanesType(Scalar::U32, type.width()), operands);
  return asSigned(made, type);
}

spv::Id Emitter::emitFloatOrWrapping(const Instruction& in) { return types_[in.type].isFloat() ? emitCore(in) : emitWrapping(in); }

// x / 0 = x and MIN / -1 = MIN: undefined in SPIR-V, so such a divisor becomes 1. The quotient is in u32 lanes.
spv::Id Emitter::quotient(const Instruction& in) {
  const Type type = types_[in.type];
  uint32_t width = type.width();
  bool is_signed = type.scalar == Scalar::I32;
  spv::Id x = value(in.operands[0]), y = value(in.operands[1]), lanes = valueType(in.type);
  spv::Id bools = lanesType(Scalar::Bool, width);
  std::optional<uint32_t> known = literal(in.operands[1]);
  bool harmless = known && *known != 0 && !(is_signed && *known == UINT32_MAX);
  if (!harmless) {
    spv::Id bad = builder_.createBinOp(spv::OpIEqual, bools, y, lanesConstant(type.scalar, 0, width));
    if (is_signed) {
      spv::Id minimum = builder_.createBinOp(spv::OpIEqual, bools, x, lanesConstant(Scalar::I32, 0x80000000u, width));
      spv::Id minus_one = builder_.createBinOp(spv::OpIEqual, bools, y, lanesConstant(Scalar::I32, UINT32_MAX, width));
      spv::Id overflow = builder_.createBinOp(spv::OpLogicalAnd, bools, minimum, minus_one);
      bad = builder_.createBinOp(spv::OpLogicalOr, bools, bad, overflow);
    }
    y = builder_.createTriOp(spv::OpSelect, lanes, bad, lanesConstant(type.scalar, 1, width), y);
  }
  return builder_.createBinOp(is_signed ? spv::OpSDiv : spv::OpUDiv, lanes, x, y);
}

spv::Id Emitter::emitDiv(const Instruction& in) { return types_[in.type].isFloat() ? emitCore(in) : quotient(in); }

// OpSRem is undefined for negative operands in Vulkan, so the remainder is x - (x / y) * y, in u32. With y = 0 the quotient is x / 1, and
// the divisor has to be the guarded one: x - x * 1 = 0.
spv::Id Emitter::emitRem(const Instruction& in) {
  const Type type = types_[in.type];
  uint32_t width = type.width();
  spv::Id lanes = lanesType(Scalar::U32, width), bools = lanesType(Scalar::Bool, width);
  if (type.isFloat()) {
    spv::Id rest = emitCore(in);
    if (type.scalar != Scalar::F32) return rest;
    // The result has the sign of x. NVIDIA's OpFRem compares x with 0 to find it, and takes a negative subnormal x for 0.
    spv::Id sign = builder_.createBinOp(spv::OpBitwiseAnd, lanes, asUnsigned(value(in.operands[0]), type),
                                        lanesConstant(Scalar::U32, 0x80000000u, width));
    spv::Id size = builder_.createBinOp(spv::OpBitwiseAnd, lanes, asUnsigned(rest, type), lanesConstant(Scalar::U32, 0x7fffffffu, width));
    return builder_.createUnaryOp(spv::OpBitcast, valueType(in.type), builder_.createBinOp(spv::OpBitwiseOr, lanes, sign, size));
  }
  spv::Id q = asUnsigned(quotient(in), type), x = asUnsigned(value(in.operands[0]), type), y = asUnsigned(value(in.operands[1]), type);
  std::optional<uint32_t> known = literal(in.operands[1]);
  if (!known || *known == 0) {
    spv::Id zero = builder_.createBinOp(spv::OpIEqual, bools, y, lanesConstant(Scalar::U32, 0, width));
    y = builder_.createTriOp(spv::OpSelect, lanes, zero, lanesConstant(Scalar::U32, 1, width), y);
  }
  // MIN % -1: the quotient is MIN / 1 = MIN, and MIN - MIN * -1 = 2 MIN = 0 in u32.
  spv::Id product = builder_.createBinOp(spv::OpIMul, lanes, q, y);
  return asSigned(builder_.createBinOp(spv::OpISub, lanes, x, product), type);
}

// Counts are taken modulo the width; SPIR-V leaves larger ones undefined.
spv::Id Emitter::emitShift(const Instruction& in) {
  const Type type = types_[in.type];
  uint32_t width = type.width();
  spv::Id count =
      builder_.createBinOp(spv::OpBitwiseAnd, lanesType(Scalar::U32, width), value(in.operands[1]), lanesConstant(Scalar::U32, 31, width));
  spv::Id x = value(in.operands[0]);
  auto op = static_cast<spv::Op>(row(in.op).of(laneKind(type)));
  if (in.op == Op::Shr) return builder_.createBinOp(op, valueType(in.type), x, count);
  return asSigned(builder_.createBinOp(op, lanesType(Scalar::U32, width), asUnsigned(x, type), count), type);
}

spv::Id Emitter::emitSelect(const Instruction& in) {
  const Type& type = types_[in.type];
  spv::Id condition = value(in.operands[2]);
  if (typeOf(in.operands[2]).width() == 1) condition = splat(condition, Scalar::Bool, type.width());
  return builder_.createTriOp(spv::OpSelect, valueType(in.type), condition, value(in.operands[1]), value(in.operands[0]));
}

spv::Id Emitter::strictOp(spv::Op op, spv::Id type, spv::Id a, spv::Id b) {
  spv::Id made = builder_.createBinOp(op, type, a, b);
  builder_.addDecoration(made, spv::DecorationNoContraction);
  return made;
}

spv::Id Emitter::mulAdd(spv::Id type, spv::Id a, spv::Id b, spv::Id c) {
  spv::Id product = strictOp(spv::OpFMul, type, a, b);
  return c == spv::NoResult ? product : strictOp(spv::OpFAdd, type, c, product);
}

// Strict products sum in ascending order of the inner index; otherwise the device's own instruction is used.
spv::Id Emitter::emitMatMul(const Instruction& in) {
  const Type a = typeOf(in.operands[0]), b = typeOf(in.operands[1]);
  spv::Id left = value(in.operands[0]), right = value(in.operands[1]), type = valueType(in.type);
  if (in.float_mode == kernel::FloatMode::Contract) {
    spv::Op op = a.kind != TypeKind::Matrix   ? spv::OpVectorTimesMatrix
                 : b.kind != TypeKind::Matrix ? spv::OpMatrixTimesVector
                                              : spv::OpMatrixTimesMatrix;
    return builder_.createBinOp(op, type, left, right);
  }
  spv::Id scalar = scalarType(a.scalar);
  auto timesVector = [&](spv::Id vector) {
    spv::Id column_type = lanesType(a.scalar, a.rows), sum = spv::NoResult;
    for (uint32_t k = 0; k < a.columns; ++k) {
      spv::Id lane = splat(builder_.createCompositeExtract(vector, scalar, k), a.scalar, a.rows);
      sum = mulAdd(column_type, builder_.createCompositeExtract(left, column_type, k), lane, sum);
    }
    return sum;
  };
  if (b.kind != TypeKind::Matrix) return timesVector(right);
  spv::Id column_type = lanesType(b.scalar, b.rows);
  std::vector<spv::Id> parts;
  for (uint32_t j = 0; j < b.columns; ++j) {
    spv::Id column = builder_.createCompositeExtract(right, column_type, j);
    if (a.kind == TypeKind::Matrix) {
      parts.push_back(timesVector(column));
      continue;
    }
    spv::Id sum = spv::NoResult;
    for (uint32_t k = 0; k < b.rows; ++k) {
      sum = mulAdd(scalar, builder_.createCompositeExtract(left, scalar, k), builder_.createCompositeExtract(column, scalar, k), sum);
    }
    parts.push_back(sum);
  }
  return builder_.createCompositeConstruct(type, parts);
}

// abs(MIN) = MIN: the smaller one of x and its negation as u32, since GLSL's SAbs of MIN is open. llvmpipe takes their maximum as i32 for
// positive: abs(abs(MIN) >> 8) was negative there.
spv::Id Emitter::emitAbs(const Instruction& in) {
  const Type type = types_[in.type];
  if (type.scalar == Scalar::U32) return value(in.operands[0]);
  if (type.isFloat()) return emitExt(in);
  const spv::Id lanes = lanesType(Scalar::U32, type.width()), x = asUnsigned(value(in.operands[0]), type);
  return asSigned(ext(lanes, GLSLstd450UMin, {x, builder_.createUnaryOp(spv::OpSNegate, lanes, x)}), type);
}

spv::Id Emitter::emitSign(const Instruction& in) {
  const Type type = types_[in.type];
  if (type.scalar != Scalar::U32) return emitExt(in);
  return ext(valueType(in.type), GLSLstd450UMin, {value(in.operands[0]), lanesConstant(Scalar::U32, 1, type.width())});
}

// min(max(x, lo), hi): defined for lo > hi too.
spv::Id Emitter::emitClamp(const Instruction& in) {
  LaneKind kind = laneKind(types_[in.type]);
  spv::Id raised = ext(valueType(in.type), row(Op::Max).of(kind), {value(in.operands[0]), value(in.operands[1])});
  return ext(valueType(in.type), row(Op::Min).of(kind), {raised, value(in.operands[2])});
}

spv::Id Emitter::emitSaturate(const Instruction& in) {
  const Type type = types_[in.type];
  spv::Id zero = floatLanes(type.scalar, 0.0f, type.width()), one = floatLanes(type.scalar, 1.0f, type.width());
  return ext(valueType(in.type), GLSLstd450NClamp, {value(in.operands[0]), zero, one});
}

// Some drivers compute tanh by exp and give NaN for large arguments; beyond 10 the result is the sign.
spv::Id Emitter::emitTanh(const Instruction& in) {
  const Type type = types_[in.type];
  spv::Id x = value(in.operands[0]), lanes = valueType(in.type);
  spv::Id large = builder_.createBinOp(spv::OpFOrdGreaterThan, lanesType(Scalar::Bool, type.width()), ext(lanes, GLSLstd450FAbs, {x}),
                                       floatLanes(type.scalar, 10.0f, type.width()));
  return builder_.createTriOp(spv::OpSelect, lanes, large, ext(lanes, GLSLstd450FSign, {x}), ext(lanes, GLSLstd450Tanh, {x}));
}

// FindUMsb gives -1 for 0, so 31 - msb is right for every word.
spv::Id Emitter::emitCountLeadingZeros(const Instruction& in) {
  const Type type = types_[in.type];
  spv::Id lanes = lanesType(Scalar::U32, type.width());
  spv::Id msb = ext(lanes, GLSLstd450FindUMsb, {asUnsigned(value(in.operands[0]), type)});
  return asSigned(builder_.createBinOp(spv::OpISub, lanes, lanesConstant(Scalar::U32, 31, type.width()), msb), type);
}

spv::Id Emitter::emitCountTrailingZeros(const Instruction& in) {
  const Type type = types_[in.type];
  spv::Id lanes = lanesType(Scalar::U32, type.width()), x = asUnsigned(value(in.operands[0]), type);
  spv::Id lsb = ext(lanes, GLSLstd450FindILsb, {x});
  spv::Id is_zero =
      builder_.createBinOp(spv::OpIEqual, lanesType(Scalar::Bool, type.width()), x, lanesConstant(Scalar::U32, 0, type.width()));
  return asSigned(builder_.createTriOp(spv::OpSelect, lanes, is_zero, lanesConstant(Scalar::U32, 32, type.width()), lsb), type);
}

std::pair<spv::Id, spv::Id> Emitter::bitRange(ValueId offset, ValueId count) {
  spv::Id type = scalarType(Scalar::U32), word = u32(32);
  spv::Id o = ext(type, GLSLstd450UMin, {value(offset), word});
  spv::Id c = ext(type, GLSLstd450UMin, {value(count), builder_.createBinOp(spv::OpISub, type, word, o)});
  return {o, c};
}

spv::Id Emitter::emitExtractBits(const Instruction& in) {
  auto [offset, count] = bitRange(in.operands[1], in.operands[2]);
  auto op = static_cast<spv::Op>(row(in.op).of(laneKind(types_[in.type])));
  return builder_.createTriOp(op, valueType(in.type), value(in.operands[0]), offset, count);
}

spv::Id Emitter::emitInsertBits(const Instruction& in) {
  auto [offset, count] = bitRange(in.operands[2], in.operands[3]);
  std::vector<spv::Id> operands{value(in.operands[0]), value(in.operands[1]), offset, count};
  return builder_.createOp(spv::OpBitFieldInsert, valueType(in.type), operands);
}

// Lane by lane: some drivers take scalars only.
spv::Id Emitter::emitQuantize(const Instruction& in) {
  const Type type = types_[in.type];
  spv::Id x = value(in.operands[0]), scalar = scalarType(type.scalar);
  if (type.width() == 1) return builder_.createUnaryOp(spv::OpQuantizeToF16, scalar, x);
  std::vector<spv::Id> lanes;
  for (uint32_t i = 0; i < type.width(); ++i) {
    lanes.push_back(builder_.createUnaryOp(spv::OpQuantizeToF16, scalar, builder_.createCompositeExtract(x, scalar, i)));
  }
  return builder_.createCompositeConstruct(valueType(in.type), lanes);
}

spv::Id Emitter::emitDot(const Instruction& in) {
  const Type type = typeOf(in.operands[0]);
  spv::Id a = value(in.operands[0]), b = value(in.operands[1]);
  bool strict = in.float_mode == kernel::FloatMode::Strict;
  if (type.isFloat() && !strict) return builder_.createBinOp(spv::OpDot, valueType(in.type), a, b);
  spv::Id scalar = type.isFloat() ? scalarType(type.scalar) : scalarType(Scalar::U32), sum = spv::NoResult;
  if (!type.isFloat()) {
    a = asUnsigned(a, type);
    b = asUnsigned(b, type);
  }
  for (uint32_t i = 0; i < type.width(); ++i) {
    spv::Id x = builder_.createCompositeExtract(a, scalar, i), y = builder_.createCompositeExtract(b, scalar, i);
    if (type.isFloat()) {
      sum = mulAdd(scalar, x, y, sum);
      continue;
    }
    spv::Id product = builder_.createBinOp(spv::OpIMul, scalar, x, y);
    sum = sum == spv::NoResult ? product : builder_.createBinOp(spv::OpIAdd, scalar, sum, product);
  }
  return type.isFloat() ? sum : asSigned(sum, types_[in.type]);
}

spv::Id Emitter::emitDotPacked(const Instruction& in) {
  const spv::Id type = valueType(in.type), a = value(in.operands[0]), b = value(in.operands[1]);
  if (options_.packed_dot) {
    // Debian's headers name neither.
    constexpr auto kSDot = static_cast<spv::Op>(4450), kUDot = static_cast<spv::Op>(4451);
    constexpr auto kInputPacked = static_cast<spv::Capability>(6018), kDotProduct = static_cast<spv::Capability>(6019);
    constexpr unsigned kFourOfEightBits = 0;
    builder_.addExtension("SPV_KHR_integer_dot_product");
    builder_.addCapability(kDotProduct);
    builder_.addCapability(kInputPacked);
    const std::vector<spv::IdImmediate> operands{{true, a}, {true, b}, {false, kFourOfEightBits}};
    return builder_.createOp(in.op == Op::Dot4I8Packed ? kSDot : kUDot, type, operands);
  }
  const auto extract = static_cast<spv::Op>(row(in.op).of(laneKind(types_[in.type])));
  const spv::Id first = asSigned(a, types_[in.type]), second = asSigned(b, types_[in.type]);
  spv::Id sum = spv::NoResult;
  for (uint32_t bit = 0; bit < 32; bit += 8) {
    const auto field = [&](spv::Id word) { return builder_.createTriOp(extract, type, word, u32(bit), u32(8)); };
    const spv::Id product = builder_.createBinOp(spv::OpIMul, type, field(first), field(second));
    sum = sum == spv::NoResult ? product : builder_.createBinOp(spv::OpIAdd, type, sum, product);
  }
  return sum;
}

spv::Id Emitter::emitAllAny(const Instruction& in) { return typeOf(in.operands[0]).width() == 1 ? value(in.operands[0]) : emitCore(in); }

}  // namespace lockstep::vulkan
