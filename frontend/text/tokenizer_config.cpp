// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/tokenizer_config.h"

#include <fmt/format.h>

#include "frontend/io/regular_file.h"
#include "frontend/text/json_value.h"

namespace lockstep::text {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostConfigBytes = uint64_t{1} << 26;

bool isThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Status readTokens(JsonFields& fields, TokenizerConfig& config) {
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"}) {
    const JsonValue* value = fields.find(name);
    if (value == nullptr) continue;
    // Older files have the whole added token.
    const JsonValue* content = value->object() != nullptr ? value->find("content") : value;
    if (content == nullptr || content->string() == nullptr)
      return fields.wrong(fmt::format("{} is {}, wanted a text", name, value->kind()));
    config.special_tokens[name] = *content->string();
  }
  return Success{};
}

Status readTemplates(JsonFields& fields, TokenizerConfig& config) {
  const JsonValue* value = fields.find("chat_template");
  if (value == nullptr) return Success{};
  if (value->string() != nullptr) {
    config.chat_templates["default"] = *value->string();
    return Success{};
  }
  if (value->array() == nullptr) return fields.wrong(fmt::format("chat_template is {}, wanted a text", value->kind()));
  for (const JsonValue& entry : *value->array()) {
    LS_TRY(JsonFields named, JsonFields::of(entry, fields.file(), "chat_template"));
    LS_TRY(const std::string name, named.text("name"));
    LS_TRY(config.chat_templates[name], named.text("template"));
  }
  return Success{};
}

}  // namespace

Result<TokenizerConfig> TokenizerConfig::load(const fs::path& folder) {
  TokenizerConfig config;
  if (const fs::path path = folder / "tokenizer_config.json"; isThere(path)) {
    LS_TRY(const std::string text, io::readRegularTextFile(path, kMostConfigBytes));
    LS_TRY(const JsonValue value, parseJson(text, path.string()));
    LS_TRY(JsonFields fields, JsonFields::of(value, path.string(), ""));
    LS_CHECK(readTokens(fields, config));
    LS_CHECK(readTemplates(fields, config));
    for (const auto& [name, target] :
         {std::pair("add_bos_token", &config.add_bos_token), std::pair("add_eos_token", &config.add_eos_token)}) {
      if (fields.find(name) == nullptr) continue;
      LS_TRY(*target, fields.boolean(name, false));
    }
  }
  if (const fs::path path = folder / "chat_template.jinja"; isThere(path)) {
    LS_TRY(config.chat_templates["default"], io::readRegularTextFile(path, kMostConfigBytes));
  }
  return config;
}

}  // namespace lockstep::text
