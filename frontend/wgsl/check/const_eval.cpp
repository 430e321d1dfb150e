// SPDX-License-Identifier: Apache-2.0
// Values, conversions and operators; the builtin functions are in const_eval_builtins.cpp.
#include "frontend/wgsl/check/const_eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "frontend/wgsl/syntax/half.h"
#include "ir/support/narrow_float.h"

namespace lockstep::wgsl {
namespace {

bool isFloatType(Ty type) { return type == kAbstractFloat || type == kF32 || type == kF16; }

double roundTo(Ty type, double value) {
  if (type == kF32) return static_cast<double>(static_cast<float>(value));
  return type == kF16 ? roundToHalf(value) : value;
}

int64_t wrap(Ty type, uint64_t value) {
  const auto low = static_cast<uint32_t>(value);
  return type == kU32 ? int64_t(low) : int64_t(std::bit_cast<int32_t>(low));
}

bool compare(BinaryOp op, auto a, auto b) {
  return op == BinaryOp::Eq   ? a == b
         : op == BinaryOp::Ne ? a != b
         : op == BinaryOp::Lt ? a < b
         : op == BinaryOp::Le ? a <= b
         : op == BinaryOp::Gt ? a > b
                              : a >= b;
}

bool isComparison(BinaryOp op) { return op >= BinaryOp::Eq && op <= BinaryOp::Ge; }

}  // namespace

uint32_t scalarBits(const ConstValue& value) {
  if (value.type == kF32) return std::bit_cast<uint32_t>(static_cast<float>(value.number));
  if (value.type == kF16) return doubleToHalf(value.number);
  return static_cast<uint32_t>(static_cast<uint64_t>(value.integer));
}

ConstValue ConstEval::composite(Ty type, std::vector<ConstValue> elements) {
  return {.type = type, .elements = std::make_shared<const std::vector<ConstValue>>(std::move(elements))};
}

ConstValue ConstEval::element(const ConstValue& composite, uint32_t index) const {
  return composite.elements ? (*composite.elements)[index] : zero(types_.elementOf(composite.type, index));
}

Evaluated ConstEval::makeFloat(Ty type, double value) const {
  const double rounded = roundTo(type, value);
  if (!std::isfinite(rounded)) return Evaluated(fmt::format("the result is not a finite {}", types_.toString(type)));
  return floating(type, rounded);
}

Evaluated ConstEval::makeInteger(Ty type, __int128 value) const {
  if (type != kAbstractInt) return integer(type, wrap(type, static_cast<uint64_t>(value)));
  if (value < INT64_MIN || value > INT64_MAX) return Evaluated("the result does not fit an abstract integer");
  return integer(type, static_cast<int64_t>(value));
}

Evaluated ConstEval::convert(const ConstValue& value, Ty to) const {
  if (value.type == to) return value;
  if (!types_.isScalar(value.type)) {
    if (!value.elements) return zero(to);
    std::vector<ConstValue> elements;
    for (uint32_t i = 0; i < value.elements->size(); ++i) {
      Evaluated element = convert((*value.elements)[i], types_.elementOf(to, i));
      if (!element.value) return element;
      elements.push_back(std::move(*element.value));
    }
    return composite(to, std::move(elements));
  }
  if (value.type == kAbstractInt && (to == kI32 || to == kU32)) {
    const bool fits =
        to == kI32 ? value.integer >= INT32_MIN && value.integer <= INT32_MAX : value.integer >= 0 && value.integer <= UINT32_MAX;
    if (!fits) return Evaluated(fmt::format("value {} does not fit {}", value.integer, types_.toString(to)));
    return integer(to, value.integer);
  }
  const double number = value.type == kAbstractInt ? static_cast<double>(value.integer) : value.number;
  const double rounded = roundTo(to, number);
  if (!std::isfinite(rounded)) return Evaluated(fmt::format("value {} does not fit {}", number, types_.toString(to)));
  return floating(to, rounded);
}

Evaluated ConstEval::scalarCast(const ConstValue& value, Ty to) const {
  const bool abstract_source = value.type == kAbstractInt || value.type == kAbstractFloat;
  if (to == kBool) return boolean(isFloatType(value.type) ? value.number != 0 : value.integer != 0);
  if (isFloatType(to)) {
    if (abstract_source) return convert(value, to);
    return makeFloat(to, isFloatType(value.type) ? value.number : static_cast<double>(value.integer));
  }
  if (value.type == kAbstractInt) return convert(value, to);
  if (!isFloatType(value.type)) return integer(to, wrap(to, static_cast<uint64_t>(value.integer)));
  // Float to integer: clamp to the largest representable values of the source type, then truncate.
  const double low = to == kI32 ? -2147483648.0 : 0.0;
  double high = to == kI32 ? 2147483647.0 : 4294967295.0;
  if (value.type == kF32) high = to == kI32 ? 2147483520.0 : 4294967040.0;
  return integer(to, static_cast<int64_t>(std::trunc(std::clamp(value.number, low, high))));
}

Evaluated ConstEval::cast(const ConstValue& value, Ty to) const {
  if (value.type == to) return value;
  if (types_.isScalar(value.type)) return scalarCast(value, to);
  if (!value.elements) return zero(to);
  std::vector<ConstValue> elements;
  for (uint32_t i = 0; i < value.elements->size(); ++i) {
    Evaluated element = cast((*value.elements)[i], types_.elementOf(to, i));
    if (!element.value) return element;
    elements.push_back(std::move(*element.value));
  }
  return composite(to, std::move(elements));
}

Evaluated ConstEval::bitcast(const ConstValue& value, Ty to) const {
  const uint32_t count = types_.width(value.type), target_count = types_.width(to);
  const auto size = [](Ty scalar) { return scalar == kF16 ? 16u : 32u; };
  const uint32_t source_size = size(types_.scalarOf(value.type)), target_size = size(types_.scalarOf(to));
  std::vector<uint64_t> words((count * source_size + 31) / 32, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t bits = scalarBits(count == 1 ? value : element(value, i));
    words[i * source_size / 32] |= bits << (i * source_size % 32);
  }
  std::vector<ConstValue> lanes;
  const Ty scalar = types_.scalarOf(to);
  for (uint32_t i = 0; i < target_count; ++i) {
    auto bits = static_cast<uint32_t>(words[i * target_size / 32] >> (i * target_size % 32));
    if (scalar == kF32 || scalar == kF16) {
      const double number = scalar == kF32 ? static_cast<double>(std::bit_cast<float>(bits)) : halfToFloat(static_cast<uint16_t>(bits));
      if (!std::isfinite(number)) return Evaluated(fmt::format("the bits are not a finite {}", types_.toString(scalar)));
      lanes.push_back(floating(scalar, number));
    } else {
      lanes.push_back(integer(scalar, wrap(scalar, bits)));
    }
  }
  return target_count == 1 ? Evaluated(lanes[0]) : Evaluated(composite(to, std::move(lanes)));
}

Evaluated ConstEval::unary(UnaryOp op, const ConstValue& operand) const {
  if (!types_.isScalar(operand.type)) {
    std::vector<ConstValue> elements;
    for (uint32_t i = 0; i < types_.elementCount(operand.type); ++i) {
      Evaluated result = unary(op, element(operand, i));
      if (!result.value) return result;
      elements.push_back(std::move(*result.value));
    }
    return composite(operand.type, std::move(elements));
  }
  if (op == UnaryOp::Not) return boolean(operand.integer == 0);
  if (op == UnaryOp::Complement) {
    return operand.type == kAbstractInt ? integer(kAbstractInt, ~operand.integer)
                                        : integer(operand.type, wrap(operand.type, ~static_cast<uint64_t>(operand.integer)));
  }
  if (isFloatType(operand.type)) return floating(operand.type, -operand.number);
  const uint64_t negated = 0 - static_cast<uint64_t>(operand.integer);
  return integer(operand.type, operand.type == kAbstractInt ? static_cast<int64_t>(negated) : wrap(operand.type, negated));
}

Evaluated ConstEval::binary(BinaryOp op, const ConstValue& left, const ConstValue& right, Ty result) const {
  const bool matrix = types_.isMatrix(left.type) || types_.isMatrix(right.type);
  if (matrix && op == BinaryOp::Mul && !types_.isScalar(left.type) && !types_.isScalar(right.type)) {
    return matrixProduct(left, right, result);
  }
  if (types_.isScalar(left.type) && types_.isScalar(right.type)) return scalarBinary(op, left, right);
  std::vector<ConstValue> elements;
  const uint32_t count = types_.elementCount(result);
  for (uint32_t i = 0; i < count; ++i) {
    const ConstValue a = types_.isScalar(left.type) ? left : element(left, i);
    const ConstValue b = types_.isScalar(right.type) ? right : element(right, i);
    Evaluated lane = binary(op, a, b, types_.elementOf(result, i));
    if (!lane.value) return lane;
    elements.push_back(std::move(*lane.value));
  }
  return composite(result, std::move(elements));
}

Evaluated ConstEval::matrixProduct(const ConstValue& left, const ConstValue& right, Ty result) const {
  const Ty scalar = types_.scalarOf(result);
  const auto at = [&](const ConstValue& m, uint32_t column, uint32_t row) { return element(element(m, column), row).number; };
  const bool left_matrix = types_.isMatrix(left.type), right_matrix = types_.isMatrix(right.type);
  const uint32_t inner = left_matrix ? types_[left.type].columns : types_.width(left.type);
  const auto entry = [&](uint32_t column, uint32_t row) {
    double sum = 0;
    for (uint32_t k = 0; k < inner; ++k) {
      const double a = left_matrix ? at(left, k, row) : element(left, k).number;
      const double b = right_matrix ? at(right, column, k) : element(right, k).number;
      sum = roundTo(scalar, sum + roundTo(scalar, a * b));
    }
    return makeFloat(scalar, sum);  // what was infinite on the way stays so, or is no number
  };
  const bool result_matrix = types_.isMatrix(result);
  std::vector<ConstValue> elements;
  for (uint32_t i = 0; i < types_.elementCount(result); ++i) {
    if (!result_matrix) {
      Evaluated value = left_matrix ? entry(0, i) : entry(i, 0);
      if (!value.value) return value;
      elements.push_back(std::move(*value.value));
      continue;
    }
    std::vector<ConstValue> column;
    for (uint32_t row = 0; row < types_[result].rows; ++row) {
      Evaluated value = entry(i, row);
      if (!value.value) return value;
      column.push_back(std::move(*value.value));
    }
    elements.push_back(composite(types_.elementOf(result), std::move(column)));
  }
  return composite(result, std::move(elements));
}

Evaluated ConstEval::scalarShift(BinaryOp op, const ConstValue& a, const ConstValue& b) const {
  const bool abstract = a.type == kAbstractInt;
  const int64_t count = abstract ? std::min<int64_t>(b.integer, 64) : b.integer;  // an abstract integer can be shifted by any count
  if (count >= 32 && !abstract)
    return Evaluated(fmt::format("shift by {} is not less than the width of {}", count, types_.toString(a.type)));
  if (op == BinaryOp::Shr) return integer(a.type, a.integer >> std::min<int64_t>(count, 63));
  const auto shifted = static_cast<__int128>(a.integer) * (static_cast<__int128>(1) << count);
  const bool fits = a.type == kU32   ? shifted <= UINT32_MAX
                    : a.type == kI32 ? shifted >= INT32_MIN && shifted <= INT32_MAX
                                     : shifted >= INT64_MIN && shifted <= INT64_MAX;
  if (!fits) return Evaluated(fmt::format("shift of {} by {} loses bits", a.integer, b.integer));
  return integer(a.type, static_cast<int64_t>(shifted));
}

Evaluated ConstEval::scalarBinary(BinaryOp op, const ConstValue& a, const ConstValue& b) const {
  if (op == BinaryOp::Shl || op == BinaryOp::Shr) return scalarShift(op, a, b);
  if (isFloatType(a.type)) {
    const double x = a.number, y = b.number;
    if (isComparison(op)) return boolean(compare(op, x, y));
    if ((op == BinaryOp::Div || op == BinaryOp::Rem) && y == 0) return Evaluated("division by zero");
    // x % y is x - y * trunc(x / y).
    const double quotient = x / y;
    const bool overflows = !std::isfinite(a.type == kAbstractFloat ? quotient : roundTo(kF32, quotient));
    if (op == BinaryOp::Rem && overflows) return Evaluated("the quotient of the operands overflows");
    const double value = op == BinaryOp::Add   ? x + y
                         : op == BinaryOp::Sub ? x - y
                         : op == BinaryOp::Mul ? x * y
                         : op == BinaryOp::Div ? x / y
                                               : std::fmod(x, y);
    return makeFloat(a.type, value);
  }
  const int64_t x = a.integer, y = b.integer;
  if (isComparison(op)) return boolean(compare(op, x, y));
  if (op == BinaryOp::And || op == BinaryOp::LogicalAnd) return integer(a.type, x & y);
  if (op == BinaryOp::Or || op == BinaryOp::LogicalOr) return integer(a.type, x | y);
  if (op == BinaryOp::Xor) return integer(a.type, x ^ y);
  if (op == BinaryOp::Div || op == BinaryOp::Rem) {
    const int64_t minimum = a.type == kI32 ? INT32_MIN : INT64_MIN;
    if (y == 0) return Evaluated("division by zero");
    if (a.type != kU32 && x == minimum && y == -1) return Evaluated("division overflows");
    return integer(a.type, op == BinaryOp::Div ? x / y : x % y);
  }
  const __int128 wide_x = x, wide_y = y;
  return makeInteger(a.type, op == BinaryOp::Add ? wide_x + wide_y : op == BinaryOp::Sub ? wide_x - wide_y : wide_x * wide_y);
}

}  // namespace lockstep::wgsl
