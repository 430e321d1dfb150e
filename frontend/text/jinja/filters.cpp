// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "frontend/text/jinja/builtins.h"
#include "frontend/text/jinja/text_functions.h"
#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

using FilterFunction = Value (*)(const Value& subject, Reader& arguments, const Arguments& all);

/// "a.b" or 0, from each item.
Value deepAttribute(const Value& item, const Value& path) {
  if (path.text() == nullptr) return itemOf(item, path);
  Value result = item;
  const std::string dot = ".";
  for (const Value& name : splitText(*path.text(), &dot, -1, false)) {
    const bool digits =
        !name.text()->empty() && name.text()->size() < 10 && name.text()->find_first_not_of("0123456789") == std::string::npos;
    result = itemOf(result, digits ? Value(static_cast<int64_t>(std::strtoll(name.text()->c_str(), nullptr, 10))) : name);
  }
  return result;
}

Value lengthOf(const Value& subject) {
  if (subject.text() != nullptr) return Value(static_cast<int64_t>(countCodePoints(*subject.text())));
  if (subject.list() != nullptr) return Value(static_cast<int64_t>(subject.list()->items.size()));
  if (subject.dict() != nullptr) return Value(static_cast<int64_t>(subject.dict()->items.size()));
  if (subject.isUndefined()) return Value(int64_t{0});
  failRender(fmt::format("object of type '{}' has no len()", subject.typeName()));
}

Value tojsonFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  JsonStyle style;
  style.ascii = arguments.truth("ensure_ascii", false);
  const Value indent = arguments.get("indent", Value());
  const Value separators = arguments.get("separators", Value());
  style.sort_keys = arguments.truth("sort_keys", false);
  if (!indent.isNone()) {
    style.lines = true;
    style.between = ",";
    if (indent.text() != nullptr) {
      style.indent = *indent.text();
    } else if (indent.isWhole() && indent.whole() <= 64) {
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(indent.whole(), 0)), ' ');
    } else {
      failRender("tojson(): 'indent' is not a small number");
    }
  }
  if (separators.list() != nullptr && separators.list()->items.size() == 2) {
    style.between = separators.list()->items[0].str();
    style.colon = separators.list()->items[1].str();
  }
  return checkedText(toJson(subject, style));
}

Value defaultFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  Value otherwise = arguments.get("default_value", Value(""));
  const bool also_empty = arguments.truth("boolean", false);
  return subject.isUndefined() || (also_empty && !subject.truth()) ? otherwise : subject;
}

Value joinFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const std::string between = arguments.get("d", Value("")).str();
  const Value* attribute = arguments.get("attribute");
  if (attribute == nullptr) return joinTexts(subject, between, false);
  Values items = subject.iterate();
  for (Value& item : items) item = deepAttribute(item, *attribute);
  return joinTexts(Value::list(std::move(items)), between, false);
}

Value mapFilter(const Value& subject, Reader& arguments, const Arguments& all) {
  Values items = subject.truth() ? subject.iterate() : Values();
  if (all.positional.empty()) {
    const Value* attribute = arguments.get("attribute");
    if (attribute == nullptr) failRender("map requires a filter argument");
    const Value* otherwise = arguments.get("default");
    for (Value& item : items) {
      item = deepAttribute(item, *attribute);
      if (otherwise != nullptr && item.isUndefined()) item = *otherwise;
    }
    return Value::list(std::move(items));
  }
  const std::string name = arguments.text("filter");
  Arguments rest{.positional = {all.positional.begin() + 1, all.positional.end()}, .named = all.named};
  for (size_t i = 1; i < all.positional.size(); ++i) (void)arguments.get("");
  for (const auto& argument : all.named) (void)arguments.get(argument.first);
  for (Value& item : items) item = applyFilter(name, item, rest);
  return Value::list(std::move(items));
}

/// select, reject, selectattr, rejectattr
Value choose(const Value& subject, Reader& arguments, const Arguments& all, bool by_attribute, bool wanted) {
  size_t skipped = 0;
  Value attribute;
  if (by_attribute) {
    const Value* given = arguments.get("attribute");
    if (given == nullptr) failRender("missing parameter for attribute name");
    attribute = *given;
    ++skipped;
  }
  std::string test;
  if (all.positional.size() > skipped) {
    test = arguments.text("test");
    ++skipped;
  }
  Arguments rest{
      .positional = {all.positional.begin() + static_cast<std::ptrdiff_t>(std::min(skipped, all.positional.size())), all.positional.end()},
      .named = {}};
  for (size_t i = skipped; i < all.positional.size(); ++i) (void)arguments.get("");
  Values chosen;
  for (const Value& item : subject.truth() ? subject.iterate() : Values()) {
    const Value tested = by_attribute ? deepAttribute(item, attribute) : item;
    if ((test.empty() ? tested.truth() : applyTest(test, tested, rest)) == wanted) chosen.push_back(item);
  }
  return Value::list(std::move(chosen));
}

Value folded(const Value& value, bool case_sensitive) {
  return !case_sensitive && value.text() != nullptr ? Value(lowerCase(*value.text())) : value;
}

Value sortFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const bool reverse = arguments.truth("reverse", false), case_sensitive = arguments.truth("case_sensitive", false);
  const Value* attribute = arguments.get("attribute");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : subject.iterate()) {
    keyed.emplace_back(folded(attribute == nullptr ? item : deepAttribute(item, *attribute), case_sensitive), item);
  }
  // std::stable_sort with an order that throws leaves values moved from, which nobody uses then.
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return reverse ? compare(b.first, a.first, "<") < 0 : compare(a.first, b.first, "<") < 0;
  });
  Values items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return Value::list(std::move(items));
}

Value dictsortFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const bool case_sensitive = arguments.truth("case_sensitive", false);
  const bool by_value = arguments.text("by", "key") == "value", reverse = arguments.truth("reverse", false);
  if (subject.dict() == nullptr) failRender(fmt::format("dictsort wants a dict, not {}", subject.typeName()));
  std::vector<std::pair<Value, Value>> items = subject.dict()->items;
  std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
    const Value x = folded(by_value ? a.second : a.first, case_sensitive), y = folded(by_value ? b.second : b.first, case_sensitive);
    return reverse ? compare(y, x, "<") < 0 : compare(x, y, "<") < 0;
  });
  Values pairs;
  for (const auto& [key, value] : items) pairs.push_back(Value::list({key, value}, true));
  return Value::list(std::move(pairs));
}

Value uniqueFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const bool case_sensitive = arguments.truth("case_sensitive", false);
  const Value* attribute = arguments.get("attribute");
  Values seen, items;
  for (const Value& item : subject.iterate()) {
    const Value key = folded(attribute == nullptr ? item : deepAttribute(item, *attribute), case_sensitive);
    if (std::ranges::any_of(seen, [&](const Value& each) { return equal(each, key); })) continue;
    seen.push_back(key);
    items.push_back(item);
  }
  return Value::list(std::move(items));
}

Value extreme(const Value& subject, Reader& arguments, bool largest) {
  const bool case_sensitive = arguments.truth("case_sensitive", false);
  const Value* attribute = arguments.get("attribute");
  const Values items = subject.iterate();
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto keyOf = [&](const Value& item) {
    return folded(attribute == nullptr ? item : deepAttribute(item, *attribute), case_sensitive);
  };
  Value best = items[0], best_key = keyOf(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    const Value key = keyOf(items[i]);
    if (largest ? compare(key, best_key, ">") > 0 : compare(key, best_key, "<") < 0) {
      best = items[i];
      best_key = key;
    }
  }
  return best;
}

Value sumFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const Value* attribute = arguments.get("attribute");
  Value sum = arguments.get("start", Value(int64_t{0}));
  for (const Value& item : subject.iterate()) sum = arithmetic("+", sum, attribute == nullptr ? item : deepAttribute(item, *attribute));
  return sum;
}

Value intFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  Value otherwise = arguments.get("default", Value(int64_t{0}));
  if (const Undefined* reason = std::get_if<Undefined>(&subject.any())) failRender(reason->message);
  if (subject.isWhole()) return Value(subject.whole());
  const std::string text = subject.text() != nullptr ? stripText(*subject.text(), nullptr, true, true) : "";
  char* end = nullptr;
  if (!text.empty() && text.find_first_not_of("+-0123456789") == std::string::npos) {
    errno = 0;
    const long long number = std::strtoll(text.c_str(), &end, 10);
    if (*end == 0 && errno == 0) return Value(static_cast<int64_t>(number));
  }
  const double number = subject.real() != nullptr ? *subject.real() : !text.empty() ? std::strtod(text.c_str(), &end) : NAN;
  const bool whole_text = subject.real() != nullptr || (!text.empty() && *end == 0);
  constexpr double kMost = 9.2e18;
  if (!whole_text || !(std::abs(number) < kMost)) return otherwise;
  return Value(static_cast<int64_t>(number));
}

Value floatFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  Value otherwise = arguments.get("default", Value(0.0));
  if (const Undefined* reason = std::get_if<Undefined>(&subject.any())) failRender(reason->message);
  if (subject.isNumber()) return Value(subject.asDouble());
  const std::string text = subject.text() != nullptr ? stripText(*subject.text(), nullptr, true, true) : "";
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return text.empty() || *end != 0 ? otherwise : Value(number);
}

Value roundFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const int64_t digits = arguments.whole("precision", 0);
  const std::string method = arguments.text("method", "common");
  if (!subject.isNumber() || std::abs(digits) > 15) failRender("round wants a number");
  if (subject.isWhole() && digits >= 0 && method == "common") return Value(subject.whole());
  const double scale = std::pow(10.0, static_cast<double>(digits)), value = subject.asDouble() * scale;
  return Value((method == "ceil" ? std::ceil(value) : method == "floor" ? std::floor(value) : std::nearbyint(value)) / scale);
}

Value absFilter(const Value& subject, Reader&, const Arguments&) {
  if (!subject.isNumber()) failRender(fmt::format("bad operand type for abs(): '{}'", subject.typeName()));
  return subject.asDouble() < 0 ? negate(subject) : subject.boolean() != nullptr ? Value(subject.whole()) : subject;
}

Value indentFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  if (const Undefined* reason = std::get_if<Undefined>(&subject.any())) failRender(reason->message);
  if (subject.text() == nullptr) failRender(fmt::format("indent wants a str, not {}", subject.typeName()));
  const Value width = arguments.get("width", Value(int64_t{4}));
  const bool first = arguments.truth("first", false), blank = arguments.truth("blank", false);
  if (width.text() == nullptr && (!width.isWhole() || width.whole() > 1000)) failRender("indent wants a small width");
  const std::string space =
      width.text() != nullptr ? *width.text() : std::string(static_cast<size_t>(std::max<int64_t>(width.whole(), 0)), ' ');
  return Value(indentText(subject.str(), space, first, blank));
}

Value reverseFilter(const Value& subject, Reader&, const Arguments&) {
  Values items = subject.iterate();
  std::ranges::reverse(items);
  if (subject.text() == nullptr) return Value::list(std::move(items));
  return joinTexts(Value::list(std::move(items)), "", false);
}

Value escapeFilter(const Value& subject, Reader&, const Arguments&) {
  std::string text;
  for (const char c : subject.str()) {
    const char* named = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&#34;" : c == '\'' ? "&#39;" : nullptr;
    if (named != nullptr) {
      text += named;
    } else {
      text += c;
    }
  }
  return checkedText(std::move(text));
}

/// Runs of word characters.
int64_t countWords(const std::string& text) {
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const bool part = isWordPart(nextCodePoint(text, at));
    count += part && !in_word ? 1 : 0;
    in_word = part;
  }
  return count;
}

/// Unlike the method of texts, the filter begins words after white space, '-' and opening brackets only.
std::string titleOfWords(const std::string& text) {
  std::string result;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t point = nextCodePoint(text, at);
    const std::string character = text.substr(begin, at - begin);
    const bool between = isWhiteSpace(point) || point == '-' || point == '(' || point == '{' || point == '[' || point == '<';
    result += in_word ? lowerCase(character) : upperCase(character);
    in_word = !between;
  }
  return result;
}

Value itemsFilter(const Value& subject, Reader&, const Arguments&) {
  if (subject.isUndefined()) return Value::list({});
  if (subject.dict() == nullptr) failRender("Can only get item pairs from a mapping.");
  return methodOf(subject, "items")->function()->call({});
}

Value batchFilter(const Value& subject, Reader& arguments, const Arguments& /*all*/) {
  const int64_t size = arguments.whole("linecount", 0);
  const Value* fill = arguments.get("fill_with");
  if (size <= 0) failRender("batch wants a size");
  Values batches, batch;
  for (const Value& item : subject.iterate()) {
    batch.push_back(item);
    if (static_cast<int64_t>(batch.size()) == size) batches.push_back(Value::list(std::exchange(batch, {})));
  }
  if (!batch.empty()) {
    checkLength(static_cast<uint64_t>(size));
    while (fill != nullptr && static_cast<int64_t>(batch.size()) < size) batch.push_back(*fill);
    batches.push_back(Value::list(std::move(batch)));
  }
  return Value::list(std::move(batches));
}

const std::map<std::string, FilterFunction, std::less<>>& filters() {
  static const FilterFunction length = [](const Value& subject, Reader&, const Arguments&) { return lengthOf(subject); };
  static const FilterFunction same_text = [](const Value& subject, Reader&, const Arguments&) { return Value(subject.str()); };
  static const std::map<std::string, FilterFunction, std::less<>> all = {
      {"abs", absFilter},
      {"batch", batchFilter},
      {"capitalize", [](const Value& subject, Reader&, const Arguments&) { return Value(capitalText(subject.str())); }},
      {"count", length},
      {"d", defaultFilter},
      {"default", defaultFilter},
      {"dictsort", dictsortFilter},
      {"e", escapeFilter},
      {"escape", escapeFilter},
      {"first",
       [](const Value& subject, Reader&, const Arguments&) {
         const Values items = subject.iterate();
         return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
       }},
      {"float", floatFilter},
      {"indent", indentFilter},
      {"int", intFilter},
      {"items", itemsFilter},
      {"join", joinFilter},
      {"last",
       [](const Value& subject, Reader&, const Arguments&) {
         const Values items = subject.iterate();
         return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
       }},
      {"length", length},
      {"list", [](const Value& subject, Reader&, const Arguments&) { return Value::list(subject.iterate()); }},
      {"lower", [](const Value& subject, Reader&, const Arguments&) { return Value(lowerCase(subject.str())); }},
      {"map", mapFilter},
      {"max", [](const Value& subject, Reader& arguments, const Arguments&) { return extreme(subject, arguments, true); }},
      {"min", [](const Value& subject, Reader& arguments, const Arguments&) { return extreme(subject, arguments, false); }},
      {"reject",
       [](const Value& subject, Reader& arguments, const Arguments& given) { return choose(subject, arguments, given, false, false); }},
      {"rejectattr",
       [](const Value& subject, Reader& arguments, const Arguments& given) { return choose(subject, arguments, given, true, false); }},
      {"replace",
       [](const Value& subject, Reader& arguments, const Arguments&) {
         const std::string from = arguments.text("old"), to = arguments.text("new");
         return checkedText(replaceText(subject.str(), from, to, arguments.whole("count", -1)));
       }},
      {"reverse", reverseFilter},
      {"round", roundFilter},
      {"safe", same_text},
      {"select",
       [](const Value& subject, Reader& arguments, const Arguments& given) { return choose(subject, arguments, given, false, true); }},
      {"selectattr",
       [](const Value& subject, Reader& arguments, const Arguments& given) { return choose(subject, arguments, given, true, true); }},
      {"sort", sortFilter},
      {"string", same_text},
      {"sum", sumFilter},
      {"title", [](const Value& subject, Reader&, const Arguments&) { return Value(titleOfWords(subject.str())); }},
      {"tojson", tojsonFilter},
      {"trim",
       [](const Value& subject, Reader& arguments, const Arguments&) {
         const Value characters = arguments.get("chars", Value());
         return Value(stripText(subject.str(), characters.text(), true, true));
       }},
      {"unique", uniqueFilter},
      {"upper", [](const Value& subject, Reader&, const Arguments&) { return Value(upperCase(subject.str())); }},
      {"wordcount", [](const Value& subject, Reader&, const Arguments&) { return Value(countWords(subject.str())); }},
  };
  return all;
}

}  // namespace

bool isFilter(std::string_view name) { return filters().contains(name); }

std::string filterNames() {
  std::vector<std::string> names;
  for (const auto& [name, function] : filters()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Value applyFilter(std::string_view name, const Value& subject, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) failRender(fmt::format("there is no filter '{}'", name));
  Reader reader(name, arguments);
  Value result = found->second(subject, reader, arguments);
  reader.done();
  return result;
}

}  // namespace lockstep::text::jinja
