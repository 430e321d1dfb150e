// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/cli/schema.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/io/file.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;

struct TypeRow {
  const char* name;
  bool (*holds)(const json&);
};
constexpr std::array kTypes{TypeRow{"null", [](const json& v) { return v.is_null(); }},
                            TypeRow{"boolean", [](const json& v) { return v.is_boolean(); }},
                            TypeRow{"integer", [](const json& v) { return v.is_number_integer(); }},
                            TypeRow{"number", [](const json& v) { return v.is_number(); }},
                            TypeRow{"string", [](const json& v) { return v.is_string(); }},
                            TypeRow{"array", [](const json& v) { return v.is_array(); }},
                            TypeRow{"object", [](const json& v) { return v.is_object(); }}};

bool isOf(const json& value, const std::string& type) {
  for (const TypeRow& row : kTypes) {
    if (row.name == type) return row.holds(value);
  }
  return false;
}

std::string check(const json& value, const json& schema, const std::string& path);

std::string ofObject(const json& value, const json& schema, const std::string& path) {
  for (const json& key : schema.value("required", json::array())) {
    if (!value.contains(key.get<std::string>())) return path + " has no " + key.dump();
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, member] : value.items()) {
    const bool named = properties.contains(key);
    if (!named && !schema.contains("additionalProperties")) return path + " has the unknown key '" + key + "'";
    const std::string wrong = check(member, named ? properties[key] : schema["additionalProperties"], path + "." + key);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string check(const json& value, const json& schema, const std::string& path) {
  static const std::set<std::string> known = {"$schema",  "title",      "description",          "type",  "enum",
                                              "required", "properties", "additionalProperties", "items", "anyOf"};
  for (const auto& [word, ignored] : schema.items()) {
    if (!known.contains(word)) return path + ": the schema has the unknown word '" + word + "'";
  }
  if (schema.contains("anyOf")) {
    std::string wrong;
    for (const json& one : schema["anyOf"]) {
      const std::string why = check(value, one, path);
      if (why.empty()) return "";
      wrong += (wrong.empty() ? "" : "; or ") + why;
    }
    return wrong;
  }
  if (schema.contains("type")) {
    const json types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
    if (std::none_of(types.begin(), types.end(), [&](const json& type) { return isOf(value, type.get<std::string>()); })) {
      return path + " is " + value.dump().substr(0, 40) + " but should be " + types.dump();
    }
  }
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    return path + " is " + value.dump() + " but should be one of " + schema["enum"].dump();
  }
  if (value.is_object()) return ofObject(value, schema, path);
  for (size_t i = 0; value.is_array() && schema.contains("items") && i < value.size(); ++i) {
    if (std::string wrong = check(value[i], schema["items"], path + "[" + std::to_string(i) + "]"); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

std::string violation(std::string_view value, std::string_view schema) {
  const json parsed = json::parse(value, nullptr, false);
  return parsed.is_discarded() ? "no JSON" : check(parsed, json::parse(schema), "$");
}

std::string readSchema(const std::string& name) { return *io::readTextFile(LOCKSTEP_SOURCE_DIR "/docs/schemas/" + name + ".json"); }

}  // namespace lockstep::testing
