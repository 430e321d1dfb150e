// SPDX-License-Identifier: Apache-2.0
// `lockstep generate`, `chat` and `eval` with a model whose next token depends on the last one alone, as a table says.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "frontend/io/file.h"
#include "frontend/llm/generator.h"
#include "frontend/text/tokenizer.h"
#include "frontend/text/train_bpe.h"
#include "tests/llm/tiny.h"
#include "tests/tools/cli/process.h"
#include "tests/tools/cli/schema.h"

namespace lockstep::llm {
namespace {

using lockstep::testing::Outcome;
using lockstep::testing::readSchema;
using lockstep::testing::runTool;
using lockstep::testing::ScratchDirectory;
using lockstep::testing::violation;
using nlohmann::json;

constexpr int64_t kIds = 260, kWidth = 64;

class TextVerbs : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string tokenizer =
        text::trainByteLevelBpe("", {.vocabulary_size = 258, .special_tokens = {"<|end|>", "<|turn|>"}}).orThrow();
    const auto ids = text::Tokenizer::parse(tokenizer, "tokenizer.json").orThrow();
    config_ = testing::configOf(fmt::format(
        R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 8, "max_position_embeddings": 96, "tie_word_embeddings": false, "eos_token_id": {}}})",
        kIds, kWidth, *ids.idOf("<|end|>")));
    values_ = testing::randomValues(config_);
    for (const char* name : {"layers.0.attn.o.W", "layers.0.mlp.down.W"}) std::ranges::fill(values_.at(name), 0.0F);
    std::ranges::fill(values_.at("head.W"), 0.0F);
    // The logit of a token is the product of the embeddings of the last token and of those that it follows.
    for (const std::string chain : {"abcd\u00e9z<|end|>", ":hi!<|end|>", "qq"}) {
      const std::vector<uint32_t> tokens = ids.encode(chain).orThrow();
      for (size_t i = 1; i < tokens.size(); ++i) {
        for (size_t w = 0; w < kWidth; ++w)
          values_.at("head.W")[w * kIds + tokens[i]] += 4 * values_.at("tokens.W")[tokens[i - 1] * kWidth + w];
      }
    }
    write("model");
    put("model/tokenizer.json", tokenizer);
    put("model/tokenizer_config.json",
        R"({"eos_token": "<|end|>", "chat_template": "{% for m in messages %}<|turn|>{{ m.role[0] }}:{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|turn|>a:{% endif %}"})");
  }
  void write(const std::string& folder) { ASSERT_TRUE(saveCheckpoint(scratch_ / folder, config_, values_)); }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::writeFileAtomically(scratch_ / name, std::string_view(text)));
  }
  Outcome run(const std::string& verb, const std::string& options, const std::string& input = "/dev/null") {
    return runTool(scratch_, verb + " " + (scratch_ / "model").string() + " --device reference " + options, input);
  }
  json runJson(const std::string& options) {
    const Outcome outcome = run("generate", "--json " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_EQ(violation(outcome.out, readSchema("generate")), "") << outcome.out;
    return json::parse(outcome.out);
  }
  /// The answers to the lines that were put.
  std::vector<json> talk(const std::string& options) {
    const Outcome outcome = run("chat", "--json " + options, scratch_ / "lines");
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    std::vector<json> turns;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(violation(line, readSchema("chat")), "") << line;
      turns.push_back(json::parse(line));
    }
    return turns;
  }
  void expectError(const std::string& verb, const std::string& options, int status, const std::string& code) {
    const Outcome outcome = run(verb, options);
    EXPECT_EQ(outcome.status, status) << verb << options << outcome.err;
    EXPECT_NE(outcome.err.find(code), std::string::npos) << verb << options << outcome.err;
  }

  ScratchDirectory scratch_{"text-verbs"};
  LanguageConfig config_;
  ParameterValues values_;
};

TEST_F(TextVerbs, a_token_can_be_profiled_and_explored) {
  ::setenv("LOCKSTEP_CACHE_DIR", (scratch_ / "cache").c_str(), 1);
  const Outcome profile = run("profile", "--steps 2 --weights int8");
  EXPECT_EQ(profile.status, 0) << profile.err;
  EXPECT_NE(profile.out.find("medians of 2 steps"), std::string::npos) << profile.out;
  EXPECT_NE(profile.out.find("attend_cache"), std::string::npos) << profile.out;
  EXPECT_NE(profile.out.find("memory: weights "), std::string::npos) << profile.out;
  const Outcome explored = run("explore", "--json");
  EXPECT_EQ(explored.status, 0) << explored.err;
  EXPECT_NE(explored.out.find("cached_attention"), std::string::npos);
  ::unsetenv("LOCKSTEP_CACHE_DIR");
  expectError("profile", "--disable-pass fuse", 2, "usage.argument");
  EXPECT_NE(runTool(scratch_, "profile sine --device reference --weights int8").err.find("are for language models"), std::string::npos);
}

TEST_F(TextVerbs, generate_goes_on_with_a_text) {
  const Outcome outcome = run("generate", "--prompt ab");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "cd\u00e9z\n");
  for (const char* part : {"reading ", "6 tokens after 2 of the prompt, ended by its end token", "tokens per second on reference"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  put("prompt", "abc");
  EXPECT_EQ(run("generate", "--prompt-file " + (scratch_ / "prompt").string()).out, "d\u00e9z\n");
  EXPECT_EQ(run("generate", "--prompt -", scratch_ / "prompt").out, "d\u00e9z\n");
  EXPECT_EQ(run("generate", "--prompt ab --show-special").out, "cd\u00e9z<|end|>\n");
}

TEST_F(TextVerbs, generate_ends_where_it_is_told) {
  const json whole = runJson("--prompt ab");
  EXPECT_EQ(whole["text"], "cd\u00e9z");
  EXPECT_EQ(whole["end"], "end_token");
  EXPECT_EQ(whole["tokens"].size(), 6u);
  EXPECT_EQ(whole["prompt_tokens"], 2);
  const json stopped = runJson("--prompt ab --stop nothing --stop \u00e9");
  EXPECT_EQ(stopped["text"], "cd");
  EXPECT_EQ(stopped["end"], "stop");
  // What only begins like a stop string is text.
  EXPECT_EQ(runJson("--prompt ab --stop zx")["text"], "cd\u00e9z");
  const json counted = runJson("--prompt ab --tokens 3");
  EXPECT_EQ(counted["text"], "cd\ufffd");
  EXPECT_EQ(counted["end"], "tokens");
  const json full = runJson("--prompt ab --context 4");
  EXPECT_EQ(full["tokens"].size(), 3u);
  EXPECT_EQ(full["end"], "context");
  EXPECT_EQ(runJson("--prompt q")["tokens"].size(), 96u);  // all positions of the model
}

TEST_F(TextVerbs, generate_samples) {
  const auto made = [&](const std::string& options) { return runJson("--prompt q --tokens 12 " + options)["tokens"]; };
  const json greedy = made("");
  const json first = made("--temperature 200 --top-k 0 --seed 3");
  EXPECT_NE(first, greedy);
  EXPECT_EQ(made("--temperature 200 --top-k 0 --seed 3"), first);
  EXPECT_NE(made("--temperature 200 --top-k 0 --seed 4"), first);
  EXPECT_EQ(made("--temperature 200 --top-k 1"), greedy);
  EXPECT_EQ(made("--temperature 200 --min-p 1"), greedy);
  EXPECT_EQ(made("--temperature 200 --top-p 1e-9"), greedy);
  EXPECT_NE(made("--repetition-penalty 1e9"), greedy);
  put("model/generation_config.json", R"({"do_sample": true, "temperature": 200.0, "top_k": 0, "eos_token_id": [256, 257]})");
  EXPECT_EQ(made("--seed 3"), first);
  EXPECT_EQ(made("--greedy"), greedy);
}

TEST_F(TextVerbs, tokens_per_submission_change_no_text) {
  const auto made = [&](const std::string& options, int64_t per_submission) {
    json all = runJson(fmt::format("{} --tokens-per-submission {}", options, per_submission));
    for (const char* name : {"first_token_seconds", "tokens_per_second"}) all.erase(name);
    return all;
  };
  for (const char* options : {"--prompt ab", "--prompt q --tokens 13", "--prompt q --context 11", "--prompt ab --stop z",
                              "--prompt q --tokens 12 --temperature 200 --top-k 0 --repetition-penalty 1.2"}) {
    const json one = made(options, 1);
    for (const int64_t several : {3, 5}) EXPECT_EQ(made(options, several), one) << options << several;
  }
}

TEST_F(TextVerbs, an_interrupt_ends_a_stream_cleanly) {
  const std::string pipe = scratch_ / "pipe", got = scratch_ / "got", err = scratch_ / "err";
  const std::string start = fmt::format("{} generate {} --device reference --prompt q --tokens 1000000 --context 100000 >{} 2>{} &",
                                        LOCKSTEP_TOOL, (scratch_ / "model").string(), pipe, err);
  const std::string interrupt = fmt::format("{{ head -c 1 >/dev/null; kill -INT $!; cat >{}; }} <{}; wait $!", got, pipe);
  const int raw = std::system(fmt::format("mkfifo {}; {} {}", pipe, start, interrupt).c_str());
  EXPECT_EQ(WEXITSTATUS(raw), 130);
  // `head` may have taken more than it needs.
  const std::string rest = *io::readTextFile(got);
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest, std::string(rest.size() - 1, 'q') + "\n");
  EXPECT_NE(io::readTextFile(err)->find("interrupted"), std::string::npos);
}

TEST_F(TextVerbs, chat_answers_and_feeds_only_what_is_new) {
  put("lines", "ab\n\nand more\n/reset\nab\n/exit\nnever\n");
  const std::vector<json> turns = talk("--system short");
  ASSERT_EQ(turns.size(), 3u);
  for (const json& turn : turns) EXPECT_EQ(turn["text"], "hi!");
  // <|turn|>s:short<|end|> <|turn|>u:ab<|end|> <|turn|>a:
  EXPECT_EQ(turns[0]["prompt_tokens"], 18);
  EXPECT_EQ(turns[0]["fed_tokens"], 18);
  // The answer's <|end|> and <|turn|>u:and more<|end|> <|turn|>a:
  EXPECT_EQ(turns[1]["prompt_tokens"], 18 + 3 + 16);
  EXPECT_EQ(turns[1]["fed_tokens"], 16);
  // All of it was there when the first conversation began, and its last token leads to the answer.
  EXPECT_EQ(turns[2]["prompt_tokens"], 18);
  EXPECT_EQ(turns[2]["fed_tokens"], 1);
  EXPECT_EQ(run("chat", "", scratch_ / "lines").out, "hi!\nhi!\nhi!\n");
}

TEST_F(TextVerbs, chat_keeps_what_conversations_have_in_common) {
  put("lines", "ab\n/reset\nand\n/reset\nab\n");
  const std::vector<json> turns = talk("--system short --repetition-penalty 1.1 --temperature 0");
  ASSERT_EQ(turns.size(), 3u);
  // <|turn|>s:short<|end|> <|turn|>u:a, then b<|end|> <|turn|>a: or nd<|end|> <|turn|>a:
  EXPECT_EQ(turns[0]["fed_tokens"], 18);
  EXPECT_EQ(turns[1]["fed_tokens"], 19 - 13);
  EXPECT_EQ(turns[2]["fed_tokens"], 18 - 13);
  EXPECT_EQ(turns[2]["tokens"], turns[0]["tokens"]);
}

/// As templates do that drop thoughts.
TEST_F(TextVerbs, chat_feeds_anew_from_where_a_template_changes_earlier_turns) {
  put("model/tokenizer_config.json",
      R"({"eos_token": "<|end|>", "chat_template": "{% for m in messages %}<|turn|>{{ m.role[0] }}:{% if loop.last or m.role != 'assistant' %}{{ m.content }}{% else %}h{% endif %}<|end|>{% endfor %}<|turn|>a:"})");
  put("lines", "ab\nc\n");
  const std::vector<json> turns = talk("");
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0]["prompt_tokens"], 9);
  // <|turn|>u:ab<|end|> <|turn|>a:h is there; i! is not in it any more.
  EXPECT_EQ(turns[1]["prompt_tokens"], 9 + 2 + 5 + 3);
  EXPECT_EQ(turns[1]["fed_tokens"], 1 + 5 + 3);
}

/// What a mixer goes on from has all tokens in it.
TEST_F(TextVerbs, chat_with_a_mixer_feeds_anew_what_does_not_go_on) {
  config_ = testing::configOf(fmt::format(
      R"({{"model_type": "mamba", "vocab_size": {}, "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32, "state_size": 4,
           "eos_token_id": 256}})",
      kIds));
  values_ = testing::randomValues(config_);
  write("model");
  put("lines", "ab\n/reset\nab\n");
  const std::vector<json> turns = talk("--tokens 3");
  ASSERT_EQ(turns.size(), 2u);
  for (const json& turn : turns) EXPECT_EQ(turn["fed_tokens"], 9);
  EXPECT_EQ(turns[1]["tokens"], turns[0]["tokens"]);
}

TEST_F(TextVerbs, eval_measures_a_text) {
  put("text", "abcd\u00e9z");
  const auto measured = [&](const std::string& options) {
    const Outcome outcome = run("eval", "--json --text " + (scratch_ / "text").string() + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(violation(outcome.out, readSchema("eval")), "") << outcome.out;
    return json::parse(outcome.out);
  };
  const json sure = measured("");
  EXPECT_LT(sure["perplexity"], 1.01);
  EXPECT_EQ(sure["tokens"], 6);
  EXPECT_EQ(sure["windows"], 1);
  const json windows = measured(" --context 3");
  EXPECT_EQ(windows["tokens"], 4);  // abc, d and the bytes of the next, z alone
  EXPECT_EQ(windows["windows"], 2);
  put("text", "azazaz");
  EXPECT_GT(measured("")["perplexity"], 100);
  // All logits are 0 after a token that the table does not have.
  put("text", "88");
  const json even = measured("");
  EXPECT_GT(even["perplexity"], 1.5);
  EXPECT_NEAR(std::log(even["perplexity"].get<double>()), even["cross_entropy"].get<double>(), 1e-9);
}

TEST_F(TextVerbs, what_is_wrong_is_said) {
  for (const char* options : {"--temperature warm", "--temperature -1", "--top-k 1.5", "--top-p 2", "--min-p -1", "--repetition-penalty 0",
                              "--seed -1", "--tokens 0", "--tokens-per-submission 0", "--tokens-per-submission 1025", "--context -1",
                              "--context 16777217", "--tokens 9223372036854775808", "--stop ''", "--greedy --top-k 3", "--nothing"})
    expectError("generate", std::string("--prompt ab ") + options, 2, "error");
  expectError("generate", "--prompt ab --prompt-file x", 2, "error");
  expectError("eval", "", 2, "--text");
  expectError("generate", "--prompt ''", 4, "language_model.tokens");
  expectError("generate", "--prompt abcdefgh --context 4", 4, "language_model.room");
  expectError("generate", "--prompt abcdefgh --context 4", 4, "--context");
  expectError("generate", "--prompt-file " + (scratch_ / "none").string(), 4, "file.read");
  put("lines", "abcdefgh\n");
  EXPECT_NE(run("chat", "--context 6", scratch_ / "lines").err.find("language_model.room"), std::string::npos);
  put("model/tokenizer_config.json", "{}");
  expectError("chat", "", 4, "language_model.chat_template");
  values_.at("norm.g")[3] = std::numeric_limits<float>::quiet_NaN();
  write("model");
  expectError("generate", "--prompt ab", 5, "language_model.logits");
  // Not a line of the program.
  EXPECT_EQ(run("generate", "--prompt ab").err.find(".cpp"), std::string::npos);
  std::filesystem::remove(scratch_ / "model/tokenizer.json");
  expectError("generate", "--prompt ab", 4, "language_model.tokenizer");
  std::filesystem::create_directory(scratch_ / "model/tokenizer.json");
  expectError("generate", "--prompt ab", 4, "file.read");
  std::filesystem::remove(scratch_ / "model/config.json");
  expectError("profile", "", 4, "has no config.json");
}

}  // namespace
}  // namespace lockstep::llm
