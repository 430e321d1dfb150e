// SPDX-License-Identifier: Apache-2.0
// Private: the values of a chat template. They behave as Python's do, since that is what templates are written for: True and False print
// with capitals, -7 // 2 is -4, an undefined name is empty text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/text/json_value.h"

namespace lockstep::text::jinja {

/// A mistake of a template or of what it is given, thrown up to render(). `raised`: by the template itself.
struct TemplateFailure : std::runtime_error {
  enum class Kind : uint8_t { Syntax, Render, Raised, Limit };
  TemplateFailure(Kind kind, const std::string& message, uint32_t line = 0) : std::runtime_error(message), kind(kind), line(line) {}
  Kind kind;
  uint32_t line;
};
[[noreturn]] void failRender(const std::string& message);

class Value;
using Values = std::vector<Value>;
struct List {
  Values items;
  bool is_tuple = false;
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;
};
/// Why it is undefined: "'x' is undefined".
struct Undefined {
  std::string message;
};
struct None {};
/// What {% set n.x = .. %} changes.
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};
/// Positional arguments and those with names.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};
struct Function {
  std::string name;
  std::function<Value(const Arguments&)> call;
};
/// What `loop` is in a for.
struct Loop {
  const Values* items = nullptr;
  size_t index = 0;
  size_t depth = 1;
  std::vector<Value> last_changed;
  bool has_changed = false;
};

class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Any = std::variant<Undefined, None, bool, int64_t, double, Text, std::shared_ptr<const List>, std::shared_ptr<const Dict>,
                           std::shared_ptr<Namespace>, std::shared_ptr<const Function>, std::shared_ptr<Loop>>;
  Value() : any_(None{}) {}
  explicit Value(Any any) : any_(std::move(any)) {}
  explicit Value(bool value) : any_(value) {}
  explicit Value(int64_t value) : any_(value) {}
  explicit Value(double value) : any_(value) {}
  explicit Value(std::string text) : any_(std::make_shared<const std::string>(std::move(text))) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  static Value undefined(std::string message) { return Value(Any(Undefined{std::move(message)})); }
  static Value list(Values items, bool is_tuple = false) {
    return Value(Any(std::make_shared<const List>(List{.items = std::move(items), .is_tuple = is_tuple})));
  }
  static Value dict(std::vector<std::pair<Value, Value>> items) { return Value(Any(std::make_shared<const Dict>(Dict{std::move(items)}))); }
  static Value function(std::string name, std::function<Value(const Arguments&)> call) {
    return Value(Any(std::make_shared<const Function>(Function{.name = std::move(name), .call = std::move(call)})));
  }
  static Value ofJson(const JsonValue& json);

  [[nodiscard]] const Any& any() const { return any_; }
  [[nodiscard]] bool isUndefined() const { return std::holds_alternative<Undefined>(any_); }
  [[nodiscard]] bool isNone() const { return std::holds_alternative<None>(any_); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&any_); }
  [[nodiscard]] const int64_t* integer() const { return std::get_if<int64_t>(&any_); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&any_); }
  [[nodiscard]] const std::string* text() const { return pointerTo<Text>(); }
  [[nodiscard]] const List* list() const { return pointerTo<std::shared_ptr<const List>>(); }
  [[nodiscard]] const Dict* dict() const { return pointerTo<std::shared_ptr<const Dict>>(); }
  [[nodiscard]] Namespace* space() const { return pointerTo<std::shared_ptr<Namespace>>(); }
  [[nodiscard]] const Function* function() const { return pointerTo<std::shared_ptr<const Function>>(); }
  [[nodiscard]] Loop* loop() const { return pointerTo<std::shared_ptr<Loop>>(); }
  /// Whole numbers and truth values, which count as 0 and 1.
  [[nodiscard]] bool isWhole() const { return boolean() != nullptr || integer() != nullptr; }
  [[nodiscard]] bool isNumber() const { return isWhole() || real() != nullptr; }
  [[nodiscard]] int64_t whole() const { return boolean() != nullptr ? static_cast<int64_t>(*boolean()) : *integer(); }
  [[nodiscard]] double asDouble() const { return real() != nullptr ? *real() : static_cast<double>(whole()); }

  [[nodiscard]] bool truth() const;
  /// str(): the text that {{ }} writes.
  [[nodiscard]] std::string str() const;
  /// repr(): as in a printed list.
  [[nodiscard]] std::string repr(size_t depth = 0) const;
  /// "str", "NoneType": for messages.
  [[nodiscard]] std::string typeName() const;
  /// What a for goes through; fails for numbers and None.
  [[nodiscard]] Values iterate() const;
  /// The value of a key; null where there is none.
  [[nodiscard]] const Value* find(const Value& key) const;

 private:
  template <class T>
  [[nodiscard]] typename T::element_type* pointerTo() const {
    const T* held = std::get_if<T>(&any_);
    return held == nullptr ? nullptr : held->get();
  }
  Any any_;
};

bool equal(const Value& a, const Value& b, size_t depth = 0);
/// Less than 0, 0 or more; fails for kinds that Python does not order.
int compare(const Value& a, const Value& b, std::string_view sign, size_t depth = 0);
bool contains(const Value& container, const Value& item);
/// + - * / // % **
Value arithmetic(std::string_view sign, const Value& a, const Value& b);
Value negate(const Value& a);

struct JsonStyle {
  std::string indent;  ///< of one level; "" and one line where `lines` is off
  bool lines = false, sort_keys = false, ascii = false;
  std::string between = ", ", colon = ": ";
};
/// json.dumps()
std::string toJson(const Value& value, const JsonStyle& style, size_t depth = 0);

/// Makes the text, or fails where it is too long: no template makes gigabytes.
Value checkedText(std::string text);
void checkLength(uint64_t bytes);

std::string reprOfDouble(double value);

}  // namespace lockstep::text::jinja
