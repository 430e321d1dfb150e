// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "frontend/io/file.h"
#include "frontend/text/tokenizer_config.h"

namespace lockstep::text {
namespace {

using Ids = std::vector<uint32_t>;
const std::filesystem::path kTokenizers = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/text/data";

Tokenizer load(const std::string& name) { return Tokenizer::load(kTokenizers / (name + ".json")).orThrow(); }
nlohmann::json fileOf(const std::string& name) { return nlohmann::json::parse(io::readTextFile(kTokenizers / (name + ".json")).orThrow()); }

template <class T>
std::string errorOf(const Result<T>& result) {
  return result ? "no error" : fmt::format("{}: {}", result.diagnostics()[0].code, result.diagnostics()[0].message);
}
/// The error of byte_level.json with a change.
template <class Change>
std::string errorAfter(const Change& change) {
  nlohmann::json file = fileOf("byte_level");
  change(file);
  return errorOf(Tokenizer::parse(file.dump(), "t.json"));
}

TEST(Tokenizer, special_tokens_in_text_are_tokens_or_text) {
  const Tokenizer tokenizer = load("byte_level");
  const uint32_t end = tokenizer.idOf("<|end|>").value();
  EXPECT_EQ(tokenizer.encode("<|end|>").orThrow(), Ids{end});
  const Ids plain = tokenizer.encode("<|end|>", {.parse_special_tokens = false}).orThrow();
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(std::ranges::find(plain, end), plain.end());
  EXPECT_EQ(tokenizer.decode(plain).orThrow(), " <|end|>");
  EXPECT_TRUE(tokenizer.isSpecial(end));
  EXPECT_EQ(tokenizer.decode(Ids{end}).orThrow(), "");
  EXPECT_EQ(tokenizer.decode(Ids{end}, {.skip_special_tokens = false}).orThrow(), "<|end|>");
}

TEST(Tokenizer, ignore_merges_makes_no_special_token_of_text) {
  nlohmann::json file = fileOf("byte_level_ignore_merges");
  file["model"]["vocab"]["end"] = 5000;
  file["added_tokens"].push_back({{"id", 5000}, {"content", "end"}, {"special", true}, {"normalized", false}});
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "t.json").orThrow();
  EXPECT_EQ(tokenizer.encode("end", {.add_special_tokens = false}).orThrow(), Ids{5000});
  const Ids plain = tokenizer.encode("end", {.add_special_tokens = false, .parse_special_tokens = false}).orThrow();
  EXPECT_EQ(std::ranges::find(plain, 5000u), plain.end());
}

TEST(Tokenizer, white_space_that_a_token_took_may_be_another_token) {
  nlohmann::json file = fileOf("byte_level");
  const uint32_t next = 6000;
  const auto add = [&](uint32_t id, const char* content, bool left, bool right) {
    file["added_tokens"].push_back(
        {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}, {"lstrip", left}, {"rstrip", right}});
  };
  add(next, "<call>", false, true);
  add(next + 1, "\n", false, false);
  add(next + 2, "\t", false, true);
  add(next + 3, "\r", true, true);
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "t.json").orThrow();
  const EncodeOptions plain{.add_special_tokens = false};
  // As Hugging Face's library gives them.
  EXPECT_EQ(tokenizer.encode("<call>\n\n", plain).orThrow(), (Ids{next, next + 1, next + 1}));
  EXPECT_EQ(tokenizer.encode("\t\t\t", plain).orThrow(), (Ids{next + 2, next + 2, next + 2}));
  EXPECT_EQ(tokenizer.encode("\r\r", plain).orThrow(), Ids{next + 3});
}

TEST(Tokenizer, parts_that_make_a_text_longer_and_longer_end_with_an_error) {
  const nlohmann::json grow = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "        "}};
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  for (const auto& [key, list, part] : {std::tuple{"normalizer", "normalizers", grow}, {"pre_tokenizer", "pretokenizers", bytes}}) {
    nlohmann::json file = fileOf("byte_level");
    file[key] = {{"type", "Sequence"}, {list, nlohmann::json::array()}};
    for (int i = 0; i < 60; ++i) file[key][list].push_back(part);
    const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "t.json").orThrow();
    EXPECT_TRUE(errorOf(tokenizer.encode("a b")).starts_with("tokenizer.limit: ")) << key;
  }
}

TEST(Tokenizer, a_million_characters_of_one_piece_are_fast) {
  // One piece, since nothing cuts it: a quadratic merge would take hours.
#ifdef LOCKSTEP_SANITIZED
  constexpr size_t kBytes = 50'000;
#else
  constexpr size_t kBytes = 1'000'000;
#endif
  for (const char* name : {"whole_text", "byte_level", "byte_fallback", "byte_level_ignore_merges"}) {
    const Tokenizer tokenizer = load(name);
    for (const char* part : {"a", " ", "\n", "ab", "\xCC\x81\xCC\xA3", "\xE4\xBD\xA0", "<", "<|en", "1", "'s"}) {
      std::string text;
      while (text.size() < kBytes) text += part;
      const auto start = std::chrono::steady_clock::now();
      const Ids ids = tokenizer.encode(text).orThrow();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      EXPECT_LT(seconds, 60) << name << " " << part;
      EXPECT_GT(ids.size(), 100u);
    }
  }
}

TEST(Tokenizer, adversarial_texts_come_back) {
  const Tokenizer tokenizer = load("byte_level");
  for (const std::string& text : {std::string("\0a\0", 3), std::string("\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9"),
                                  std::string("e\xCC\x81\xCC\xA3"), std::string("a\r\n\r\tb"), std::string("\xEE\x80\x80\xF3\xB0\x80\x80"),
                                  std::string("\xD7\xA9\xE2\x80\xAE\xD9\x85"), std::string("\xEF\xBB\xBF")}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text).orThrow(), {.skip_special_tokens = false}).orThrow(), " " + text);
  }
  EXPECT_EQ(tokenizer.encode("").orThrow(), Ids{});
  EXPECT_EQ(tokenizer.decode({}).orThrow(), "");
}

TEST(Tokenizer, text_that_is_not_UTF8_is_refused) {
  const Tokenizer tokenizer = load("byte_level");
  for (const char* text : {"ab\xFF", "ab\xC3", "ab\xED\xA0\x80", "ab\xC0\x80", "ab\xF4\x90\x80\x80", "ab\x80"}) {
    EXPECT_EQ(errorOf(tokenizer.encode(text)), "tokenizer.text: the text is not UTF-8 at byte 2");
  }
}

TEST(Tokenizer, ids_without_a_token_are_refused) {
  const Tokenizer tokenizer = load("byte_level");
  EXPECT_EQ(tokenizer.tokenOf(1'000'000), nullptr);
  EXPECT_EQ(errorOf(tokenizer.decode(Ids{1'000'000})),
            fmt::format("tokenizer.id: the id 1000000 has no token; ids go to {}", tokenizer.idLimit() - 1));
  EXPECT_EQ(tokenizer.decode(Ids{1'000'000, tokenizer.idOf("a").value()}, {.skip_unknown_ids = true}).orThrow(), "a");
  EXPECT_EQ(StreamDecoder(tokenizer, {.skip_unknown_ids = true}).push(1'000'000).orThrow(), "");
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(errorOf(stream.push(4'000'000'000)).substr(0, 13), "tokenizer.id:");
  EXPECT_EQ(tokenizer.idOf("no such token"), std::nullopt);
}

TEST(Tokenizer, characters_without_a_token_are_left_out_or_refused) {
  nlohmann::json file = fileOf("byte_level");
  file["model"]["vocab"].erase("z");
  file["added_tokens"] = nlohmann::json::array();
  const nlohmann::json merges = file["model"]["merges"];
  file["model"]["merges"] = nlohmann::json::array();
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "t.json").orThrow();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("azb").orThrow()).orThrow(), " ab");
  EXPECT_EQ(errorOf(tokenizer.encode("azb", {.refuse_unknown = true})).substr(0, 15), "tokenizer.text:");
}

TEST(Tokenizer, stream_holds_back_part_of_a_character) {
  const Tokenizer tokenizer = load("byte_level");
  const Ids ids = tokenizer.encode("\xF0\x9F\x91\xA8!", {}).orThrow();
  StreamDecoder stream(tokenizer);
  std::vector<std::string> pieces;
  for (const uint32_t id : ids) pieces.push_back(stream.push(id).orThrow());
  ASSERT_EQ(pieces.size(), 6u);
  EXPECT_EQ(pieces, (std::vector<std::string>{" ", "", "", "", "\xF0\x9F\x91\xA8", "!"}));
  EXPECT_EQ(stream.finish().orThrow(), "");
  (void)stream.push(ids[1]).orThrow();
  EXPECT_EQ(stream.finish().orThrow(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish().orThrow(), "");
}

TEST(Tokenizer, stream_gives_spaces_between_words_and_none_in_front) {
  for (const char* name : {"byte_fallback", "metaspace"}) {
    const Tokenizer tokenizer = load(name);
    const Ids ids = tokenizer.encode("the low fox", {.add_special_tokens = false}).orThrow();
    StreamDecoder stream(tokenizer);
    std::string text;
    for (const uint32_t id : ids) text += stream.push(id).orThrow() + stream.push(tokenizer.idOf("</s>").value()).orThrow();
    EXPECT_EQ(text + stream.finish().orThrow(), "the low fox") << name;
  }
}

TEST(TokenizerFile, damaged_files_are_refused) {
  EXPECT_EQ(errorOf(Tokenizer::load("/no/such/tokenizer.json")).substr(0, 10), "file.read:");
  const std::string whole = fileOf("byte_level").dump();
  for (const size_t length : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_EQ(errorOf(Tokenizer::parse(whole.substr(0, length), "t.json")).substr(0, 10), "json.text:") << length;
  }
  EXPECT_EQ(errorOf(Tokenizer::parse(std::string(100'000, '['), "t.json")),
            "json.text: this is not a JSON text: more than 200 arrays and objects in each other");
  EXPECT_EQ(errorOf(Tokenizer::parse("[]", "t.json")), "tokenizer.file: the file is an array, wanted an object");
  EXPECT_EQ(errorOf(Tokenizer::parse("{\"a\": 1, \"a\": 2}", "t.json")),
            "json.text: this is not a JSON text: the key 'a' comes twice in one object");
  EXPECT_EQ(errorOf(Tokenizer::parse("{}", "t.json")), "tokenizer.file: model is missing");
}

TEST(TokenizerFile, wrong_types_and_values_are_named) {
  using Json = nlohmann::json;
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["vocab"] = 3; }), "tokenizer.file: model.vocab is a whole number, wanted an object");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["vocab"]["x"] = -1; }), "tokenizer.file: model.vocab gives 'x' no id");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["vocab"]["x"] = 1e30; }), "tokenizer.file: model.vocab gives 'x' no id");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["vocab"]["qqq"] = 5; }).substr(0, 40), "tokenizer.file: model.vocab gives the id");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["merges"][0] = "a"; }),
            "tokenizer.file: model.merges[0] is 'a', wanted two tokens with a space between them");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["merges"][1] = Json::array({"a"}); }),
            "tokenizer.file: model.merges[1] is not a pair of tokens");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["merges"][0] = Json::array({"zzz", "a"}); }),
            "tokenizer.file: model.merges[0]: 'zzz' is not in the vocabulary");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["merges"].insert(file["model"]["merges"].begin(), Json::array({"~", "~"})); }),
            "tokenizer.file: model.merges[0]: '~~' is not in the vocabulary");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["unk_token"] = "nope"; }),
            "tokenizer.file: model.unk_token 'nope' is not in the vocabulary");
  EXPECT_EQ(errorAfter([](Json& file) { file["added_tokens"][0]["id"] = "1"; }),
            "tokenizer.file: added_tokens[0].id is a text, wanted a whole number");
  EXPECT_EQ(errorAfter([](Json& file) { file["added_tokens"][0]["id"] = 0; }).substr(0, 28), "tokenizer.file: added_tokens");
  EXPECT_EQ(errorAfter([](Json& file) { file["added_tokens"][1] = file["added_tokens"][0]; }),
            "tokenizer.file: added_tokens has '<|end|>' twice");
}

TEST(TokenizerFile, what_is_not_known_is_named) {
  using Json = nlohmann::json;
  EXPECT_EQ(errorAfter([](Json& file) { file["new_key"] = 1; }), "tokenizer.unsupported: the key 'new_key' is not known");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["new_key"] = 1; }), "tokenizer.unsupported: the key 'model.new_key' is not known");
  EXPECT_EQ(errorAfter([](Json& file) { file["pre_tokenizer"]["x"] = 1; }),
            "tokenizer.unsupported: the key 'pre_tokenizer.x' is not known");
  EXPECT_EQ(errorAfter([](Json& file) { file["added_tokens"][2]["x"] = 1; }),
            "tokenizer.unsupported: the key 'added_tokens[2].x' is not known");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["type"] = "Unigram"; }),
            "tokenizer.unsupported: the model 'Unigram' is not supported");
  EXPECT_EQ(errorAfter([](Json& file) { file["model"]["dropout"] = 0.1; }).substr(0, 36), "tokenizer.unsupported: model.dropout");
  EXPECT_EQ(errorAfter([](Json& file) { file["normalizer"] = {{"type", "Precompiled"}}; }),
            "tokenizer.unsupported: normalizer: the normalizer 'Precompiled' is not supported");
  EXPECT_EQ(
      errorAfter([](Json& file) { file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "UnicodeScripts"}}}}}; }),
      "tokenizer.unsupported: pre_tokenizer.pretokenizers[0]: the pre-tokenizer 'UnicodeScripts' is not supported");
  EXPECT_EQ(errorAfter([](Json& file) { file["decoder"] = {{"type", "CTC"}}; }),
            "tokenizer.unsupported: decoder: the decoder 'CTC' is not supported");
  EXPECT_EQ(errorAfter([](Json& file) { file["post_processor"] = {{"type", "X"}}; }).substr(0, 38),
            "tokenizer.unsupported: post_processor:");
}

TEST(TokenizerFile, a_regular_expression_is_refused_or_bounded) {
  const auto withRegex = [](const std::string& regex) {
    return [regex](nlohmann::json& file) {
      file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
    };
  };
  EXPECT_EQ(errorAfter(withRegex("(a")),
            "tokenizer.regex: the regular expression '(a' does not compile: missing closing parenthesis, after '(a'");
  EXPECT_EQ(errorAfter(withRegex("[a&&b]")), "tokenizer.regex: the regular expression '[a&&b]' has '&&' in a set, which is not supported");
  nlohmann::json file = fileOf("byte_level");
  withRegex("(a+)+[bc]")(file);
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "t.json").orThrow();
  EXPECT_EQ(errorOf(tokenizer.encode(std::string(200, 'a'))).substr(0, 16), "tokenizer.regex:");
}

TEST(TokenizerFile, changed_files_fail_or_work) {
  // The texts of the file at random places of others, and random bytes: an error or a tokenizer, and nothing else.
  std::mt19937 random(22);
  for (const char* name : {"byte_level", "byte_fallback", "metaspace", "suffix"}) {
    const std::string whole = io::readTextFile(kTokenizers / (std::string(name) + ".json")).orThrow();
    size_t read = 0;
    for (int round = 0; round < 300; ++round) {
      std::string changed = whole;
      for (int change = 0; change < 1 + round % 3; ++change) {
        const size_t to = random() % changed.size(), from = random() % changed.size(), length = random() % 12;
        if (round % 2 == 0) {
          changed.replace(to, length, changed.substr(from, length));
        } else {
          changed[to] = "0123456789\"{}[],:tfn-.e\\\xFF"[random() % 26];
        }
      }
      const Result<Tokenizer> tokenizer = Tokenizer::parse(changed, "changed.json");
      if (!tokenizer) continue;
      ++read;
      const Result<Ids> ids = tokenizer->encode("the low <|end|> caf\xC3\xA9 12 \xF0\x9F\x91\xA8");
      if (ids) (void)tokenizer->decode(*ids);
    }
    EXPECT_GT(read, 0u) << name;
  }
}

class ConfigFolder : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::filesystem::path folder_ = std::filesystem::path(LOCKSTEP_BINARY_DIR) / fmt::format("config-{}", ::getpid());
};

TEST_F(ConfigFolder, special_tokens_and_templates_are_read) {
  EXPECT_TRUE(TokenizerConfig::load(folder_).orThrow().special_tokens.empty());
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null, "add_bos_token": true,
    "model_max_length": 1000000000000000019884624838656, "chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]})");
  const TokenizerConfig config = TokenizerConfig::load(folder_).orThrow();
  EXPECT_EQ(config.special_tokens, (std::map<std::string, std::string>{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  EXPECT_EQ(config.add_bos_token, true);
  EXPECT_EQ(config.add_eos_token, std::nullopt);
  EXPECT_EQ(config.chat_templates, (std::map<std::string, std::string>{{"default", "a"}, {"tool_use", "b"}}));
  write("chat_template.jinja", "c");
  EXPECT_EQ(TokenizerConfig::load(folder_).orThrow().chat_templates.at("default"), "c");
  write("tokenizer_config.json", R"({"bos_token": 3})");
  EXPECT_EQ(errorOf(TokenizerConfig::load(folder_)), "tokenizer.file: bos_token is a whole number, wanted a text");
}

}  // namespace
}  // namespace lockstep::text
