// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

constexpr size_t kMostDepth = 100;
constexpr uint64_t kMostBytes = uint64_t{1} << 26;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

void checkDepth(size_t depth) {
  if (depth > kMostDepth) failRender("a value holds itself, or is too deep");
}

std::string reprOfText(std::string_view text) {
  const bool use_double = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char32_t mark = use_double ? '"' : '\'';
  std::string result = utf8Of(mark);
  for (size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    const auto number = static_cast<uint32_t>(point);
    if (point == mark || point == '\\') {
      result += '\\';
      appendUtf8(result, point);
    } else if (point == '\n') {
      result += "\\n";
    } else if (point == '\r') {
      result += "\\r";
    } else if (point == '\t') {
      result += "\\t";
    } else if (isPrintable(point)) {
      appendUtf8(result, point);
    } else {
      result += point < 0x100     ? fmt::format("\\x{:02x}", number)
                : point < 0x10000 ? fmt::format("\\u{:04x}", number)
                                  : fmt::format("\\U{:08x}", number);
    }
  }
  appendUtf8(result, mark);
  return result;
}

std::string reprOfItems(const Values& items, size_t depth) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) text += (i > 0 ? ", " : "") + items[i].repr(depth + 1);
  checkLength(text.size());
  return text;
}

}  // namespace

void failRender(const std::string& message) { throw TemplateFailure(TemplateFailure::Kind::Render, message); }

void checkLength(uint64_t bytes) {
  if (bytes > kMostBytes) throw TemplateFailure(TemplateFailure::Kind::Limit, fmt::format("a text of more than {} bytes", kMostBytes));
}

Value checkedText(std::string text) {
  checkLength(text.size());
  return Value(std::move(text));
}

Value Value::ofJson(const JsonValue& json) {
  if (json.boolean() != nullptr) return Value(*json.boolean());
  if (json.integer() != nullptr) return Value(*json.integer());
  if (json.number() != nullptr) return Value(*json.number());
  if (json.string() != nullptr) return Value(*json.string());
  if (json.array() != nullptr) {
    Values items;
    for (const JsonValue& item : *json.array()) items.push_back(ofJson(item));
    return list(std::move(items));
  }
  if (json.object() != nullptr) {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, item] : json.object()->members) items.emplace_back(Value(key), ofJson(item));
    return dict(std::move(items));
  }
  return {};
}

bool Value::truth() const {
  if (boolean() != nullptr) return *boolean();
  if (integer() != nullptr) return *integer() != 0;
  if (real() != nullptr) return *real() != 0;
  if (text() != nullptr) return !text()->empty();
  if (list() != nullptr) return !list()->items.empty();
  if (dict() != nullptr) return !dict()->items.empty();
  return !isUndefined() && !isNone();
}

std::string reprOfDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Value::str() const {
  if (text() != nullptr) return *text();
  return isUndefined() ? std::string() : repr();
}

std::string Value::repr(size_t depth) const {
  checkDepth(depth);
  return std::visit(
      Overloaded{
          [](const Undefined&) { return std::string("Undefined"); }, [](const None&) { return std::string("None"); },
          [](bool value) { return std::string(value ? "True" : "False"); }, [](int64_t value) { return std::to_string(value); },
          [](double value) { return reprOfDouble(value); }, [](const Text& value) { return reprOfText(*value); },
          [&](const std::shared_ptr<const List>& value) {
            const std::string items = reprOfItems(value->items, depth);
            if (!value->is_tuple) return "[" + items + "]";
            return "(" + items + (value->items.size() == 1 ? ",)" : ")");
          },
          [&](const std::shared_ptr<const Dict>& value) {
            std::string items;
            for (const auto& [key, item] : value->items)
              items += (items.empty() ? "" : ", ") + key.repr(depth + 1) + ": " + item.repr(depth + 1);
            checkLength(items.size());
            return "{" + items + "}";
          },
          [&](const std::shared_ptr<Namespace>& value) {
            std::string items;
            for (const auto& [key, item] : value->members) items += (items.empty() ? "'" : ", '") + key + "': " + item.repr(depth + 1);
            return "<Namespace {" + items + "}>";
          },
          [](const std::shared_ptr<const Function>& value) { return "<function " + value->name + ">"; },
          [](const std::shared_ptr<Loop>& value) { return fmt::format("<LoopContext {}/{}>", value->index + 1, value->items->size()); }},
      any_);
}

std::string Value::typeName() const {
  if (list() != nullptr) return list()->is_tuple ? "tuple" : "list";
  constexpr const char* kNames[] = {"Undefined", "NoneType", "bool",      "int",      "float",      "str",
                                    "list",      "dict",     "Namespace", "function", "LoopContext"};
  return kNames[any_.index()];
}

Values Value::iterate() const {
  if (list() != nullptr) return list()->items;
  Values items;
  if (dict() != nullptr) {
    for (const auto& [key, item] : dict()->items) items.push_back(key);
  } else if (text() != nullptr) {
    for (size_t at = 0; at < text()->size();) items.emplace_back(utf8Of(nextCodePoint(*text(), at)));
  } else if (!isUndefined()) {
    failRender(fmt::format("'{}' object is not iterable", typeName()));
  }
  return items;
}

const Value* Value::find(const Value& key) const {
  if (dict() == nullptr) return nullptr;
  const auto found = std::ranges::find_if(dict()->items, [&](const auto& item) { return equal(item.first, key); });
  return found == dict()->items.end() ? nullptr : &found->second;
}

bool equal(const Value& a, const Value& b, size_t depth) {
  checkDepth(depth);
  if (a.isNumber() && b.isNumber()) return a.isWhole() && b.isWhole() ? a.whole() == b.whole() : a.asDouble() == b.asDouble();
  if (a.any().index() != b.any().index()) return false;
  if (a.text() != nullptr) return *a.text() == *b.text();
  if (a.list() != nullptr) {
    return a.list()->is_tuple == b.list()->is_tuple &&
           std::ranges::equal(a.list()->items, b.list()->items, [&](const Value& x, const Value& y) { return equal(x, y, depth + 1); });
  }
  if (a.dict() != nullptr) {
    return a.dict()->items.size() == b.dict()->items.size() && std::ranges::all_of(a.dict()->items, [&](const auto& item) {
             const Value* other = b.find(item.first);
             return other != nullptr && equal(item.second, *other, depth + 1);
           });
  }
  if (a.space() != nullptr) return a.space() == b.space();
  if (a.function() != nullptr) return a.function() == b.function();
  if (a.loop() != nullptr) return a.loop() == b.loop();
  return true;
}

int compare(const Value& a, const Value& b, std::string_view sign, size_t depth) {
  checkDepth(depth);
  for (const Value* side : {&a, &b}) {
    if (const Undefined* reason = std::get_if<Undefined>(&side->any())) failRender(reason->message);
  }
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.isWhole() && b.isWhole()) return order(a.whole(), b.whole());
  if (a.isNumber() && b.isNumber()) return order(a.asDouble(), b.asDouble());
  if (a.text() != nullptr && b.text() != nullptr) return order(*a.text(), *b.text());
  if (a.list() != nullptr && b.list() != nullptr) {
    const Values &x = a.list()->items, &y = b.list()->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], depth + 1)) return compare(x[i], y[i], sign, depth + 1);
    }
    return order(x.size(), y.size());
  }
  failRender(fmt::format("'{}' not supported between instances of '{}' and '{}'", sign, a.typeName(), b.typeName()));
}

bool contains(const Value& container, const Value& item) {
  if (container.text() != nullptr) {
    if (item.text() == nullptr) failRender(fmt::format("'in <string>' requires string as left operand, not {}", item.typeName()));
    return container.text()->find(*item.text()) != std::string::npos;
  }
  if (container.dict() != nullptr) return container.find(item) != nullptr;
  if (container.list() != nullptr)
    return std::ranges::any_of(container.list()->items, [&](const Value& each) { return equal(each, item); });
  if (container.isUndefined()) return false;
  failRender(fmt::format("argument of type '{}' is not iterable", container.typeName()));
}

}  // namespace lockstep::text::jinja
