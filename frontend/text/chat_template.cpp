// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/chat_template.h"

#include <fmt/format.h>

#include <array>

#include "frontend/text/jinja/builtins.h"
#include "frontend/text/jinja/interpreter.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

Failure failureOf(const jinja::TemplateFailure& failure, const std::string& file) {
  const Location where{.file = file, .line = failure.line};
  switch (failure.kind) {
    case jinja::TemplateFailure::Kind::Syntax:
      return fail("chat_template.syntax", failure.what(), where);
    case jinja::TemplateFailure::Kind::Raised:
      return fail("chat_template.raised", failure.what(), where, "the template does not take this conversation");
    case jinja::TemplateFailure::Kind::Limit:
      return fail("chat_template.limit", failure.what(), where);
    case jinja::TemplateFailure::Kind::Render:
      break;
  }
  return fail("chat_template.render", failure.what(), where);
}

jinja::Value raiseException(const jinja::Arguments& arguments) {
  jinja::Reader reader("raise_exception", arguments);
  throw jinja::TemplateFailure(jinja::TemplateFailure::Kind::Raised, reader.get("message", jinja::Value("")).str());
}

jinja::Value strftime(const std::tm& time, const jinja::Arguments& arguments) {
  jinja::Reader reader("strftime_now", arguments);
  const std::string format = reader.text("format");
  reader.done();
  if (format.empty()) return jinja::Value("");
  std::array<char, 1024> text{};
  const size_t length = std::strftime(text.data(), text.size(), format.c_str(), &time);
  if (length == 0) jinja::failRender("strftime_now() gives no text, or too long a one");
  return jinja::Value(lossyUtf8(std::string_view(text.data(), length)));
}

std::tm localTime() {
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  localtime_r(&seconds, &time);
  return time;
}

}  // namespace

struct ChatTemplate::Parsed {
  jinja::Statements statements;
  std::string file;
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view text, const std::string& file) {
  if (const size_t valid = validUtf8Prefix(text); valid < text.size()) {
    return fail("chat_template.syntax", fmt::format("the template is not UTF-8 at byte {}", valid), {.file = file});
  }
  auto parsed = std::make_shared<Parsed>();
  parsed->file = file;
  try {
    parsed->statements = jinja::parseTemplate(text);
  } catch (const jinja::TemplateFailure& failure) {
    return failureOf(failure, file);
  }
  ChatTemplate result;
  result.parsed_ = std::move(parsed);
  return result;
}

Result<std::string> ChatTemplate::render(const JsonValue& messages, const ChatOptions& options) const {
  if (messages.array() == nullptr) return fail("chat_template.render", "the messages are " + messages.kind() + ", wanted an array");
  std::map<std::string, jinja::Value> variables;
  variables["tools"] = jinja::Value::ofJson(options.tools);
  variables["documents"] = jinja::Value::ofJson(options.documents);
  for (const auto& [name, token] : options.special_tokens) variables[name] = jinja::Value(token);
  if (!options.variables.isNull() && options.variables.object() == nullptr) {
    return fail("chat_template.render", "the variables are " + options.variables.kind() + ", wanted an object");
  }
  if (const JsonObject* more = options.variables.object()) {
    for (const auto& [name, value] : more->members) variables[name] = jinja::Value::ofJson(value);
  }
  variables["messages"] = jinja::Value::ofJson(messages);
  variables["add_generation_prompt"] = jinja::Value(options.add_generation_prompt);
  variables["raise_exception"] = jinja::Value::function("raise_exception", raiseException);
  const std::tm now = options.now ? options.now() : localTime();
  variables["strftime_now"] =
      jinja::Value::function("strftime_now", [now](const jinja::Arguments& arguments) { return strftime(now, arguments); });
  try {
    return jinja::run(parsed_->statements, variables);
  } catch (const jinja::TemplateFailure& failure) {
    return failureOf(failure, parsed_->file);
  }
}

}  // namespace lockstep::text
