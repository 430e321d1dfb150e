// SPDX-License-Identifier: Apache-2.0
// What compare.mjs compares with other implementations.
//   text_dump encode TOKENIZER TEXTS RESULTS   TEXTS has a JSON text a line; RESULTS gets for each its ids and what they decode to, or the
//                                              code of the error, and whether it has characters that the tables here do not know
//   text_dump train TEXT SIZE RESULT           RESULT is the tokenizer.json that is learned from TEXT, with "<|end|>" as special token
//   text_dump render CASES RESULTS             CASES has {"template", "messages", ..} a line; RESULTS gets the text or the error
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "frontend/io/file.h"
#include "frontend/text/chat_template.h"
#include "frontend/text/regex.h"
#include "frontend/text/tokenizer.h"
#include "frontend/text/train_bpe.h"

namespace lockstep::text {
namespace {

std::string lineOf(const Tokenizer& tokenizer, const Regex& unassigned, const std::string& text) {
  nlohmann::json line;
  if (!unassigned.matches(text).orThrow().empty()) line["unassigned"] = true;
  const Result<std::vector<uint32_t>> ids = tokenizer.encode(text);
  if (!ids) {
    line["error"] = ids.diagnostics()[0].code;
    return line.dump();
  }
  line["ids"] = *ids;
  for (const bool skip : {false, true})
    line[skip ? "skipped" : "decoded"] = tokenizer.decode(*ids, {.skip_special_tokens = skip}).orThrow();
  StreamDecoder stream(tokenizer, {.skip_special_tokens = false});
  std::string streamed;
  for (const uint32_t id : *ids) streamed += stream.push(id).orThrow();
  line["streamed"] = streamed + stream.finish().orThrow();
  return line.dump();
}

void encodeAll(const std::string& file, const std::string& texts, const std::string& results) {
  const Tokenizer tokenizer = Tokenizer::load(file).orThrow();
  const Regex unassigned = Regex::compile("\\p{Cn}", "").orThrow();
  std::istringstream lines(io::readTextFile(texts).orThrow());
  std::string out;
  for (std::string line; std::getline(lines, line);)
    out += lineOf(tokenizer, unassigned, nlohmann::json::parse(line).get<std::string>()) + "\n";
  (void)io::writeFileAtomically(results, std::string_view(out)).orThrow();
}

std::string rendered(const std::string& json) {
  const JsonValue test = parseJson(json, "case").orThrow();
  ChatOptions options;
  if (const JsonValue* add = test.find("add_generation_prompt"); add != nullptr) options.add_generation_prompt = *add->boolean();
  for (const char* name : {"bos_token", "eos_token"}) {
    if (const JsonValue* token = test.find(name); token != nullptr) options.special_tokens[name] = *token->string();
  }
  if (const JsonValue* tools = test.find("tools"); tools != nullptr) options.tools = *tools;
  if (const JsonValue* documents = test.find("documents"); documents != nullptr) options.documents = *documents;
  if (const JsonValue* variables = test.find("variables"); variables != nullptr) options.variables = *variables;
  options.now = [] {
    std::tm time{};
    time.tm_year = 125;
    time.tm_mon = 6;
    time.tm_mday = 4;
    time.tm_wday = 5;
    return time;
  };
  nlohmann::json line;
  const Result<ChatTemplate> parsed = ChatTemplate::parse(*test.find("template")->string(), "template");
  const Result<std::string> text = parsed ? parsed->render(*test.find("messages"), options) : Result<std::string>(parsed.failure());
  if (text) {
    line["text"] = *text;
  } else {
    line["error"] = text.diagnostics()[0].message;
    line["code"] = text.diagnostics()[0].code;
    line["line"] = text.diagnostics()[0].where.line;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void renderAll(const std::string& cases, const std::string& results) {
  std::istringstream lines(io::readTextFile(cases).orThrow());
  std::string out;
  for (std::string line; std::getline(lines, line);) out += rendered(line) + "\n";
  (void)io::writeFileAtomically(results, std::string_view(out)).orThrow();
}

}  // namespace
}  // namespace lockstep::text

int main(int count, char** arguments) {
  try {
    const std::string what = count > 1 ? arguments[1] : "";
    if (what == "encode" && count == 5) {
      lockstep::text::encodeAll(arguments[2], arguments[3], arguments[4]);
      return 0;
    }
    if (what == "train" && count == 5) {
      const lockstep::text::BpeTraining training{
          .vocabulary_size = std::stoul(arguments[3]), .special_tokens = {"<|end|>"}, .least_count = 0};
      const std::string text = lockstep::io::readTextFile(arguments[2]).orThrow();
      const std::string json = lockstep::text::trainByteLevelBpe(text, training).orThrow();
      (void)lockstep::io::writeFileAtomically(arguments[4], std::string_view(json)).orThrow();
      return 0;
    }
    if (what == "render" && count == 4) {
      lockstep::text::renderAll(arguments[2], arguments[3]);
      return 0;
    }
    std::fputs("usage: text_dump encode TOKENIZER TEXTS RESULTS | train TEXT SIZE RESULT | render CASES RESULTS\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
