// SPDX-License-Identifier: Apache-2.0
// The chat templates of published models: how a conversation becomes the text that a model was trained on. They are written in Jinja; this
// is the part of it that they use, with the settings of Hugging Face's transformers. docs/tokenizer.md lists it.
#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/text/json_value.h"
#include "ir/support/result.h"

namespace lockstep::text {

struct ChatOptions {
  /// Ends with what begins the model's answer.
  bool add_generation_prompt = false;
  /// "bos_token" and the like, which templates know as variables.
  std::map<std::string, std::string> special_tokens = {};
  /// Null where there are none.
  JsonValue tools = {}, documents = {};
  /// Further variables: {"enable_thinking": false}. An object, or null.
  JsonValue variables = {};
  /// What strftime_now() formats; the clock of the machine where it is empty.
  std::function<std::tm()> now = {};
};

/// Cheap to copy, and never changes.
class ChatTemplate {
 public:
  /// code "chat_template.syntax", with the line; `file` stands for the template in messages.
  static Result<ChatTemplate> parse(std::string_view text, const std::string& file);
  /// `messages` is an array of objects with "role" and "content". The text has the special tokens in it: encode it with
  /// add_special_tokens off. Codes: "chat_template.raised" (the template refuses the conversation; the message is its own),
  /// "chat_template.render", "chat_template.limit".
  [[nodiscard]] Result<std::string> render(const JsonValue& messages, const ChatOptions& options) const;

 private:
  struct Parsed;
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace lockstep::text
