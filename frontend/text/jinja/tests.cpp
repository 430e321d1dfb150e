// SPDX-License-Identifier: Apache-2.0
// "x is defined" and the like.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "frontend/text/jinja/builtins.h"
#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

using TestFunction = bool (*)(const Value& subject, Reader& arguments);

const Value& otherOf(Reader& arguments) {
  const Value* other = arguments.get("other");
  if (other == nullptr) failRender("a test misses what to compare with");
  return *other;
}

int64_t wholeOf(const Value& value) {
  if (!value.isWhole()) failRender(fmt::format("a test wants an int, not {}", value.typeName()));
  return value.whole();
}

bool isDivisible(const Value& subject, Reader& arguments) {
  const int64_t by = wholeOf(otherOf(arguments));
  if (by == 0) failRender("integer division or modulo by zero");
  return by == -1 || wholeOf(subject) % by == 0;
}

bool isCasedAs(const Value& subject, bool upper) {
  const std::string text = subject.str();
  bool seen = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    if (upper ? isLower(point) : isUpper(point)) return false;
    seen = seen || (upper ? isUpper(point) : isLower(point));
  }
  return seen;
}

bool isSame(const Value& a, const Value& b) {
  return a.any().index() == b.any().index() && a.list() == b.list() && a.dict() == b.dict() && equal(a, b);
}

const std::map<std::string, TestFunction, std::less<>>& tests() {
  static const TestFunction equals = [](const Value& subject, Reader& arguments) { return equal(subject, otherOf(arguments)); };
  static const TestFunction differs = [](const Value& subject, Reader& arguments) { return !equal(subject, otherOf(arguments)); };
  static const TestFunction less = [](const Value& subject, Reader& arguments) { return compare(subject, otherOf(arguments), "<") < 0; };
  static const TestFunction at_most = [](const Value& subject, Reader& arguments) {
    return compare(subject, otherOf(arguments), "<=") <= 0;
  };
  static const TestFunction greater = [](const Value& subject, Reader& arguments) { return compare(subject, otherOf(arguments), ">") > 0; };
  static const TestFunction at_least = [](const Value& subject, Reader& arguments) {
    return compare(subject, otherOf(arguments), ">=") >= 0;
  };
  static const TestFunction sequence = [](const Value& subject, Reader&) {
    return subject.text() != nullptr || subject.list() != nullptr || subject.dict() != nullptr || subject.isUndefined();
  };
  static const std::map<std::string, TestFunction, std::less<>> all = {
      {"defined", [](const Value& subject, Reader&) { return !subject.isUndefined(); }},
      {"undefined", [](const Value& subject, Reader&) { return subject.isUndefined(); }},
      {"none", [](const Value& subject, Reader&) { return subject.isNone(); }},
      {"string", [](const Value& subject, Reader&) { return subject.text() != nullptr; }},
      {"mapping", [](const Value& subject, Reader&) { return subject.dict() != nullptr; }},
      {"sequence", sequence},
      {"iterable", sequence},
      {"number", [](const Value& subject, Reader&) { return subject.isNumber(); }},
      {"integer", [](const Value& subject, Reader&) { return subject.integer() != nullptr; }},
      {"float", [](const Value& subject, Reader&) { return subject.real() != nullptr; }},
      {"boolean", [](const Value& subject, Reader&) { return subject.boolean() != nullptr; }},
      {"true", [](const Value& subject, Reader&) { return subject.boolean() != nullptr && *subject.boolean(); }},
      {"false", [](const Value& subject, Reader&) { return subject.boolean() != nullptr && !*subject.boolean(); }},
      {"callable", [](const Value& subject, Reader&) { return subject.function() != nullptr; }},
      {"odd", [](const Value& subject, Reader&) { return wholeOf(subject) % 2 != 0; }},
      {"even", [](const Value& subject, Reader&) { return wholeOf(subject) % 2 == 0; }},
      {"divisibleby", isDivisible},
      {"upper", [](const Value& subject, Reader&) { return isCasedAs(subject, true); }},
      {"lower", [](const Value& subject, Reader&) { return isCasedAs(subject, false); }},
      {"in", [](const Value& subject, Reader& arguments) { return contains(otherOf(arguments), subject); }},
      {"sameas", [](const Value& subject, Reader& arguments) { return isSame(subject, otherOf(arguments)); }},
      {"filter", [](const Value& subject, Reader&) { return subject.text() != nullptr && isFilter(*subject.text()); }},
      {"test", [](const Value& subject, Reader&) { return subject.text() != nullptr && isTest(*subject.text()); }},
      {"equalto", equals},
      {"eq", equals},
      {"==", equals},
      {"ne", differs},
      {"!=", differs},
      {"lt", less},
      {"lessthan", less},
      {"<", less},
      {"le", at_most},
      {"<=", at_most},
      {"gt", greater},
      {"greaterthan", greater},
      {">", greater},
      {"ge", at_least},
      {">=", at_least},
  };
  return all;
}

}  // namespace

bool isTest(std::string_view name) { return tests().contains(name); }

std::string testNames() {
  std::vector<std::string> names;
  for (const auto& [name, function] : tests()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

bool applyTest(std::string_view name, const Value& subject, const Arguments& arguments) {
  const auto found = tests().find(name);
  if (found == tests().end()) failRender(fmt::format("there is no test '{}'", name));
  Reader reader(name, arguments);
  const bool result = found->second(subject, reader);
  reader.done();
  return result;
}

}  // namespace lockstep::text::jinja
