// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "frontend/text/pipeline.h"

namespace lockstep::text {
namespace {

constexpr const char* kPostProcessors = "TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing, Sequence";

PostProcessor around(std::vector<uint32_t> before, std::vector<uint32_t> after) {
  return [before = std::move(before), after = std::move(after)](std::vector<uint32_t> ids) {
    ids.insert(ids.begin(), before.begin(), before.end());
    ids.insert(ids.end(), after.begin(), after.end());
    return ids;
  };
}

Result<uint32_t> idOf(const JsonValue& value, const JsonFields& fields, const std::string& place) {
  if (value.integer() == nullptr || *value.integer() < 0 || *value.integer() > INT32_MAX)
    return fields.wrong(place + " is not the id of a token");
  return static_cast<uint32_t>(*value.integer());
}

/// {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
Result<std::map<std::string, std::vector<uint32_t>>> readTemplateTokens(JsonFields& fields) {
  std::map<std::string, std::vector<uint32_t>> tokens;
  const JsonValue* value = fields.find("special_tokens");
  if (value == nullptr) return tokens;
  if (value->object() == nullptr) return fields.wrong(fields.placeOf("special_tokens") + " is not an object");
  for (const auto& [name, entry] : value->object()->members) {
    LS_TRY(JsonFields token, JsonFields::of(entry, fields.file(), fields.placeOf("special_tokens") + "." + name));
    token.ignore("id");
    token.ignore("tokens");
    LS_TRY(const JsonArray* ids, token.array("ids"));
    for (const JsonValue& id : *ids) {
      LS_TRY(const uint32_t number, idOf(id, token, token.placeOf("ids")));
      tokens[name].push_back(number);
    }
    LS_CHECK(token.onlyThese());
  }
  return tokens;
}

/// [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
Result<PostProcessor> readTemplate(JsonFields& fields) {
  LS_TRY(const auto tokens, readTemplateTokens(fields));
  LS_TRY(const JsonArray* parts, fields.array("single"));
  fields.ignore("pair");
  std::vector<uint32_t> before, after;
  bool seen = false;
  for (const JsonValue& part : *parts) {
    LS_TRY(JsonFields entry, JsonFields::of(part, fields.file(), fields.placeOf("single")));
    const JsonValue* special = entry.find("SpecialToken");
    const JsonValue* sequence = entry.find("Sequence");
    LS_CHECK(entry.onlyThese());
    if ((special == nullptr) == (sequence == nullptr))
      return fields.wrong(fields.placeOf("single") + ": wanted a SpecialToken or a Sequence");
    LS_TRY(JsonFields named, JsonFields::of(special != nullptr ? *special : *sequence, fields.file(), fields.placeOf("single")));
    LS_TRY(const std::string id, named.text("id"));
    named.ignore("type_id");
    LS_CHECK(named.onlyThese());
    if (sequence != nullptr) {
      if (id != "A" || seen) return fields.unsupported(fields.placeOf("single") + " has a Sequence other than one 'A'");
      seen = true;
      continue;
    }
    const auto found = tokens.find(id);
    if (found == tokens.end())
      return fields.wrong(fmt::format("{} names '{}', which is not in special_tokens", fields.placeOf("single"), id));
    std::vector<uint32_t>& side = seen ? after : before;
    side.insert(side.end(), found->second.begin(), found->second.end());
  }
  if (!seen) return fields.wrong(fields.placeOf("single") + " has no Sequence");
  return around(std::move(before), std::move(after));
}

/// ["</s>", 2]
Result<uint32_t> readPair(JsonFields& fields, std::string_view key) {
  LS_TRY(const JsonArray* pair, fields.array(key));
  if (pair->size() != 2) return fields.wrong(fields.placeOf(key) + " is not [token, id]");
  return idOf((*pair)[1], fields, fields.placeOf(key));
}

}  // namespace

Result<PostProcessor> readPostProcessor(const JsonValue* value, const std::string& file, const std::string& place) {
  PostProcessor result = [](std::vector<uint32_t> ids) { return ids; };
  if (value == nullptr || value->isNull()) return result;
  LS_TRY(JsonFields fields, JsonFields::of(*value, file, place));
  LS_TRY(const std::string type, typeOf(fields));
  if (type == "TemplateProcessing") {
    LS_TRY(result, readTemplate(fields));
  } else if (type == "ByteLevel") {
    // It moves offsets only, which nobody asks for here.
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.ignore(key);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    LS_TRY(const uint32_t first, readPair(fields, "cls"));
    LS_TRY(const uint32_t last, readPair(fields, "sep"));
    if (type == "RobertaProcessing") {
      fields.ignore("add_prefix_space");
      fields.ignore("trim_offsets");
    }
    result = around({first}, {last});
  } else if (type == "Sequence") {
    LS_TRY(const std::vector<PostProcessor> parts, readParts<PostProcessor>(fields, "processors", readPostProcessor));
    result = [parts](std::vector<uint32_t> ids) {
      for (const PostProcessor& part : parts) ids = part(std::move(ids));
      return ids;
    };
  } else {
    return fields.unsupported(fmt::format("{}: the post-processor '{}' is not supported", place, type),
                              fmt::format("supported: {}", kPostProcessors));
  }
  LS_CHECK(fields.onlyThese());
  return result;
}

}  // namespace lockstep::text
