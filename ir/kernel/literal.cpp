// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/literal.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

#include "ir/support/diagnostic.h"
#include "ir/support/narrow_float.h"
#include "ir/support/text.h"

namespace lockstep::kernel {
namespace {

template <class T>
std::optional<T> parseNumber(std::string_view text) {
  T value{};
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<uint32_t> parseInteger(std::string_view text) {
  int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  T value{};
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<uint32_t>(value);
}

/// The shortest decimal that rounds to the same binary16; five digits always do.
std::string formatHalf(uint16_t bits) {
  double value = halfToFloat(bits);
  std::string text;
  for (int digits = 1; digits <= 5; ++digits) {
    text = fmt::format("{:.{}g}", value, digits);
    if (doubleToHalf(parseNumber<double>(text).value_or(0.0)) == bits) break;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string formatScalar(Scalar scalar, uint32_t bits) {
  bits = canonicalBits(scalar, bits);
  switch (scalar) {
    case Scalar::Bool:
      return bits != 0 ? "true" : "false";
    case Scalar::I32:
      return fmt::format("{}i", static_cast<int32_t>(bits));
    case Scalar::U32:
      return fmt::format("{}u", bits);
    case Scalar::F32: {
      float value = std::bit_cast<float>(bits);
      return std::isfinite(value) ? formatFloat(value) + "f" : fmt::format("f32(0x{:08x})", bits);
    }
    case Scalar::BF16:
      return fmt::format("bf16(0x{:04x})", bits);
    case Scalar::F16: {
      bool finite = (bits & 0x7c00u) != 0x7c00u;
      return finite ? formatHalf(static_cast<uint16_t>(bits)) + "h" : fmt::format("f16(0x{:04x})", bits);
    }
  }
  internalError("scalar type out of range");
}

std::optional<uint32_t> parseScalar(Scalar scalar, std::string_view number) {
  switch (scalar) {
    case Scalar::Bool:
    case Scalar::BF16:
      return std::nullopt;
    case Scalar::I32:
      return parseInteger<int32_t>(number);
    case Scalar::U32:
      return parseInteger<uint32_t>(number);
    case Scalar::F32: {
      std::optional<float> value = parseNumber<float>(number);
      if (!value || !std::isfinite(*value)) return std::nullopt;
      return std::bit_cast<uint32_t>(*value);
    }
    case Scalar::F16: {
      std::optional<double> value = parseNumber<double>(number);
      if (!value || !(std::fabs(*value) < 65520.0)) return std::nullopt;
      return doubleToHalf(*value);
    }
  }
  internalError("scalar type out of range");
}

std::optional<Scalar> scalarOfSuffix(std::string_view suffix) {
  if (suffix == "i") return Scalar::I32;
  if (suffix == "u") return Scalar::U32;
  if (suffix == "f") return Scalar::F32;
  if (suffix == "h") return Scalar::F16;
  return std::nullopt;
}

uint32_t canonicalBits(Scalar scalar, uint32_t bits) {
  if (scalar == Scalar::Bool) return bits != 0 ? 1 : 0;
  return byteSize(scalar) == 2 ? bits & 0xffffu : bits;
}

}  // namespace lockstep::kernel
