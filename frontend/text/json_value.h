// SPDX-License-Identifier: Apache-2.0
// JSON that has been read: what tokenizer.json is made of, and the messages of a chat.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::text {

class JsonValue;
using JsonArray = std::vector<JsonValue>;
/// In the order of the text.
struct JsonObject;

/// A value; arrays and objects are shared and never change.
class JsonValue {
 public:
  using Array = std::shared_ptr<const JsonArray>;
  using Object = std::shared_ptr<const JsonObject>;

  JsonValue() = default;
  explicit JsonValue(bool value) : value_(value) {}
  explicit JsonValue(int64_t value) : value_(value) {}
  explicit JsonValue(double value) : value_(value) {}
  explicit JsonValue(std::string value) : value_(std::move(value)) {}
  explicit JsonValue(JsonArray value);
  explicit JsonValue(JsonObject value);

  [[nodiscard]] bool isNull() const { return std::holds_alternative<std::monostate>(value_); }
  /// Null where it is of another kind.
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&value_); }
  [[nodiscard]] const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  [[nodiscard]] const double* number() const { return std::get_if<double>(&value_); }
  [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const JsonArray* array() const;
  [[nodiscard]] const JsonObject* object() const;
  /// The member of an object; null where there is none or this is not an object.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  /// "a text", "an object": for messages.
  [[nodiscard]] std::string kind() const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

struct JsonObject {
  std::vector<std::pair<std::string, JsonValue>> members;
};

/// Whole numbers beyond 64 bits are read as double. A key that comes twice, a value after the text and nesting beyond 200 are errors.
/// code "json.text"; `file` stands for the text in messages.
Result<JsonValue> parseJson(std::string_view text, const std::string& file);

/// The members of an object, each asked for by its name and kind. onlyThese() then refuses the members that nobody asked for: a key that
/// we do not know may change what the others mean. `place` is where in the file the object is: "pre_tokenizer.pretokenizers[0]".
class JsonFields {
 public:
  static Result<JsonFields> of(const JsonValue& value, std::string file, std::string place);

  /// Null where the member is missing or null.
  const JsonValue* find(std::string_view key);
  Result<const JsonValue*> required(std::string_view key);
  Result<std::string> text(std::string_view key);
  Result<std::string> text(std::string_view key, std::string_view otherwise);
  Result<bool> boolean(std::string_view key, bool otherwise);
  Result<int64_t> integer(std::string_view key, int64_t otherwise);
  /// The elements of an array.
  Result<const JsonArray*> array(std::string_view key);
  /// For members that change nothing here.
  void ignore(std::string_view key) { (void)find(key); }
  [[nodiscard]] Status onlyThese() const;

  /// Failures that name the file and the place: code "tokenizer.file", and "tokenizer.unsupported".
  [[nodiscard]] Failure wrong(const std::string& message) const;
  [[nodiscard]] Failure unsupported(const std::string& message, const std::string& remedy = {}) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::string placeOf(std::string_view key) const;

 private:
  const JsonObject* object_ = nullptr;
  std::string file_, place_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace lockstep::text
