// SPDX-License-Identifier: Apache-2.0
// The methods of Python's str, dict and list that templates call. Those that change a list or dict are refused, as by Hugging Face.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "frontend/text/jinja/builtins.h"
#include "frontend/text/jinja/text_functions.h"
#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

using TextMethod = Value (*)(const std::string& self, Reader& arguments);

Value stripMethod(const std::string& self, Reader& arguments, bool left, bool right) {
  const Value characters = arguments.get("chars", Value());
  if (characters.isNone()) return Value(stripText(self, nullptr, left, right));
  if (characters.text() == nullptr) failRender("strip arg must be None or str");
  return Value(stripText(self, characters.text(), left, right));
}

Value splitMethod(const std::string& self, Reader& arguments, bool from_right) {
  const Value separator = arguments.get("sep", Value());
  const int64_t most = arguments.whole("maxsplit", -1);
  if (!separator.isNone() && separator.text() == nullptr) failRender(fmt::format("must be str or None, not {}", separator.typeName()));
  if (separator.text() != nullptr && separator.text()->empty()) failRender("empty separator");
  return Value::list(splitText(self, separator.text(), most, from_right));
}

/// A text, or one of a tuple of texts.
template <class Fits>
Value anyOf(Reader& arguments, const Fits& fits) {
  const Value* wanted = arguments.get("prefix");
  if (wanted == nullptr || (wanted->text() == nullptr && (wanted->list() == nullptr || !wanted->list()->is_tuple))) {
    failRender("startswith and endswith want a str or a tuple of str");
  }
  if (wanted->text() != nullptr) return Value(fits(*wanted->text()));
  return Value(std::ranges::any_of(wanted->list()->items, [&](const Value& each) { return each.text() != nullptr && fits(*each.text()); }));
}

int64_t placeOf(const std::string& self, size_t at) {
  return at == std::string::npos ? -1 : static_cast<int64_t>(countCodePoints(std::string_view(self).substr(0, at)));
}

template <class Holds>
Value allOf(const std::string& self, const Holds& holds) {
  for (size_t at = 0; at < self.size();) {
    if (!holds(nextCodePoint(self, at))) return Value(false);
  }
  return Value(!self.empty());
}

/// No character that `other` holds for, and one that `wanted` does.
Value casedAs(const std::string& self, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  bool seen = false;
  for (size_t at = 0; at < self.size();) {
    const char32_t point = nextCodePoint(self, at);
    if (other(point)) return Value(false);
    seen = seen || wanted(point);
  }
  return Value(seen);
}

const std::map<std::string, TextMethod, std::less<>>& textMethods() {
  static const std::map<std::string, TextMethod, std::less<>> methods = {
      {"strip", [](const std::string& self, Reader& arguments) { return stripMethod(self, arguments, true, true); }},
      {"lstrip", [](const std::string& self, Reader& arguments) { return stripMethod(self, arguments, true, false); }},
      {"rstrip", [](const std::string& self, Reader& arguments) { return stripMethod(self, arguments, false, true); }},
      {"split", [](const std::string& self, Reader& arguments) { return splitMethod(self, arguments, false); }},
      {"rsplit", [](const std::string& self, Reader& arguments) { return splitMethod(self, arguments, true); }},
      {"splitlines",
       [](const std::string& self, Reader& arguments) { return Value::list(splitLines(self, arguments.truth("keepends", false))); }},
      {"startswith", [](const std::string& self,
                        Reader& arguments) { return anyOf(arguments, [&](const std::string& text) { return self.starts_with(text); }); }},
      {"endswith", [](const std::string& self,
                      Reader& arguments) { return anyOf(arguments, [&](const std::string& text) { return self.ends_with(text); }); }},
      {"upper", [](const std::string& self, Reader&) { return Value(upperCase(self)); }},
      {"lower", [](const std::string& self, Reader&) { return Value(lowerCase(self)); }},
      {"title", [](const std::string& self, Reader&) { return Value(titleText(self)); }},
      {"capitalize", [](const std::string& self, Reader&) { return Value(capitalText(self)); }},
      {"replace",
       [](const std::string& self, Reader& arguments) {
         const std::string from = arguments.text("old"), to = arguments.text("new");
         return checkedText(replaceText(self, from, to, arguments.whole("count", -1)));
       }},
      {"removeprefix",
       [](const std::string& self, Reader& arguments) {
         const std::string prefix = arguments.text("prefix");
         return Value(self.starts_with(prefix) ? self.substr(prefix.size()) : self);
       }},
      {"removesuffix",
       [](const std::string& self, Reader& arguments) {
         const std::string suffix = arguments.text("suffix");
         return Value(self.ends_with(suffix) ? self.substr(0, self.size() - suffix.size()) : self);
       }},
      {"find", [](const std::string& self, Reader& arguments) { return Value(placeOf(self, self.find(arguments.text("sub")))); }},
      {"rfind", [](const std::string& self, Reader& arguments) { return Value(placeOf(self, self.rfind(arguments.text("sub")))); }},
      {"index",
       [](const std::string& self, Reader& arguments) {
         const size_t at = self.find(arguments.text("sub"));
         if (at == std::string::npos) failRender("substring not found");
         return Value(placeOf(self, at));
       }},
      {"count", [](const std::string& self, Reader& arguments) { return Value(countText(self, arguments.text("sub"))); }},
      {"join", [](const std::string& self, Reader& arguments) { return joinTexts(arguments.get("iterable", Value()), self, true); }},
      {"zfill",
       [](const std::string& self, Reader& arguments) {
         const int64_t width = arguments.whole("width", 0), missing = width - static_cast<int64_t>(countCodePoints(self));
         if (missing <= 0) return Value(self);
         checkLength(static_cast<uint64_t>(missing));
         const size_t sign = self.starts_with('-') || self.starts_with('+') ? 1 : 0;
         return Value(self.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + self.substr(sign));
       }},
      {"isdigit", [](const std::string& self, Reader&) { return allOf(self, isDecimalDigit); }},
      {"isnumeric", [](const std::string& self, Reader&) { return allOf(self, isNumeric); }},
      {"isalpha", [](const std::string& self, Reader&) { return allOf(self, isLetter); }},
      {"isalnum",
       [](const std::string& self, Reader&) { return allOf(self, [](char32_t point) { return isLetter(point) || isNumeric(point); }); }},
      {"isspace", [](const std::string& self, Reader&) { return allOf(self, isWhiteSpace); }},
      {"isupper", [](const std::string& self, Reader&) { return casedAs(self, isUpper, isLower); }},
      {"islower", [](const std::string& self, Reader&) { return casedAs(self, isLower, isUpper); }},
  };
  return methods;
}

std::optional<Value> ofText(const Value& subject, const std::string& name) {
  const auto found = textMethods().find(name);
  if (found == textMethods().end()) return std::nullopt;
  return Value::function(name, [subject, name, method = found->second](const Arguments& arguments) {
    Reader reader(name, arguments);
    const Value result = method(*subject.text(), reader);
    reader.done();
    return result;
  });
}

std::optional<Value> ofDict(const Value& subject, const std::string& name) {
  if (name == "items" || name == "keys" || name == "values") {
    return Value::function(name, [subject, name](const Arguments& arguments) {
      Reader(name, arguments).done();
      Values result;
      for (const auto& [key, value] : subject.dict()->items) {
        result.push_back(name == "items" ? Value::list({key, value}, true) : name == "keys" ? key : value);
      }
      return Value::list(std::move(result));
    });
  }
  if (name == "get") {
    return Value::function(name, [subject](const Arguments& arguments) {
      Reader reader("get", arguments);
      const Value key = reader.get("key", Value());
      Value otherwise = reader.get("default", Value());
      reader.done();
      const Value* found = subject.find(key);
      return found == nullptr ? otherwise : *found;
    });
  }
  if (name == "copy") return Value::function(name, [subject](const Arguments&) { return subject; });
  return std::nullopt;
}

std::optional<Value> ofList(const Value& subject, const std::string& name) {
  if (name != "index" && name != "count") return std::nullopt;
  return Value::function(name, [subject, name](const Arguments& arguments) {
    Reader reader(name, arguments);
    const Value wanted = reader.get("value", Value());
    reader.done();
    int64_t count = 0;
    const Values& items = subject.list()->items;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!equal(items[i], wanted)) continue;
      if (name == "index") return Value(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") failRender(wanted.repr() + " is not in list");
    return Value(count);
  });
}

bool changesItself(const Value& subject, std::string_view name) {
  constexpr std::string_view kOfLists[] = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"};
  constexpr std::string_view kOfDicts[] = {"update", "pop", "popitem", "setdefault", "clear"};
  if (subject.list() != nullptr && !subject.list()->is_tuple) return std::ranges::find(kOfLists, name) != std::end(kOfLists);
  return subject.dict() != nullptr && std::ranges::find(kOfDicts, name) != std::end(kOfDicts);
}

}  // namespace

std::optional<Value> methodOf(const Value& subject, const std::string& name) {
  if (changesItself(subject, name)) {
    return Value::function(name, [name](const Arguments&) -> Value {
      failRender(fmt::format("'{}' would change a value, which templates may not; build a new one with +", name));
    });
  }
  if (subject.text() != nullptr) return ofText(subject, name);
  if (subject.dict() != nullptr) return ofDict(subject, name);
  if (subject.list() != nullptr) return ofList(subject, name);
  return std::nullopt;
}

}  // namespace lockstep::text::jinja
