// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/packed_element.h"

#include <algorithm>
#include <array>
#include <string>

#include "ir/graph/kernel_scalar.h"
#include "ir/support/diagnostic.h"

namespace lockstep::graph {
namespace {

using kernel::Op;
using kernel::Scalar;
using Id = kernel::ValueId;

constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
// Of f16, as bits of an f32: the smallest normal number, the first number that is too large, and the same for a number in f16's own bits.
constexpr uint32_t kHalfNormal = 0x38800000u, kHalfTooLarge = 0x47800000u, kHalfBias = 112u << 23;

/// Arithmetic on u32, scalars or vectors.
class Words {
 public:
  Words(kernel::Builder& builder, Id like) : b_(builder), width_(builder.typeOf(like).width()) {}

  Id number(uint32_t value) { return splat(b_.u32(value)); }
  Id real(float value) { return splat(b_.f32(value)); }
  Id make(Op op, Id a, Id b) { return b_.make(op, {a, b}); }
  Id add(Id a, Id b) { return make(Op::Add, a, b); }
  Id add(Id a, uint32_t b) { return make(Op::Add, a, number(b)); }
  Id sub(Id a, uint32_t b) { return make(Op::Sub, a, number(b)); }
  Id both(Id a, uint32_t b) { return make(Op::And, a, number(b)); }
  Id either(Id a, Id b) { return make(Op::Or, a, b); }
  Id left(Id a, uint32_t count) { return make(Op::Shl, a, number(count)); }
  Id right(Id a, uint32_t count) { return make(Op::Shr, a, number(count)); }
  Id right(Id a, Id count) { return make(Op::Shr, a, count); }
  Id below(Id a, uint32_t b) { return make(Op::Lt, a, number(b)); }
  Id above(Id a, uint32_t b) { return make(Op::Gt, a, number(b)); }
  Id select(Id condition, Id yes, Id no) { return b_.make(Op::Select, {no, yes, condition}); }
  Id bits(Id x) { return b_.makeAs(Op::Bitcast, type(Scalar::U32), {x}); }
  Id toFloat(Id bits) { return b_.makeAs(Op::Bitcast, type(Scalar::F32), {bits}); }
  Id toSigned(Id bits) { return b_.makeAs(Op::Bitcast, type(Scalar::I32), {bits}); }
  Id converted(Scalar scalar, Id x) { return b_.convert(type(scalar), x); }

 private:
  kernel::TypeId type(Scalar scalar) { return b_.types().scalarOrVector(scalar, width_); }
  Id splat(Id scalar) { return width_ == 1 ? scalar : b_.composite(type(b_.typeOf(scalar).scalar), std::vector(width_, scalar)); }

  kernel::Builder& b_;
  uint32_t width_;
};

/// x / 2^count, ties to even.
Id halvedToEven(Words& w, Id x, uint32_t count) {
  const Id odd = w.both(w.right(x, count), 1);
  return w.right(w.add(w.add(x, (1u << (count - 1)) - 1), odd), count);
}

Id quietNaN(Words& w, Id bits) { return w.either(bits, w.number(0x00400000u)); }

Id roundedToBfloat16(Words& w, Id x) {
  const Id bits = w.bits(x), magnitude = w.both(bits, ~kSign);
  const Id rounded = w.left(halvedToEven(w, bits, 16), 16);
  const Id kept = w.both(quietNaN(w, bits), 0xffff0000u);
  return w.toFloat(w.select(w.above(magnitude, kInfinity), kept, rounded));
}

Id roundedToHalf(Words& w, Id x) {
  const Id bits = w.bits(x), sign = w.both(bits, kSign), magnitude = w.both(bits, ~kSign);
  // A normal f16 has 10 of the 23 bits.
  const Id cut = w.left(halvedToEven(w, magnitude, 13), 13);
  const Id normal = w.select(w.below(cut, kHalfTooLarge), cut, w.number(kInfinity));
  // A smaller one is a multiple of 2^-24: its significand moved to the right by 126 less its exponent. From 25 places on nothing is left.
  const Id exponent = w.right(magnitude, 23), significand = w.either(w.both(magnitude, 0x007fffffu), w.number(0x00800000u));
  const Id distance = w.make(Op::Sub, w.number(126), w.make(Op::Min, exponent, w.number(112)));
  const Id places = w.make(Op::Min, distance, w.number(25));
  const Id odd = w.both(w.right(significand, places), 1);
  const Id half = w.right(w.make(Op::Shl, w.number(1), places), 1);
  const Id count = w.right(w.add(w.add(significand, w.sub(half, 1)), odd), places);
  const Id small = w.bits(w.make(Op::Mul, w.converted(Scalar::F32, count), w.real(0x1p-24f)));
  const Id number = w.select(w.below(magnitude, kHalfNormal), small, normal);
  const Id kept = w.both(quietNaN(w, magnitude), 0xffffe000u);
  return w.toFloat(w.either(sign, w.select(w.above(magnitude, kInfinity), kept, number)));
}

/// Of a value that f16 has.
Id halfBits(Words& w, Id x) {
  const Id bits = w.bits(x), magnitude = w.both(bits, ~kSign), sign = w.right(w.both(bits, kSign), 16);
  const Id normal = w.right(w.sub(magnitude, kHalfBias), 13);
  // Multiples of 2^-24 are whole numbers of them.
  const Id small = w.converted(
      Scalar::U32, w.make(Op::Mul, w.toFloat(w.select(w.below(magnitude, kHalfNormal), magnitude, w.number(0))), w.real(0x1p24f)));
  const Id finite = w.select(w.below(magnitude, kHalfNormal), small, normal);
  const Id beyond = w.either(w.number(0x7c00), w.both(w.right(magnitude, 13), 0x03ff));
  return w.either(sign, w.select(w.below(magnitude, kInfinity), finite, beyond));
}

/// Of the low 16 bits; the others are 0.
Id halfValue(Words& w, Id bits) {
  const Id magnitude = w.both(bits, 0x7fff), sign = w.left(w.both(bits, 0x8000), 16);
  const Id moved = w.left(magnitude, 13);
  const Id normal = w.add(moved, kHalfBias), beyond = w.add(moved, 2 * kHalfBias);
  const Id small = w.bits(w.make(Op::Mul, w.converted(Scalar::F32, magnitude), w.real(0x1p-24f)));
  const Id number = w.select(w.below(magnitude, 0x0400), small, w.select(w.below(magnitude, 0x7c00), normal, beyond));
  return w.toFloat(w.either(sign, number));
}

// One row per packed type. Rounding and encoding take a value of the register type; decoding takes a word whose lowest bits are the
// element's and whose others are anything.
struct Codec {
  DType dtype;
  Id (*round)(Words& w, Id value);
  Id (*encode)(Words& w, Id value);
  Id (*decode)(Words& w, Id word);
};
constexpr std::array kCodecs{
    Codec{DType::F16, roundedToHalf, halfBits, [](Words& w, Id word) { return halfValue(w, w.both(word, 0xffff)); }},
    Codec{DType::BF16, roundedToBfloat16, [](Words& w, Id value) { return w.right(w.bits(value), 16); },
          [](Words& w, Id word) { return w.toFloat(w.left(word, 16)); }},
    Codec{DType::I8, [](Words& w, Id value) { return w.right(w.left(value, 24), 24); },
          [](Words& w, Id value) { return w.both(w.bits(value), 0xff); },
          [](Words& w, Id word) { return w.right(w.toSigned(w.left(word, 24)), 24); }},
    Codec{DType::U8, [](Words& w, Id value) { return w.both(value, 0xff); }, [](Words&, Id value) { return value; },
          [](Words& w, Id word) { return w.both(word, 0xff); }},
    Codec{DType::U16, [](Words& w, Id value) { return w.both(value, 0xffff); }, [](Words&, Id value) { return value; },
          [](Words& w, Id word) { return w.both(word, 0xffff); }},
};

const Codec& codecOf(DType dtype) {
  const auto* found = std::ranges::find(kCodecs, dtype, &Codec::dtype);
  if (found == kCodecs.end()) internalError("elements of " + std::string(toString(dtype)) + " are no parts of words");
  return *found;
}

}  // namespace

Id emitRounded(kernel::Builder& builder, DType to, Id value) {
  Words w(builder, value);
  return codecOf(to).round(w, value);
}

Id emitEncoded(kernel::Builder& builder, DType dtype, Id value) {
  Words w(builder, value);
  return codecOf(dtype).encode(w, value);
}

Id emitDecoded(kernel::Builder& builder, DType dtype, Id word, Id place) {
  Words w(builder, word);
  const Id distance = w.make(Op::Mul, place, w.number(8 * factsOf(dtype).bytes));
  return codecOf(dtype).decode(w, w.right(word, distance));
}

}  // namespace lockstep::graph
