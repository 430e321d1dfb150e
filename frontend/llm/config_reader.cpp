// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/config_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/support/nearest.h"

namespace lockstep::llm {
namespace {

struct Word {
  std::string_view text;
  double value;
};
constexpr std::array kWords{Word{"-Infinity", -std::numeric_limits<double>::infinity()},
                            Word{"Infinity", std::numeric_limits<double>::infinity()},
                            Word{"NaN", std::numeric_limits<double>::quiet_NaN()}};
constexpr std::string_view kFloat = "__float__";

}  // namespace

std::optional<double> numberOf(const text::JsonValue& value) {
  if (const int64_t* whole = value.integer()) return static_cast<double>(*whole);
  if (const double* real = value.number()) return *real;
  const text::JsonValue* named = value.find(kFloat);
  if (named == nullptr || named->string() == nullptr || value.object()->members.size() != 1) return std::nullopt;
  const auto* word = std::ranges::find(kWords, std::string_view(*named->string()), &Word::text);
  return word == kWords.end() ? std::nullopt : std::optional(word->value);
}

Result<text::JsonValue> parsePythonJson(std::string_view json, const std::string& file) {
  std::string plain;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const auto* word = std::ranges::find_if(kWords, [&](const Word& one) { return json.substr(i).starts_with(one.text); });
    if (!in_text && word != kWords.end()) {
      plain += fmt::format(R"({{"{}": "{}"}})", kFloat, word->text);
      i += word->text.size() - 1;
      continue;
    }
    plain += c;
    if (in_text && c == '\\' && i + 1 < json.size()) {
      plain += json[++i];
    } else if (c == '"') {
      in_text = !in_text;
    }
  }
  return text::parseJson(plain, file);
}

Result<ConfigReader> ConfigReader::of(const text::JsonValue& value, std::string file, std::string place) {
  ConfigReader reader;
  reader.file_ = std::move(file);
  reader.place_ = std::move(place);
  reader.object_ = value.object();
  if (reader.object_ == nullptr) return reader.wrongKind(reader.place_.empty() ? "the file" : reader.place_, value, "an object");
  return reader;
}

const text::JsonValue* ConfigReader::find(std::string_view key) {
  asked_.emplace(key);
  const auto found = std::ranges::find_if(object_->members, [&](const auto& member) { return member.first == key; });
  return found == object_->members.end() ? nullptr : &found->second;
}

Result<int64_t> ConfigReader::integer(std::string_view key, int64_t if_missing, std::optional<int64_t> if_null) {
  const text::JsonValue* value = find(key);
  if (value == nullptr) return if_missing;
  if (value->isNull() && if_null) return *if_null;
  if (value->integer() == nullptr) return wrongKind(placeOf(key), *value, "a whole number");
  // Far above any size, and sums of products of two of them still fit.
  constexpr int64_t kMost = int64_t{1} << 24;
  if (*value->integer() < 0 || *value->integer() > kMost)
    return wrong(fmt::format("{} is {}, wanted 0 to {}", placeOf(key), *value->integer(), kMost),
                 "no model has more of anything; take the number from the config.json that was published with the weights");
  return *value->integer();
}

Result<double> ConfigReader::number(std::string_view key, double if_missing, std::optional<double> if_null) {
  const text::JsonValue* value = find(key);
  if (value == nullptr) return if_missing;
  if (value->isNull() && if_null) return *if_null;
  const std::optional<double> number = numberOf(*value);
  if (!number) return wrongKind(placeOf(key), *value, "a number");
  return *number;
}

Result<bool> ConfigReader::boolean(std::string_view key, bool if_missing) {
  const text::JsonValue* value = find(key);
  if (value == nullptr) return if_missing;
  if (value->isNull()) return false;
  if (value->boolean() == nullptr) return wrongKind(placeOf(key), *value, "true or false");
  return *value->boolean();
}

Result<std::string> ConfigReader::text(std::string_view key, std::string_view if_missing) {
  const text::JsonValue* value = find(key);
  if (value == nullptr) return std::string(if_missing);
  if (value->string() == nullptr) return wrongKind(placeOf(key), *value, "a text");
  return *value->string();
}

Result<std::vector<int32_t>> ConfigReader::integers(std::string_view key) {
  const text::JsonValue* value = find(key);
  std::vector<int32_t> numbers;
  if (value == nullptr || value->isNull()) return numbers;
  const text::JsonArray one{*value};
  for (const text::JsonValue& element : value->array() != nullptr ? *value->array() : one) {
    if (element.integer() == nullptr || *element.integer() < 0 || *element.integer() > INT32_MAX)
      return wrong(fmt::format("{} is not an id, or a list of ids", placeOf(key)),
                   fmt::format("write whole numbers from 0 to {}, as in 2 or [2, 3]; tokenizer.json has the ids of tokens", INT32_MAX));
    numbers.push_back(static_cast<int32_t>(*element.integer()));
  }
  return numbers;
}

Result<std::vector<double>> ConfigReader::numbers(std::string_view key) {
  const text::JsonValue* value = find(key);
  std::vector<double> list;
  if (value == nullptr || value->isNull()) return list;
  if (value->array() == nullptr) return wrongKind(placeOf(key), *value, "an array");
  for (const text::JsonValue& element : *value->array()) {
    const std::optional<double> number = numberOf(element);
    if (!number) return wrongKind("an element of " + placeOf(key), element, "a number");
    list.push_back(*number);
  }
  return list;
}

Result<std::vector<std::string>> ConfigReader::texts(std::string_view key) {
  const text::JsonValue* value = find(key);
  std::vector<std::string> list;
  if (value == nullptr || value->isNull()) return list;
  if (value->array() == nullptr) return wrongKind(placeOf(key), *value, "an array");
  for (const text::JsonValue& element : *value->array()) {
    if (element.string() == nullptr) return wrongKind("an element of " + placeOf(key), element, "a text");
    list.push_back(*element.string());
  }
  return list;
}

Status ConfigReader::onlyThese() const {
  for (const auto& [key, value] : object_->members) {
    if (asked_.contains(key)) continue;
    const std::string near = nearestName(key, std::vector<std::string>(asked_.begin(), asked_.end()));
    return fail("language_config.key", fmt::format("the key '{}' is not known for this family", placeOf(key)), {.file = file_},
                fmt::format("{}a key that is not known may change what the model computes, so it is not ignored; remove it if it changes "
                            "nothing",
                            near.empty() ? "" : fmt::format("did you mean '{}'? ", near)));
  }
  return Success{};
}

Failure ConfigReader::wrong(const std::string& message, const std::string& remedy) const {
  return fail("language_config.value", message, {.file = file_}, remedy);
}

Failure ConfigReader::wrongKind(const std::string& place, const text::JsonValue& value, std::string_view wanted) const {
  return wrong(fmt::format("{} is {}, wanted {}", place, value.kind(), wanted),
               fmt::format("write {} there, as in the file that was published with the model", wanted));
}

std::string ConfigReader::placeOf(std::string_view key) const {
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

}  // namespace lockstep::llm
