// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/json_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace lockstep::text {
namespace {

constexpr size_t kMostNesting = 200;

/// Builds values from the events of nlohmann's reader, which does not recurse.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(JsonValue()); }
  bool boolean(bool value) override { return add(JsonValue(value)); }
  bool number_integer(number_integer_t value) override { return add(JsonValue(static_cast<int64_t>(value))); }
  bool number_unsigned(number_unsigned_t value) override {
    return add(value > INT64_MAX ? JsonValue(static_cast<double>(value)) : JsonValue(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(JsonValue(value)); }
  bool string(string_t& value) override { return add(JsonValue(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*count*/) override { return open(true); }
  bool start_array(size_t /*count*/) override { return open(false); }
  bool key(string_t& value) override {
    open_.back().key = std::move(value);
    return true;
  }
  bool end_object() override {
    JsonObject object = std::move(open_.back().object);
    open_.pop_back();
    std::vector<std::string_view> keys;
    keys.reserve(object.members.size());
    for (const auto& [key, value] : object.members) keys.push_back(key);
    std::ranges::sort(keys);
    if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end()) {
      problem = fmt::format("the key '{}' comes twice in one object", *twice);
      return false;
    }
    return add(JsonValue(std::move(object)));
  }
  bool end_array() override {
    JsonArray array = std::move(open_.back().array);
    open_.pop_back();
    return add(JsonValue(std::move(array)));
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/, const nlohmann::detail::exception& exception) override {
    problem = exception.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    if (const size_t end = problem.find("] "); problem.starts_with("[") && end != std::string::npos) problem.erase(0, end + 2);
    return false;
  }

  std::string problem;
  JsonValue result;

 private:
  struct Open {
    bool is_object = false;
    std::string key = {};
    JsonObject object = {};
    JsonArray array = {};
  };
  bool open(bool is_object) {
    if (open_.size() >= kMostNesting) {
      problem = fmt::format("more than {} arrays and objects in each other", kMostNesting);
      return false;
    }
    open_.push_back({.is_object = is_object});
    return true;
  }
  bool add(JsonValue value) {
    if (open_.empty()) {
      result = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().object.members.emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().array.push_back(std::move(value));
    }
    return true;
  }
  std::vector<Open> open_;
};

}  // namespace

JsonValue::JsonValue(JsonArray value) : value_(std::make_shared<const JsonArray>(std::move(value))) {}
JsonValue::JsonValue(JsonObject value) : value_(std::make_shared<const JsonObject>(std::move(value))) {}

const JsonArray* JsonValue::array() const {
  const Array* array = std::get_if<Array>(&value_);
  return array == nullptr ? nullptr : array->get();
}

const JsonObject* JsonValue::object() const {
  const Object* object = std::get_if<Object>(&value_);
  return object == nullptr ? nullptr : object->get();
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const JsonObject* members = object();
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find_if(members->members, [&](const auto& member) { return member.first == key; });
  return found == members->members.end() ? nullptr : &found->second;
}

std::string JsonValue::kind() const {
  constexpr const char* kKinds[] = {"null", "a truth value", "a whole number", "a number", "a text", "an array", "an object"};
  return kKinds[value_.index()];
}

Result<JsonValue> parseJson(std::string_view text, const std::string& file) {
  JsonBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return fail("json.text", "this is not a JSON text: " + builder.problem, {.file = file});
  }
  return builder.result;
}

Result<JsonFields> JsonFields::of(const JsonValue& value, std::string file, std::string place) {
  JsonFields fields;
  fields.file_ = std::move(file);
  fields.place_ = std::move(place);
  fields.object_ = value.object();
  if (fields.object_ == nullptr) {
    return fail("tokenizer.file",
                fmt::format("{} is {}, wanted an object", fields.place_.empty() ? "the file" : fields.place_, value.kind()),
                {.file = fields.file_});
  }
  return fields;
}

std::string JsonFields::placeOf(std::string_view key) const {
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

Failure JsonFields::wrong(const std::string& message) const { return fail("tokenizer.file", message, {.file = file_}); }

Failure JsonFields::unsupported(const std::string& message, const std::string& remedy) const {
  return fail("tokenizer.unsupported", message, {.file = file_}, remedy);
}

const JsonValue* JsonFields::find(std::string_view key) {
  asked_.emplace(key);
  const auto found = std::ranges::find_if(object_->members, [&](const auto& member) { return member.first == key; });
  return found == object_->members.end() || found->second.isNull() ? nullptr : &found->second;
}

Result<const JsonValue*> JsonFields::required(std::string_view key) {
  const JsonValue* value = find(key);
  if (value == nullptr) return wrong(fmt::format("{} is missing", placeOf(key)));
  return value;
}

Result<std::string> JsonFields::text(std::string_view key) {
  LS_TRY(const JsonValue* value, required(key));
  if (value->string() == nullptr) return wrong(fmt::format("{} is {}, wanted a text", placeOf(key), value->kind()));
  return *value->string();
}

Result<std::string> JsonFields::text(std::string_view key, std::string_view otherwise) {
  if (find(key) == nullptr) return std::string(otherwise);
  return text(key);
}

Result<bool> JsonFields::boolean(std::string_view key, bool otherwise) {
  const JsonValue* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->boolean() == nullptr) return wrong(fmt::format("{} is {}, wanted true or false", placeOf(key), value->kind()));
  return *value->boolean();
}

Result<int64_t> JsonFields::integer(std::string_view key, int64_t otherwise) {
  const JsonValue* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->integer() == nullptr) return wrong(fmt::format("{} is {}, wanted a whole number", placeOf(key), value->kind()));
  return *value->integer();
}

Result<const JsonArray*> JsonFields::array(std::string_view key) {
  LS_TRY(const JsonValue* value, required(key));
  if (value->array() == nullptr) return wrong(fmt::format("{} is {}, wanted an array", placeOf(key), value->kind()));
  return value->array();
}

Status JsonFields::onlyThese() const {
  for (const auto& [key, value] : object_->members) {
    if (asked_.contains(key)) continue;
    return unsupported(
        fmt::format("the key '{}' is not known", placeOf(key)),
        fmt::format("known here: {}; a key that is not known may change the tokens, so it is not ignored", fmt::join(asked_, ", ")));
  }
  return Success{};
}

}  // namespace lockstep::text
