// SPDX-License-Identifier: Apache-2.0
// modf and frexp: compositions that give a struct.
#include "frontend/wgsl/lower/lower.h"

namespace lockstep::wgsl {

kernel::ValueId Lowerer::floatParts(Builtin builtin, Value argument, kernel::TypeId result) {
  if (builtin == Builtin::Frexp) return frexp(argument, result);
  const Value whole = make(Op::Trunc, {argument});
  return construct(result, {make(Op::Sub, {argument, whole}), whole});
}

/// The exponent bits are read and replaced. Subnormal numbers are scaled up first; f16 goes through f32, which has all of its values as
/// normal numbers.
kernel::ValueId Lowerer::frexp(Value value, kernel::TypeId result) {
  const kernel::Type given = kernelType(value);
  kernel::TypeTable& types = builder_.types();
  const uint32_t width = given.width();
  const bool half = given.scalar == kernel::Scalar::F16;
  const kernel::TypeId floats = types.scalarOrVector(kernel::Scalar::F32, width), words = types.scalarOrVector(kernel::Scalar::U32, width),
                       integers = types.scalarOrVector(kernel::Scalar::I32, width);
  const Value word_zero = builder_.zero(words), integer_zero = builder_.zero(integers);
  const auto exponentBits = [&](Value bits) {
    return make(Op::And, {make(Op::Shr, {bits, number(word_zero, 23)}), number(word_zero, 0xFF)});
  };
  const Value x = half ? builder_.convert(floats, value) : value;
  const Value plain_bits = builder_.makeAs(Op::Bitcast, words, {x});
  const Value small = make(Op::Eq, {exponentBits(plain_bits), word_zero});
  const Value scaled = make(Op::Select, {x, make(Op::Mul, {x, number(x, 16777216.0)}), small});
  const Value bits = builder_.makeAs(Op::Bitcast, words, {scaled});
  const Value is_zero = make(Op::Eq, {scaled, number(scaled, 0)});
  const Value biased = builder_.makeAs(Op::Bitcast, integers, {exponentBits(bits)});
  const Value bias = make(Op::Select, {number(integer_zero, 126), number(integer_zero, 126 + 24), small});
  const Value half_exponent = make(Op::Or, {make(Op::And, {bits, number(word_zero, 0x807FFFFF)}), number(word_zero, 0x3F000000)});
  const Value fraction = make(Op::Select, {builder_.makeAs(Op::Bitcast, floats, {half_exponent}), scaled, is_zero});
  const Value exponent = make(Op::Select, {make(Op::Sub, {biased, bias}), integer_zero, is_zero});
  return construct(result, {half ? builder_.convert(builder_.typeIdOf(value), fraction) : fraction, exponent});
}

}  // namespace lockstep::wgsl
