// SPDX-License-Identifier: Apache-2.0
// Builtin functions: one op where the kernel IR has it, else a composition in the words of the WGSL specification.
#include <algorithm>
#include <numbers>

#include "frontend/wgsl/lower/lower.h"
#include "frontend/wgsl/syntax/half.h"
#include "frontend/wgsl/syntax/printed_text.h"

namespace lockstep::wgsl {

kernel::ValueId Lowerer::number(Value like, double value) {
  const kernel::Type type = kernelType(like);
  const bool is_float = type.scalar == kernel::Scalar::F32 || type.scalar == kernel::Scalar::F16;
  const Ty scalar_type = type.scalar == kernel::Scalar::F16   ? kF16
                         : type.scalar == kernel::Scalar::F32 ? kF32
                         : type.scalar == kernel::Scalar::I32 ? kI32
                                                              : kU32;
  const ConstValue made = is_float ? ConstEval::floating(scalar_type, scalar_type == kF16 ? roundToHalf(value) : value)
                                   : ConstEval::integer(scalar_type, static_cast<int64_t>(value));
  const Value one = builder_.scalar(type.scalar, scalarBits(made));
  if (type.width() == 1) return one;
  if (value == 0) return builder_.zero(builder_.typeIdOf(like));
  return builder_.composite(builder_.typeIdOf(like), std::vector<Value>(type.width(), one));
}

kernel::ValueId Lowerer::lowerBuiltin(ExprId id) {
  const ExprInfo& call = infoOf(id);
  const Expr& expr = ast_[id];
  if (call.builtin == Builtin::Print) {
    lowerPrint(expr);
    return {};
  }
  const BuiltinInfo& row = info(call.builtin);
  if (isSubgroupMatrix(row.signature)) return lowerMatrixBuiltin(id);
  std::vector<Value> arguments;
  for (const ExprId argument : expr.arguments) arguments.push_back(lowerValue(argument));
  at(expr.span);
  if (row.op == Op::Call) {
    if (row.signature == Signature::Pack) return packComposition(call.builtin, arguments[0]);
    if (row.signature == Signature::FloatParts) return floatParts(call.builtin, arguments[0], type(call.type));
    if (row.signature == Signature::Unpack) return unpackComposition(call.builtin, arguments[0], type(call.type));
    const bool of_vectors = row.signature >= Signature::Dot && row.signature <= Signature::Determinant;
    return of_vectors ? vectorComposition(call.builtin, arguments) : scalarComposition(call.builtin, arguments);
  }
  if (row.signature == Signature::SubgroupLane) arguments[1] = unsignedNumber(arguments[1]);
  if (call.type == kVoid) {
    builder_.makeVoid(row.op, std::move(arguments));
    return {};
  }
  if (row.op == Op::Bitcast && builder_.typeIdOf(arguments[0]) == type(call.type)) return arguments[0];
  if (row.signature == Signature::BoolReduce && kernelType(arguments[0]).width() == 1) return arguments[0];
  if (row.op == Op::Select) {
    // A scalar condition selects whole vectors; a vector condition needs its width.
    return make(Op::Select, std::move(arguments));
  }
  return builder_.makeAs(row.op, type(call.type), std::move(arguments));
}

void Lowerer::lowerPrint(const Expr& call) {
  std::vector<Value> values;
  std::vector<std::string> labels(1);
  std::optional<std::string> given;
  for (const ExprId argument : call.arguments) {
    const std::string_view written = ast_[argument].name;
    if (!ast_.isText(argument)) {
      labels.push_back(given ? *given : printedName(source_.text(ast_[argument].span)));
      given.reset();
      values.push_back(lowerValue(argument));
    } else if (isPrintedName(written)) {
      given = unquoted(written);
      given->pop_back();
      while (given->ends_with(' ')) given->pop_back();
    } else {
      labels[0] = unquoted(written);
    }
  }
  at(call.span);
  if (!values.empty() && std::ranges::all_of(labels, &std::string::empty)) labels.clear();
  builder_.print(std::move(values), std::move(labels));
}

kernel::ValueId Lowerer::unsignedNumber(Value number) {
  if (kernelType(number).scalar == kernel::Scalar::U32) return number;
  // A constant stays one: some operations want it.
  const kernel::Value& value = builder_.module()[number];
  return value.kind == kernel::ValueKind::Constant ? builder_.u32(value.bits)
                                                   : builder_.makeAs(Op::Bitcast, builder_.types().u32(), {number});
}

kernel::ValueId Lowerer::scalarComposition(Builtin builtin, const std::vector<Value>& arguments) {
  const Value x = arguments[0];
  if (builtin == Builtin::Degrees) return make(Op::Mul, {x, number(x, 180.0 / std::numbers::pi)});
  if (builtin == Builtin::Radians) return make(Op::Mul, {x, number(x, std::numbers::pi / 180.0)});
  if (builtin == Builtin::Mix) {
    const Value y = arguments[1], a = splat(arguments[2], kernelType(x).width());
    return make(Op::Add, {make(Op::Mul, {x, make(Op::Sub, {number(a, 1), a})}), make(Op::Mul, {y, a})});
  }
  if (builtin == Builtin::Smoothstep) {
    const Value low = x, high = arguments[1], at = arguments[2];
    const Value ratio = make(Op::Div, {make(Op::Sub, {at, low}), make(Op::Sub, {high, low})});
    const Value t = make(Op::Saturate, {ratio});
    return make(Op::Mul, {make(Op::Mul, {t, t}), make(Op::Sub, {number(t, 3), make(Op::Mul, {number(t, 2), t})})});
  }
  return ldexp(x, arguments[1]);
}

/// x * 2^e in three steps, because 2^e alone may overflow or be subnormal although the product is not. Each power is normal and made from
/// its exponent bits. Only the last product can round: where an earlier one is subnormal, the result is zero.
kernel::ValueId Lowerer::ldexp(Value value, Value exponent) {
  const kernel::Type given = kernelType(value);
  kernel::TypeTable& types = builder_.types();
  const uint32_t width = given.width();
  const kernel::TypeId floats = types.scalarOrVector(kernel::Scalar::F32, width);
  const bool half = given.scalar == kernel::Scalar::F16;
  const kernel::TypeId result_type = builder_.typeIdOf(value);
  const Value x = half ? builder_.convert(floats, value) : value;
  const kernel::TypeId counts = types.scalarOrVector(kernel::Scalar::U32, width);
  const Value mantissa = number(builder_.zero(counts), 23);
  const auto normal = [&](Value n) { return make(Op::Clamp, {n, number(n, -126), number(n, 127)}); };
  const Value last = normal(exponent), rest = make(Op::Sub, {exponent, last});
  const Value second = normal(rest), first = normal(make(Op::Sub, {rest, second}));
  const auto power = [&](Value n) {
    return builder_.makeAs(Op::Bitcast, floats, {make(Op::Shl, {make(Op::Add, {n, number(n, 127)}), mantissa})});
  };
  const Value scaled = make(Op::Mul, {make(Op::Mul, {make(Op::Mul, {x, power(first)}), power(second)}), power(last)});
  return half ? builder_.convert(result_type, scaled) : scaled;
}

kernel::ValueId Lowerer::packComposition(Builtin builtin, Value argument) {
  using Lane = PackFormat::Lane;
  const PackFormat format = packFormat(builtin);
  kernel::TypeTable& types = builder_.types();
  const uint32_t bits = 32 / format.lanes, mask = format.lanes == 2 ? 0xFFFF : 0xFF;
  const bool normalized = format.lane == Lane::Snorm || format.lane == Lane::Unorm;
  const bool is_signed = format.lane == Lane::Snorm || format.lane == Lane::Signed;
  Value lanes = argument;
  if (normalized) {
    const Value clamped = make(Op::Clamp, {lanes, number(lanes, is_signed ? -1 : 0), number(lanes, 1)});
    const Value scaled = make(Op::Mul, {clamped, number(lanes, is_signed ? mask >> 1u : mask)});
    const Value rounded = make(Op::Floor, {make(Op::Add, {number(lanes, 0.5), scaled})});
    lanes = builder_.convert(types.vector(is_signed ? kernel::Scalar::I32 : kernel::Scalar::U32, format.lanes), rounded);
  } else if (format.clamp) {
    lanes = is_signed ? make(Op::Clamp, {lanes, number(lanes, -128), number(lanes, 127)}) : make(Op::Min, {lanes, number(lanes, 255)});
  }
  if (is_signed) lanes = builder_.makeAs(Op::Bitcast, types.vector(kernel::Scalar::U32, format.lanes), {lanes});
  Value packed;
  for (uint32_t i = 0; i < format.lanes; ++i) {
    const Value field = make(Op::And, {extract(lanes, i), builder_.u32(mask)});
    const Value placed = i == 0 ? field : make(Op::Shl, {field, builder_.u32(i * bits)});
    packed = i == 0 ? placed : make(Op::Or, {packed, placed});
  }
  return packed;
}

kernel::ValueId Lowerer::unpackComposition(Builtin builtin, Value argument, kernel::TypeId result) {
  using Lane = PackFormat::Lane;
  const PackFormat format = packFormat(builtin);
  const uint32_t bits = 32 / format.lanes, mask = format.lanes == 2 ? 0xFFFF : 0xFF;
  const bool is_signed = format.lane == Lane::Snorm || format.lane == Lane::Signed;
  const bool normalized = format.lane == Lane::Snorm || format.lane == Lane::Unorm;
  const kernel::Scalar integer = is_signed ? kernel::Scalar::I32 : kernel::Scalar::U32;
  const Value word = is_signed ? builder_.makeAs(Op::Bitcast, builder_.types().i32(), {argument}) : argument;
  std::vector<Value> fields;
  for (uint32_t i = 0; i < format.lanes; ++i) {
    fields.push_back(
        builder_.makeAs(Op::ExtractBits, builder_.types().scalar(integer), {word, builder_.u32(i * bits), builder_.u32(bits)}));
  }
  const Value lanes = construct(builder_.types().vector(integer, format.lanes), std::move(fields));
  if (!normalized) return lanes;
  const Value floats = builder_.convert(result, lanes);
  const Value scaled = make(Op::Div, {floats, number(floats, is_signed ? mask >> 1u : mask)});
  return is_signed ? make(Op::Max, {scaled, number(scaled, -1)}) : scaled;
}

}  // namespace lockstep::wgsl
