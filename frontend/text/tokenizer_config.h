// SPDX-License-Identifier: Apache-2.0
// What tokenizer_config.json says that a program needs: the special tokens and the chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "ir/support/result.h"

namespace lockstep::text {

struct TokenizerConfig {
  /// "bos_token", "eos_token", "pad_token", "unk_token" and the like, where they are given: what ChatOptions wants.
  std::map<std::string, std::string> special_tokens;
  /// Where the file says so. The post-processor of tokenizer.json is what adds tokens.
  std::optional<bool> add_bos_token, add_eos_token;
  /// "default", or the name of each of several.
  std::map<std::string, std::string> chat_templates;

  /// Of a folder with tokenizer_config.json; empty where there is none. chat_template.jinja counts before what tokenizer_config.json has.
  /// Other keys describe the classes of Hugging Face's library and are not read. Codes: file.read, json.text, tokenizer.file.
  static Result<TokenizerConfig> load(const std::filesystem::path& folder);
};

}  // namespace lockstep::text
