// SPDX-License-Identifier: Apache-2.0
// Builtin functions of constants.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "frontend/wgsl/check/const_eval.h"
#include "frontend/wgsl/syntax/half.h"
#include "ir/support/narrow_float.h"

namespace lockstep::wgsl {
namespace {

bool isFloatType(Ty type) { return type == kAbstractFloat || type == kF32 || type == kF16; }

struct FloatFunction {
  Builtin builtin;
  double (*function)(double);
};

constexpr std::array kFloatFunctions = std::to_array<FloatFunction>({
    {Builtin::Acos, [](double x) { return std::acos(x); }},
    {Builtin::Acosh, [](double x) { return std::acosh(x); }},
    {Builtin::Asin, [](double x) { return std::asin(x); }},
    {Builtin::Asinh, [](double x) { return std::asinh(x); }},
    {Builtin::Atan, [](double x) { return std::atan(x); }},
    {Builtin::Atanh, [](double x) { return std::atanh(x); }},
    {Builtin::Ceil, [](double x) { return std::ceil(x); }},
    {Builtin::Cos, [](double x) { return std::cos(x); }},
    {Builtin::Cosh, [](double x) { return std::cosh(x); }},
    {Builtin::Degrees, [](double x) { return x * (180.0 / std::numbers::pi); }},
    {Builtin::Exp, [](double x) { return std::exp(x); }},
    {Builtin::Exp2, [](double x) { return std::exp2(x); }},
    {Builtin::Floor, [](double x) { return std::floor(x); }},
    {Builtin::Fract, [](double x) { return x - std::floor(x); }},
    {Builtin::InverseSqrt, [](double x) { return 1.0 / std::sqrt(x); }},
    {Builtin::Log, [](double x) { return std::log(x); }},
    {Builtin::Log2, [](double x) { return std::log2(x); }},
    {Builtin::Radians, [](double x) { return x * (std::numbers::pi / 180.0); }},
    {Builtin::Round, [](double x) { return std::nearbyint(x); }},
    {Builtin::Saturate, [](double x) { return std::clamp(x, 0.0, 1.0); }},
    {Builtin::Sin, [](double x) { return std::sin(x); }},
    {Builtin::Sinh, [](double x) { return std::sinh(x); }},
    {Builtin::Sqrt, [](double x) { return std::sqrt(x); }},
    {Builtin::Tan, [](double x) { return std::tan(x); }},
    {Builtin::Tanh, [](double x) { return std::tanh(x); }},
    {Builtin::Trunc, [](double x) { return std::trunc(x); }},
    {Builtin::QuantizeToF16, [](double x) { return roundToHalf(x); }},
    {Builtin::Abs, [](double x) { return std::abs(x); }},
    {Builtin::Sign, [](double x) { return x > 0   ? 1.0
                                          : x < 0 ? -1.0
                                                  : 0.0; }},
});

uint32_t reverse(uint32_t value) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) result |= (value >> i & 1u) << (31 - i);
  return result;
}

int64_t asType(Ty type, uint32_t bits) { return type == kI32 ? int64_t(std::bit_cast<int32_t>(bits)) : int64_t(bits); }

}  // namespace

Evaluated ConstEval::floatBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const {
  const Ty type = arguments[0].type;
  const double x = arguments[0].number;
  const double y = arguments.size() > 1 ? arguments[1].number : 0, z = arguments.size() > 2 ? arguments[2].number : 0;
  if (builtin == Builtin::QuantizeToF16 && std::abs(x) > kMaxHalf) return Evaluated("the value does not fit f16");
  const auto* row = std::find_if(kFloatFunctions.begin(), kFloatFunctions.end(), [&](const auto& f) { return f.builtin == builtin; });
  if (row != kFloatFunctions.end()) return makeFloat(type, row->function(x));
  if (builtin == Builtin::Atan2) return makeFloat(type, std::atan2(x, y));
  if (builtin == Builtin::Pow) {
    // The domain is that of exp2(y * log2(x)).
    return x < 0 || (x == 0 && y <= 0) ? Evaluated("the base of pow is outside its domain") : makeFloat(type, std::pow(x, y));
  }
  if (builtin == Builtin::Step) return floating(type, x <= y ? 1 : 0);
  if (builtin == Builtin::Max) return floating(type, std::max(x, y));
  if (builtin == Builtin::Min) return floating(type, std::min(x, y));
  if (builtin == Builtin::Clamp) {
    return y > z ? Evaluated("the low bound of clamp is above the high bound") : floating(type, std::min(std::max(x, y), z));
  }
  if (builtin == Builtin::Fma) return makeFloat(type, std::fma(x, y, z));
  if (builtin == Builtin::Mix) {
    const Evaluated rest = makeFloat(type, 1 - z);
    const Evaluated first = rest.value ? makeFloat(type, x * rest.value->number) : rest, second = makeFloat(type, y * z);
    if (!first.value || !second.value) return first.value ? second : first;
    return makeFloat(type, first.value->number + second.value->number);
  }
  if (builtin == Builtin::Smoothstep) {
    if (x == y) return Evaluated("the edges of smoothstep are equal");
    const Evaluated along = makeFloat(type, z - x), length = makeFloat(type, y - x);
    if (!along.value || !length.value) return along.value ? length : along;
    Evaluated ratio = makeFloat(type, along.value->number / length.value->number);
    if (!ratio.value) return ratio;
    const double t = std::clamp(ratio.value->number, 0.0, 1.0);
    return makeFloat(type, t * t * (3 - 2 * t));
  }
  const int64_t bias = type == kF16 ? 15 : type == kF32 ? 127 : 1023;
  const int64_t exponent = arguments[1].integer;  // Ldexp
  if (exponent > bias + 1) return Evaluated(fmt::format("the exponent of ldexp is above {}", bias + 1));
  return makeFloat(type, std::ldexp(x, static_cast<int>(std::max<int64_t>(exponent, -4000))));
}

Evaluated ConstEval::integerBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const {
  const Ty type = arguments[0].type;
  const int64_t x = arguments[0].integer;
  // The lowest value has no positive counterpart and stays.
  if (builtin == Builtin::Abs) return x < 0 ? unary(UnaryOp::Negate, arguments[0]) : Evaluated(arguments[0]);
  if (builtin == Builtin::Sign) return integer(type, x > 0 ? 1 : x < 0 ? -1 : 0);
  if (builtin == Builtin::Max) return integer(type, std::max(x, arguments[1].integer));
  if (builtin == Builtin::Min) return integer(type, std::min(x, arguments[1].integer));
  const int64_t low = arguments[1].integer, high = arguments[2].integer;  // Clamp
  return low > high ? Evaluated("the low bound of clamp is above the high bound") : integer(type, std::min(std::max(x, low), high));
}

Evaluated ConstEval::bitsBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const {
  const Ty type = arguments[0].type;
  const uint32_t bits = scalarBits(arguments[0]);
  const auto make = [&](uint32_t value) { return integer(type, asType(type, value)); };
  if (builtin == Builtin::CountLeadingZeros) return make(static_cast<uint32_t>(std::countl_zero(bits)));
  if (builtin == Builtin::CountTrailingZeros) return make(static_cast<uint32_t>(std::countr_zero(bits)));
  if (builtin == Builtin::CountOneBits) return make(static_cast<uint32_t>(std::popcount(bits)));
  if (builtin == Builtin::ReverseBits) return make(reverse(bits));
  if (builtin == Builtin::FirstTrailingBit) return make(bits == 0 ? UINT32_MAX : static_cast<uint32_t>(std::countr_zero(bits)));
  if (builtin == Builtin::FirstLeadingBit) {
    const uint32_t significant = type == kI32 && bits >> 31u != 0 ? ~bits : bits;
    return make(significant == 0 ? UINT32_MAX : 31u - static_cast<uint32_t>(std::countl_zero(significant)));
  }
  const bool insert = builtin == Builtin::InsertBits;
  const int64_t offset = arguments[insert ? 2 : 1].integer, count = arguments[insert ? 3 : 2].integer;
  if (offset + count > 32) return Evaluated("offset + count is above 32");
  if (count == 0) return make(insert ? bits : 0);
  const uint32_t mask = count == 32 ? UINT32_MAX : (1u << static_cast<uint32_t>(count)) - 1;
  const auto shift = static_cast<uint32_t>(offset);
  if (insert) return make((bits & ~(mask << shift)) | (scalarBits(arguments[1]) & mask) << shift);
  const uint32_t field = bits >> shift & mask;
  const bool negative = type == kI32 && (field >> static_cast<uint32_t>(count - 1) & 1u) != 0;
  return make(negative ? field | ~mask : field);
}

Evaluated ConstEval::scalarBuiltin(Builtin builtin, std::span<const ConstValue> arguments) const {
  const Signature signature = info(builtin).signature;
  const bool bits = signature == Signature::IntegerUnary || signature == Signature::ExtractBits || signature == Signature::InsertBits;
  if (builtin == Builtin::Select) return arguments[arguments[2].integer != 0 ? 1 : 0];
  if (bits) return bitsBuiltin(builtin, arguments);
  return isFloatType(arguments[0].type) ? floatBuiltin(builtin, arguments) : integerBuiltin(builtin, arguments);
}

Evaluated ConstEval::dot(const ConstValue& a, const ConstValue& b) const {
  const Ty scalar = types_.scalarOf(a.type);
  Evaluated sum = zero(scalar);
  for (uint32_t i = 0; i < types_.width(a.type); ++i) {
    Evaluated product = scalarBinary(BinaryOp::Mul, element(a, i), element(b, i));
    if (!product.value) return product;
    sum = scalarBinary(BinaryOp::Add, *sum.value, *product.value);
    if (!sum.value) return sum;
  }
  return sum;
}

Evaluated ConstEval::vectorBuiltin(Builtin builtin, std::span<const ConstValue> arguments, Ty result) const {
  if (builtin == Builtin::Dot) return dot(arguments[0], arguments[1]);
  if (builtin == Builtin::All || builtin == Builtin::Any) {
    if (types_.isScalar(arguments[0].type)) return arguments[0];
    bool all = true, any = false;
    for (uint32_t i = 0; i < types_.width(arguments[0].type); ++i) {
      const bool lane = element(arguments[0], i).integer != 0;
      all = all && lane;
      any = any || lane;
    }
    return boolean(builtin == Builtin::All ? all : any);
  }
  if (builtin == Builtin::Transpose) {
    std::vector<ConstValue> columns;
    for (uint32_t c = 0; c < types_[result].columns; ++c) {
      std::vector<ConstValue> column;
      for (uint32_t r = 0; r < types_[result].rows; ++r) column.push_back(element(element(arguments[0], r), c));
      columns.push_back(composite(types_.elementOf(result), std::move(column)));
    }
    return composite(result, std::move(columns));
  }
  if (builtin == Builtin::Determinant) {
    // By cofactors in f64: exact for small integers, as elimination is not.
    const uint32_t n = types_[arguments[0].type].columns;
    std::array<std::array<double, 4>, 4> m{};
    for (uint32_t c = 0; c < n; ++c) {
      for (uint32_t r = 0; r < n; ++r) m[c][r] = element(element(arguments[0], c), r).number;
    }
    const auto two = [&](uint32_t c0, uint32_t c1, uint32_t r) { return m[c0][r] * m[c1][r + 1] - m[c1][r] * m[c0][r + 1]; };
    const auto three = [&](uint32_t c0, uint32_t c1, uint32_t c2, uint32_t r) {
      return m[c0][r] * two(c1, c2, r + 1) - m[c1][r] * two(c0, c2, r + 1) + m[c2][r] * two(c0, c1, r + 1);
    };
    if (n == 2) return makeFloat(result, two(0, 1, 0));
    if (n == 3) return makeFloat(result, three(0, 1, 2, 0));
    return makeFloat(result,
                     m[0][0] * three(1, 2, 3, 1) - m[1][0] * three(0, 2, 3, 1) + m[2][0] * three(0, 1, 3, 1) - m[3][0] * three(0, 1, 2, 1));
  }
  return geometry(builtin, arguments, result);
}

/// Each intermediate result must be finite in the type of the operands, so the steps are those of the specification.
Evaluated ConstEval::geometry(Builtin builtin, std::span<const ConstValue> arguments, Ty result) const {
  const ConstValue& x = arguments[0];
  const Ty scalar = types_.scalarOf(x.type);
  const auto one = [&](double value) { return Evaluated(floating(scalar, value)); };
  const auto step = [&](BinaryOp op, const Evaluated& a, const Evaluated& b) {
    if (!a.value) return a;
    if (!b.value) return b;
    return binary(op, *a.value, *b.value, types_.isScalar(a.value->type) ? b.value->type : a.value->type);
  };
  const auto product = [&](const Evaluated& a, const Evaluated& b) { return step(BinaryOp::Mul, a, b); };
  const auto minus = [&](const Evaluated& a, const Evaluated& b) { return step(BinaryOp::Sub, a, b); };
  const auto root = [&](const Evaluated& a) { return a.value ? makeFloat(scalar, std::sqrt(a.value->number)) : a; };
  const auto length = [&](const ConstValue& v) { return types_.isScalar(v.type) ? one(std::abs(v.number)) : root(dot(v, v)); };
  if (builtin == Builtin::Length) return length(x);
  if (builtin == Builtin::Distance) {
    const Evaluated difference = minus(x, arguments[1]);
    return difference.value ? length(*difference.value) : difference;
  }
  if (builtin == Builtin::Normalize) {
    const Evaluated size = length(x);
    if (size.value && size.value->number == 0) return Evaluated("a vector of length zero cannot be normalized");
    return step(BinaryOp::Div, x, size);
  }
  if (builtin == Builtin::Cross) {
    std::vector<ConstValue> components;
    const auto at = [&](size_t argument, uint32_t i) { return Evaluated(element(arguments[argument], i % 3)); };
    for (uint32_t i = 0; i < 3; ++i) {
      Evaluated component = minus(product(at(0, i + 1), at(1, i + 2)), product(at(0, i + 2), at(1, i + 1)));
      if (!component.value) return component;
      components.push_back(std::move(*component.value));
    }
    return composite(result, std::move(components));
  }
  const ConstValue& y = arguments[1];
  if (builtin == Builtin::FaceForward) {
    Evaluated along = dot(y, arguments[2]);
    if (!along.value) return along;
    return along.value->number < 0 ? Evaluated(x) : unary(UnaryOp::Negate, x);
  }
  const Evaluated cosine = dot(y, x);
  if (builtin == Builtin::Reflect) return minus(x, product(product(one(2), cosine), y));
  // Refract.
  const Evaluated eta = arguments[2];
  Evaluated k = minus(one(1), product(product(eta, eta), minus(one(1), product(cosine, cosine))));
  if (!k.value) return k;
  if (k.value->number < 0) return zero(result);
  return minus(product(eta, x), product(step(BinaryOp::Add, product(eta, cosine), root(k)), y));
}

/// Both parts of every lane are exact in the type of the argument.
Evaluated ConstEval::floatParts(Builtin builtin, const ConstValue& argument, Ty result) const {
  const Ty first = types_.elementOf(result, 0), second = types_.elementOf(result, 1);
  std::vector<ConstValue> fractions, others;
  for (uint32_t i = 0; i < types_.width(argument.type); ++i) {
    const double x = (types_.isScalar(argument.type) ? argument : element(argument, i)).number;
    int exponent = 0;
    const double whole = std::trunc(x);
    fractions.push_back(floating(types_.scalarOf(first), builtin == Builtin::Frexp ? std::frexp(x, &exponent) : x - whole));
    others.push_back(builtin == Builtin::Frexp ? integer(types_.scalarOf(second), exponent) : floating(types_.scalarOf(second), whole));
  }
  const auto make = [&](Ty type, std::vector<ConstValue> lanes) {
    return types_.isScalar(type) ? lanes[0] : composite(type, std::move(lanes));
  };
  return composite(result, {make(first, std::move(fractions)), make(second, std::move(others))});
}

Evaluated ConstEval::packBuiltin(Builtin builtin, const ConstValue& argument, Ty result) const {
  using Lane = PackFormat::Lane;
  const PackFormat format = packFormat(builtin);
  const uint32_t bits = 32 / format.lanes, mask = format.lanes == 2 ? 0xFFFFu : 0xFFu;
  const double scale = format.lane == Lane::Snorm ? static_cast<double>(mask >> 1u) : static_cast<double>(mask);
  const bool is_signed = format.lane == Lane::Snorm || format.lane == Lane::Signed;
  if (info(builtin).signature == Signature::Pack) {
    uint32_t packed = 0;
    for (uint32_t i = 0; i < format.lanes; ++i) {
      const ConstValue lane = element(argument, i);
      int64_t value = lane.integer;
      if (format.lane == Lane::Half) {
        const double rounded = roundToHalf(lane.number);
        if (std::abs(lane.number) > kMaxHalf) return Evaluated("a component does not fit f16");
        value = doubleToHalf(rounded);
      } else if (format.lane == Lane::Snorm || format.lane == Lane::Unorm) {
        const double low = is_signed ? -1.0 : 0.0;
        value = static_cast<int64_t>(std::floor(0.5 + scale * std::clamp(lane.number, low, 1.0)));
      } else if (format.clamp) {
        value = std::clamp<int64_t>(value, is_signed ? -128 : 0, is_signed ? 127 : 255);
      }
      packed |= (static_cast<uint32_t>(static_cast<uint64_t>(value)) & mask) << (i * bits);
    }
    return integer(kU32, packed);
  }
  const auto word = static_cast<uint32_t>(argument.integer);
  std::vector<ConstValue> lanes;
  for (uint32_t i = 0; i < format.lanes; ++i) {
    const uint32_t field = word >> (i * bits) & mask;
    const bool negative = is_signed && field > mask >> 1u;
    const int64_t value = int64_t(field) - (negative ? int64_t(mask) + 1 : 0);
    if (format.lane == Lane::Half) {
      const double number = halfToFloat(static_cast<uint16_t>(field));
      if (!std::isfinite(number)) return Evaluated("a component is not a finite f16");
      lanes.push_back(floating(kF32, number));
    } else if (format.lane == Lane::Snorm || format.lane == Lane::Unorm) {
      lanes.push_back(*makeFloat(kF32, std::max(static_cast<double>(value) / scale, -1.0)).value);
    } else {
      lanes.push_back(integer(types_.scalarOf(result), value));
    }
  }
  return composite(result, std::move(lanes));
}

Evaluated ConstEval::builtin(Builtin builtin, std::span<const ConstValue> arguments, Ty result) const {
  const Signature signature = info(builtin).signature;
  if (signature == Signature::FloatParts) return floatParts(builtin, arguments[0], result);
  if (signature == Signature::Bitcast) return bitcast(arguments[0], result);
  if (signature == Signature::Pack || signature == Signature::Unpack) return packBuiltin(builtin, arguments[0], result);
  if (signature == Signature::DotPacked) {
    const Builtin unpack = builtin == Builtin::Dot4I8Packed ? Builtin::Unpack4xI8 : Builtin::Unpack4xU8;
    const Ty lanes = types_.vector(result, 4);
    return dot(*packBuiltin(unpack, arguments[0], lanes).value, *packBuiltin(unpack, arguments[1], lanes).value);
  }
  const bool whole_vectors = (signature >= Signature::Dot && signature <= Signature::BoolReduce);
  if (whole_vectors) return vectorBuiltin(builtin, arguments, result);
  if (types_.isScalar(result)) return scalarBuiltin(builtin, arguments);
  std::vector<ConstValue> lanes;
  for (uint32_t i = 0; i < types_.width(result); ++i) {
    std::vector<ConstValue> lane_arguments;
    for (const ConstValue& argument : arguments) lane_arguments.push_back(types_.isScalar(argument.type) ? argument : element(argument, i));
    Evaluated lane = scalarBuiltin(builtin, lane_arguments);
    if (!lane.value) return lane;
    lanes.push_back(std::move(*lane.value));
  }
  return composite(result, std::move(lanes));
}

}  // namespace lockstep::wgsl
