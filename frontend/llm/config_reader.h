// SPDX-License-Identifier: Apache-2.0
// Private: the keys of one object of a config.json, each asked for by its name and kind.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/json_value.h"
#include "ir/support/result.h"

namespace lockstep::llm {

/// JSON as Python writes it: Infinity, -Infinity and NaN are numbers, and so is {"__float__": "Infinity"} of transformers 5.
Result<text::JsonValue> parsePythonJson(std::string_view json, const std::string& file);

/// A null is not the same as a missing key: that has the value of the family, null mostly means "none".
class ConfigReader {
 public:
  /// `place` is where in the file the object is: "rope_parameters"; empty for the whole file.
  static Result<ConfigReader> of(const text::JsonValue& value, std::string file, std::string place = {});

  /// Null where the key is missing.
  const text::JsonValue* find(std::string_view key);
  Result<int64_t> integer(std::string_view key, int64_t if_missing, std::optional<int64_t> if_null = {});
  Result<double> number(std::string_view key, double if_missing, std::optional<double> if_null = {});
  /// Null is false.
  Result<bool> boolean(std::string_view key, bool if_missing);
  Result<std::string> text(std::string_view key, std::string_view if_missing);
  /// Whole numbers: one, several or none.
  Result<std::vector<int32_t>> integers(std::string_view key);
  /// Numbers; empty where the key is missing or null.
  Result<std::vector<double>> numbers(std::string_view key);
  /// Texts; empty where the key is missing or null.
  Result<std::vector<std::string>> texts(std::string_view key);
  void ignore(std::string_view key) { asked_.emplace(key); }
  /// "language_config.key" for a key that nobody asked for.
  [[nodiscard]] Status onlyThese() const;

  [[nodiscard]] Failure wrong(const std::string& message, const std::string& remedy) const;
  [[nodiscard]] std::string placeOf(std::string_view key) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  [[nodiscard]] Failure wrongKind(const std::string& place, const text::JsonValue& value, std::string_view wanted) const;

  const text::JsonObject* object_ = nullptr;
  std::string file_, place_;
  std::set<std::string, std::less<>> asked_;
};

/// Of any kind of number, or {"__float__": "Infinity"}.
std::optional<double> numberOf(const text::JsonValue& value);

}  // namespace lockstep::llm
