// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/text/jinja/value.h"
#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

[[noreturn]] void failOperands(std::string_view sign, const Value& a, const Value& b) {
  for (const Value* side : {&a, &b}) {
    if (const Undefined* reason = std::get_if<Undefined>(&side->any())) failRender(reason->message);
  }
  if (sign == "+" && (a.text() != nullptr || a.list() != nullptr)) {
    failRender(fmt::format("can only concatenate {0} (not \"{1}\") to {0}", a.typeName(), b.typeName()));
  }
  failRender(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign == "**" ? "** or pow()" : sign, a.typeName(), b.typeName()));
}

[[noreturn]] void failOverflow() { failRender("a whole number beyond 64 bits"); }

int64_t wholePower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) failOverflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) failOverflow();
  }
  return result;
}

Value ofWholes(std::string_view sign, int64_t a, int64_t b) {
  int64_t result = 0;
  if (sign == "+") {
    if (__builtin_add_overflow(a, b, &result)) failOverflow();
    return Value(result);
  }
  if (sign == "-") {
    if (__builtin_sub_overflow(a, b, &result)) failOverflow();
    return Value(result);
  }
  if (sign == "*") {
    if (__builtin_mul_overflow(a, b, &result)) failOverflow();
    return Value(result);
  }
  if (sign == "**") return b < 0 ? Value(std::pow(static_cast<double>(a), static_cast<double>(b))) : Value(wholePower(a, b));
  if (b == 0) failRender(sign == "/" ? "division by zero" : "integer division or modulo by zero");
  if (sign == "/") return Value(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {
    if (sign == "%") return Value(int64_t{0});
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) failOverflow();
    return Value(result);
  }
  const int64_t remainder = a % b;
  const bool floors = remainder != 0 && (remainder < 0) != (b < 0);
  return Value(sign == "%" ? remainder + (floors ? b : 0) : a / b - (floors ? 1 : 0));
}

Value ofDoubles(std::string_view sign, double a, double b) {
  if (sign == "+") return Value(a + b);
  if (sign == "-") return Value(a - b);
  if (sign == "*") return Value(a * b);
  if (sign == "**") return Value(std::pow(a, b));
  if (b == 0) failRender(sign == "/" ? "float division by zero" : "float floor division by zero");
  if (sign == "/") return Value(a / b);
  const double quotient = std::floor(a / b);
  if (sign == "//") return Value(quotient);
  const double remainder = std::fmod(a, b);
  return Value(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

Value repeated(const Value& value, int64_t times) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  const size_t size = value.text() != nullptr ? value.text()->size() : value.list()->items.size();
  if (size == 0 || count == 0) return value.text() != nullptr ? Value("") : Value::list({}, value.list()->is_tuple);
  checkLength(count);
  checkLength(count * size);
  if (value.text() != nullptr) {
    std::string text;
    for (uint64_t i = 0; i < count; ++i) text += *value.text();
    return Value(std::move(text));
  }
  constexpr uint64_t kMostItems = 1'000'000;
  if (count * size > kMostItems) throw TemplateFailure(TemplateFailure::Kind::Limit, "a list of more than 1000000 items");
  Values items;
  for (uint64_t i = 0; i < count; ++i) items.insert(items.end(), value.list()->items.begin(), value.list()->items.end());
  return Value::list(std::move(items), value.list()->is_tuple);
}

}  // namespace

Value arithmetic(std::string_view sign, const Value& a, const Value& b) {
  if (a.isWhole() && b.isWhole()) return ofWholes(sign, a.whole(), b.whole());
  if (a.isNumber() && b.isNumber()) return ofDoubles(sign, a.asDouble(), b.asDouble());
  if (sign == "+" && a.text() != nullptr && b.text() != nullptr) return checkedText(*a.text() + *b.text());
  if (sign == "+" && a.list() != nullptr && b.list() != nullptr && a.list()->is_tuple == b.list()->is_tuple) {
    Values items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    constexpr size_t kMostItems = 1'000'000;
    if (items.size() > kMostItems) throw TemplateFailure(TemplateFailure::Kind::Limit, "a list of more than 1000000 items");
    return Value::list(std::move(items), a.list()->is_tuple);
  }
  if (sign == "*") {
    if ((a.text() != nullptr || a.list() != nullptr) && b.isWhole()) return repeated(a, b.whole());
    if ((b.text() != nullptr || b.list() != nullptr) && a.isWhole()) return repeated(b, a.whole());
  }
  if (sign == "%" && a.text() != nullptr) failRender("the formatting of texts by % is not supported");
  failOperands(sign, a, b);
}

Value negate(const Value& a) {
  if (a.isWhole()) return ofWholes("-", 0, a.whole());
  if (a.real() != nullptr) return Value(-*a.real());
  if (const Undefined* reason = std::get_if<Undefined>(&a.any())) failRender(reason->message);
  failRender(fmt::format("bad operand type for unary -: '{}'", a.typeName()));
}

namespace {

std::string jsonText(std::string_view text, bool ascii) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    const auto number = static_cast<uint32_t>(point);
    switch (point) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\b':
        result += "\\b";
        break;
      case '\f':
        result += "\\f";
        break;
      default:
        if (point < 0x20 || (ascii && point >= 0x7F && point < 0x10000)) {
          result += fmt::format("\\u{:04x}", number);
        } else if (ascii && point >= 0x10000) {
          result += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((number - 0x10000) >> 10), 0xDC00 + ((number - 0x10000) & 0x3FF));
        } else {
          appendUtf8(result, point);
        }
    }
  }
  return result + "\"";
}

std::string jsonNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return reprOfDouble(value);
}

std::string jsonKey(const Value& key, const JsonStyle& style) {
  if (key.text() != nullptr) return jsonText(*key.text(), style.ascii);
  if (key.isNone() || key.isNumber()) return "\"" + toJson(key, style) + "\"";
  failRender(fmt::format("keys must be str, int, float, bool or None, not {}", key.typeName()));
}

}  // namespace

std::string toJson(const Value& value, const JsonStyle& style, size_t depth) {
  constexpr size_t kMostDepth = 100;
  if (depth > kMostDepth) failRender("a value for tojson is too deep");
  if (value.isNone()) return "null";
  if (value.boolean() != nullptr) return *value.boolean() ? "true" : "false";
  if (value.integer() != nullptr) return std::to_string(*value.integer());
  if (value.real() != nullptr) return jsonNumber(*value.real());
  if (value.text() != nullptr) return jsonText(*value.text(), style.ascii);
  std::vector<std::string> parts;
  if (value.list() != nullptr) {
    for (const Value& item : value.list()->items) parts.push_back(toJson(item, style, depth + 1));
  } else if (value.dict() != nullptr) {
    std::vector<std::pair<Value, Value>> items = value.dict()->items;
    if (style.sort_keys) std::ranges::stable_sort(items, [](const auto& a, const auto& b) { return compare(a.first, b.first, "<") < 0; });
    for (const auto& [key, item] : items) parts.push_back(jsonKey(key, style) + style.colon + toJson(item, style, depth + 1));
  } else {
    failRender(fmt::format("Object of type {} is not JSON serializable", value.typeName()));
  }
  const bool is_list = value.list() != nullptr;
  if (parts.empty()) return is_list ? "[]" : "{}";
  const auto line = [&](size_t level) {
    if (!style.lines) return std::string();
    std::string text = "\n";
    for (size_t i = 0; i < level; ++i) text += style.indent;
    return text;
  };
  std::string result = is_list ? "[" : "{";
  for (size_t i = 0; i < parts.size(); ++i) {
    result += (i > 0 ? style.between : "") + line(depth + 1) + parts[i];
    checkLength(result.size());
  }
  return result + line(depth) + (is_list ? "]" : "}");
}

}  // namespace lockstep::text::jinja
