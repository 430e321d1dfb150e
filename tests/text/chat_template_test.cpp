// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/chat_template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "frontend/io/file.h"

namespace lockstep::text {
namespace {

namespace fs = std::filesystem;

std::tm dateOf(int day, int month, int year, int weekday) {
  std::tm date{};
  date.tm_mday = day;
  date.tm_mon = month;
  date.tm_year = year;
  date.tm_wday = weekday;
  return date;
}

JsonValue json(const std::string& text) { return parseJson(text, "test").orThrow(); }

Result<std::string> renderText(const std::string& source, const JsonValue& messages, const ChatOptions& options) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source, "template");
  return parsed ? parsed->render(messages, options) : Result<std::string>(parsed.failure());
}
std::string resultOf(const std::string& source, const ChatOptions& options = {}) {
  const Result<std::string> text = renderText(source, json(R"([{"role": "user", "content": "hi"}])"), options);
  if (text) return *text;
  return fmt::format("{} in line {}: {}", text.diagnostics()[0].code, text.diagnostics()[0].where.line, text.diagnostics()[0].message);
}

TEST(ChatTemplate, texts_and_errors_are_those_of_Jinja) {
  // Recorded with Jinja 3.1.6 and the settings of transformers. An error whose words differ has none here.
  std::istringstream lines(io::readTextFile(fs::path(LOCKSTEP_SOURCE_DIR) / "tests/text/data/jinja.cases.jsonl").orThrow());
  std::string line;
  std::getline(lines, line);
  const JsonValue shared = json(line);
  const ChatOptions options{
      .special_tokens = {{"bos_token", "<s>"}}, .variables = *shared.find("variables"), .now = [] { return dateOf(4, 6, 125, 5); }};
  size_t count = 0;
  for (; std::getline(lines, line); ++count) {
    const JsonValue test = json(line);
    const Result<std::string> text = renderText(*test.find("template")->string(), *shared.find("messages"), options);
    if (const JsonValue* wanted = test.find("text"); wanted != nullptr) {
      EXPECT_EQ(text ? *text : text.diagnostics()[0].message, *wanted->string()) << line;
      continue;
    }
    EXPECT_FALSE(text.ok()) << line;
    if (const JsonValue* wanted = test.find("error"); !text && !wanted->isNull()) {
      EXPECT_EQ(text.diagnostics()[0].message, *wanted->string()) << line;
    }
  }
  EXPECT_GT(count, 700u);
}

TEST(ChatTemplate, golden_conversations_give_the_golden_texts) {
  const fs::path path = fs::path(LOCKSTEP_SOURCE_DIR) / "../shared/golden/chat_templates.json";
  if (!fs::exists(path)) GTEST_SKIP() << "there is no " << path;
  const JsonValue file = json(io::readTextFile(path).orThrow());
  ChatOptions options{
      .special_tokens = {{"bos_token", *file.find("bos_token")->string()}, {"eos_token", *file.find("eos_token")->string()}}};
  for (const JsonValue& test : *file.find("cases")->array()) {
    options.add_generation_prompt = *test.find("add_generation_prompt")->boolean();
    const Result<std::string> text = renderText(*test.find("template")->string(), *test.find("messages"), options);
    const JsonValue* wanted = test.find("text");
    ASSERT_EQ(text.ok(), wanted != nullptr) << *test.find("template")->string();
    EXPECT_EQ(text ? *text : text.diagnostics()[0].message, *(wanted != nullptr ? wanted : test.find("error"))->string());
    if (!text) {
      EXPECT_EQ(text.diagnostics()[0].code, "chat_template.raised");
    }
  }
}

TEST(ChatTemplate, variables_are_those_of_transformers) {
  const ChatOptions options{.add_generation_prompt = true,
                            .special_tokens = {{"eos_token", "</s>"}},
                            .tools = json(R"([{"name": "f"}])"),
                            .variables = json(R"({"enable_thinking": false})")};
  EXPECT_EQ(resultOf("{{ add_generation_prompt }} {{ eos_token }} {{ bos_token is defined }} {{ tools[0].name }} {{ documents is none }} "
                     "{{ enable_thinking }}",
                     options),
            "True </s> False f True False");
  EXPECT_EQ(resultOf("{{ tools is none }}{{ tools is defined }}"), "TrueTrue");
}

TEST(ChatTemplate, errors_have_a_code_and_a_line) {
  EXPECT_EQ(resultOf("a\n{{ x.y }}"), "chat_template.render in line 2: 'x' is undefined");
  EXPECT_EQ(resultOf("a\n\n{% if %}"), "chat_template.syntax in line 3: wanted an expression, not '%}'");
  EXPECT_EQ(resultOf("\n{% for m in messages %}\n{{ raise_exception('No ' ~ m.role) }}{% endfor %}"),
            "chat_template.raised in line 3: No user");
  EXPECT_EQ(resultOf("{{ 'a' }").substr(0, 31), "chat_template.syntax in line 1:");
  EXPECT_EQ(resultOf("{% if 1 %}\nx").substr(0, 31), "chat_template.syntax in line 2:");
  EXPECT_EQ(resultOf("\xFF"), "chat_template.syntax in line 0: the template is not UTF-8 at byte 0");
  EXPECT_EQ(resultOf("{{ 9223372036854775807 + 1 }}"), "chat_template.render in line 1: a whole number beyond 64 bits");
  EXPECT_EQ(renderText("x", JsonValue(), {}).diagnostics()[0].message, "the messages are null, wanted an array");
}

TEST(ChatTemplate, no_template_hangs_or_fills_the_memory) {
  const auto startOf = [](const std::string& source) { return resultOf(source).substr(0, 20); };
  const std::string limit = "chat_template.limit ";
#ifndef LOCKSTEP_SANITIZED  // a minute there
  EXPECT_EQ(startOf("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"), limit);
#endif
  EXPECT_EQ(startOf("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), limit);
  EXPECT_EQ(startOf("{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}"), limit);
  EXPECT_EQ(startOf("{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}"), limit);
  EXPECT_EQ(startOf("{{ 'a' * 99999999999 }}"), limit);
  EXPECT_EQ(startOf("{{ [1] * 99999999999 }}"), limit);
  EXPECT_EQ(startOf("{{ range(999999999999)|list }}"), limit);
  EXPECT_EQ(startOf("{{ 'x'.zfill(99999999999) }}"), limit);
  EXPECT_EQ(startOf("{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaa' * 1000 }}{% endfor %}"), limit);
  EXPECT_EQ(startOf("{% set n = namespace() %}{% set n.a = [n] %}{{ n.a }}"), "chat_template.render");
  EXPECT_EQ(startOf(std::string(100'000, '(')).substr(0, 20), std::string(20, '('));
  EXPECT_EQ(startOf("{{ " + std::string(100'000, '(') + " }}"), "chat_template.syntax");
  EXPECT_EQ(startOf("{{ " + std::string(100'000, '[') + " }}"), "chat_template.syntax");
  EXPECT_EQ(startOf("{{ " + std::string(100'000, '-') + "1 }}"), "chat_template.syntax");
  std::string chain = "{{ 1", ifs, nots = "{{ ";
  for (int i = 0; i < 5000; ++i) {
    chain += " + 1";
    ifs += "{% if 1 %}";
    nots += "not ";
  }
  EXPECT_EQ(startOf(chain + " }}"), "chat_template.syntax");
  EXPECT_EQ(startOf(ifs), "chat_template.syntax");
  EXPECT_EQ(startOf(nots + "1 }}"), "chat_template.syntax");
}

TEST(ChatTemplate, a_clock_of_its_own_is_used) {
  const ChatOptions options{.now = [] { return dateOf(26, 6, 124, 5); }};
  EXPECT_EQ(resultOf("{{ strftime_now('%d %b %Y') }}", options), "26 Jul 2024");
}

TEST(ChatTemplate, cut_templates_fail_or_render) {
  const std::string source =
      "{%- macro f(a, b=1) -%}{{ a ~ b }}{%- endmacro -%}{% for m in messages if m.role != 'x' %}{# c #}{% if loop.first %}{{ "
      "f(m['content'], b=[1, {'k': 2}][1].k) | upper }}"
      "{% elif m is mapping %}{{ m | tojson(indent=2) }}{% else %}{% set x, y = (1, 2) %}{% break %}{% endif %}{% endfor %}{% raw %}{{ "
      "}}{% endraw %}";
  EXPECT_EQ(resultOf(source), "HI2{{ }}");
  for (size_t length = 0; length < source.size(); ++length) (void)resultOf(source.substr(0, length));
  for (size_t at = 0; at < source.size(); ++at) {
    for (const char c : {'{', '}', '%', '\'', '(', ']', '|', '.', ' ', '-'}) {
      std::string changed = source;
      changed[at] = c;
      (void)resultOf(changed);
    }
  }
}

}  // namespace
}  // namespace lockstep::text
