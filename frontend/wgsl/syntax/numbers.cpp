// SPDX-License-Identifier: Apache-2.0
// Numeric literals. Floats are rounded once, straight to the type of their suffix; hexadecimal ones with a suffix must be exact.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "frontend/wgsl/syntax/half.h"
#include "frontend/wgsl/syntax/token.h"

namespace lockstep::wgsl {
namespace {

bool isDecimal(char c) { return c >= '0' && c <= '9'; }
bool isHex(char c) { return isDecimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool isWordCharacter(char c) { return isDecimal(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Where the parts of a literal begin and end in the text.
struct Shape {
  bool hex = false;
  bool point = false;
  bool exponent = false;
  std::string_view digits;                 ///< without "0x", point included
  int64_t exponent_value = 0;              ///< clamped to a range that no double reaches
  std::string_view mantissa_and_exponent;  ///< of a decimal literal, as from_chars reads it
  char suffix = 0;
  size_t length = 0;
};

int64_t readExponent(std::string_view text, size_t& at) {
  const bool negative = text[at] == '-';
  if (text[at] == '-' || text[at] == '+') ++at;
  int64_t value = 0;
  for (; at < text.size() && isDecimal(text[at]); ++at) value = std::min<int64_t>(value * 10 + (text[at] - '0'), 1'000'000);
  return negative ? -value : value;
}

Shape scan(std::string_view text) {
  Shape shape;
  shape.hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const auto is_digit = shape.hex ? isHex : isDecimal;
  const size_t begin = shape.hex ? 2 : 0;
  size_t at = begin;
  while (at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !shape.point))) {
    shape.point |= text[at] == '.';
    ++at;
  }
  shape.digits = text.substr(begin, at - begin);
  const bool exponent_letter = at < text.size() && (shape.hex ? text[at] == 'p' || text[at] == 'P' : text[at] == 'e' || text[at] == 'E');
  if (exponent_letter) {
    size_t after = at + 1;
    const bool sign = after < text.size() && (text[after] == '+' || text[after] == '-');
    if (after + (sign ? 1 : 0) < text.size() && isDecimal(text[after + (sign ? 1 : 0)])) {
      shape.exponent = true;
      shape.exponent_value = readExponent(text, after);
      at = after;
    }
  }
  shape.mantissa_and_exponent = text.substr(0, at);
  constexpr std::string_view kSuffixes = "iufh";
  const bool hex_digits_swallow_f = shape.hex && !shape.exponent;
  if (at < text.size() && kSuffixes.find(text[at]) != std::string_view::npos && !(hex_digits_swallow_f && text[at] == 'f')) {
    shape.suffix = text[at++];
  }
  shape.length = at;
  return shape;
}

template <class T>
T readDecimal(std::string_view text, const Shape& shape) {
  T value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  // from_chars does not say whether it was too large or too small: look at the decimal place of the first nonzero digit.
  int64_t place = 0;
  bool after_point = false, seen = false;
  for (const char c : shape.digits) {
    if (c == '.') {
      after_point = true;
    } else if (!seen && c == '0') {
      if (after_point) --place;
    } else {
      seen = true;
      if (!after_point) ++place;
    }
  }
  return place + shape.exponent_value > 0 ? std::numeric_limits<T>::infinity() : T(0);
}

/// Value of a hexadecimal float, rounded to f64; sets `exact` when it has at most `precision` significant bits and fits the exponent range.
double readHexFloat(const Shape& shape, int precision, int minimum_exponent, int maximum_exponent, bool& exact, bool& overflow) {
  uint64_t mantissa = 0;
  int64_t exponent = shape.exponent_value;
  bool after_point = false, lost_bits = false;
  for (const char c : shape.digits) {
    if (c == '.') {
      after_point = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(isDecimal(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    if (mantissa >> 60u != 0) {
      lost_bits |= digit != 0;
      if (!after_point) exponent += 4;
    } else {
      mantissa = mantissa << 4u | digit;
      if (after_point) exponent -= 4;
    }
  }
  if (mantissa == 0) {
    exact = !lost_bits;
    return 0;
  }
  if (lost_bits) mantissa |= 1u;  // far below what f64 keeps, but it decides ties
  const int zeros = std::countr_zero(mantissa);
  mantissa >>= static_cast<unsigned>(zeros);
  exponent += zeros;
  const int bits = 64 - std::countl_zero(mantissa);
  const int64_t leading = exponent + bits - 1;  // exponent of the highest bit
  overflow = leading > maximum_exponent;
  const int64_t lowest = std::max<int64_t>(leading - precision + 1, minimum_exponent - precision + 1);
  exact = !lost_bits && !overflow && exponent >= lowest;
  return std::ldexp(static_cast<double>(mantissa), static_cast<int>(exponent));
}

std::string readFloat(const Shape& shape, Literal& literal) {
  literal.kind = shape.suffix == 'f' ? LiteralKind::F32 : shape.suffix == 'h' ? LiteralKind::F16 : LiteralKind::AbstractFloat;
  const std::string_view type = shape.suffix == 'f' ? "f32" : shape.suffix == 'h' ? "f16" : "abstract float";
  if (shape.hex) {
    bool exact = false, overflow = false;
    if (shape.suffix == 'f') {
      literal.number = readHexFloat(shape, 24, -126, 127, exact, overflow);
    } else if (shape.suffix == 'h') {
      literal.number = readHexFloat(shape, 11, -14, 15, exact, overflow);
    } else {
      literal.number = readHexFloat(shape, 53, -1022, 1023, exact, overflow);
    }
    if (overflow || !std::isfinite(literal.number)) return fmt::format("literal is too large for {}", type);
    return exact || shape.suffix == 0 ? "" : fmt::format("hexadecimal literal is not exactly representable as {}", type);
  }
  if (shape.suffix == 'f') {
    literal.number = static_cast<double>(readDecimal<float>(shape.mantissa_and_exponent, shape));
  } else {
    literal.number = readDecimal<double>(shape.mantissa_and_exponent, shape);
    if (shape.suffix == 'h') literal.number = roundToHalf(literal.number);
  }
  return std::isfinite(literal.number) ? "" : fmt::format("literal is too large for {}", type);
}

std::string readInteger(const Shape& shape, Literal& literal) {
  literal.kind = shape.suffix == 'i' ? LiteralKind::I32 : shape.suffix == 'u' ? LiteralKind::U32 : LiteralKind::AbstractInt;
  if (!shape.hex && shape.digits.size() > 1 && shape.digits[0] == '0') return "decimal integer literal has a leading zero";
  uint64_t value = 0;
  const char* end = shape.digits.data() + shape.digits.size();
  const auto result = std::from_chars(shape.digits.data(), end, value, shape.hex ? 16 : 10);
  const uint64_t limit = shape.suffix == 'i' ? INT32_MAX : shape.suffix == 'u' ? UINT32_MAX : INT64_MAX;
  if (result.ec != std::errc() || value > limit) {
    return fmt::format("literal is too large for {}", shape.suffix == 'i' ? "i32" : shape.suffix == 'u' ? "u32" : "abstract integer");
  }
  literal.integer = static_cast<int64_t>(value);
  return "";
}

}  // namespace

size_t readNumber(std::string_view text, Literal& literal, std::string& error) {
  const Shape shape = scan(text);
  size_t length = shape.length;
  while (length < text.size() && isWordCharacter(text[length])) ++length;
  const bool no_digits = shape.digits.empty() || shape.digits == ".";
  const bool float_suffix = shape.suffix == 'f' || shape.suffix == 'h';
  const bool is_float = shape.point || shape.exponent || (float_suffix && !shape.hex);
  if (length != shape.length || no_digits) {
    error = fmt::format("malformed number '{}'", text.substr(0, length));
  } else if (is_float && (shape.suffix == 'i' || shape.suffix == 'u')) {
    error = fmt::format("suffix '{}' does not fit a floating-point literal", shape.suffix);
  } else if (shape.hex && float_suffix && !shape.exponent) {
    error = fmt::format("a hexadecimal literal with suffix '{}' needs an exponent", shape.suffix);
  } else if (is_float && !shape.hex && !shape.point && !shape.exponent && shape.digits.size() > 1 && shape.digits[0] == '0') {
    error = "decimal literal has a leading zero";
  } else {
    error = is_float ? readFloat(shape, literal) : readInteger(shape, literal);
  }
  return std::max<size_t>(length, 1);
}

}  // namespace lockstep::wgsl
