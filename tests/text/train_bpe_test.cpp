// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/train_bpe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "frontend/io/file.h"
#include "frontend/text/tokenizer.h"

namespace lockstep::text {
namespace {

std::string errorOf(std::string_view text, const BpeTraining& training) {
  const Result<std::string> result = trainByteLevelBpe(text, training);
  return result ? "no error" : result.diagnostics()[0].code + ": " + result.diagnostics()[0].message;
}

TEST(TrainBpe, merges_are_the_most_frequent_pairs_and_ties_go_to_smaller_ids) {
  const BpeTraining training{.vocabulary_size = 257 + 5, .special_tokens = {"<|end|>"}, .least_count = 2};
  const auto file = nlohmann::json::parse(trainByteLevelBpe("aaab aaab aaab xyxy xyxy<|end|>xyxy", training).orThrow());
  // a-a and x-y occur six times. Then a-b and aa-a occur three times each, and a-b has the smaller ids.
  EXPECT_EQ(file["model"]["merges"].dump(), R"([["a","a"],["x","y"],["a","b"],["aa","ab"],["xy","xy"]])");
  EXPECT_EQ(file["added_tokens"][0]["content"], "<|end|>");
  EXPECT_EQ(file["model"]["vocab"]["<|end|>"], 0);
  EXPECT_EQ(file["model"]["vocab"].size(), 262u);
}

TEST(TrainBpe, the_file_reads_back_and_keeps_every_text) {
  const std::string text = io::readTextFile(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "docs/errors.md").orThrow();
  const BpeTraining training{.vocabulary_size = 1000, .special_tokens = {"<|begin|>", "<|end|>"}};
  const std::string json = trainByteLevelBpe(text, training).orThrow();
  EXPECT_EQ(json, trainByteLevelBpe(text, training).orThrow());
  const Tokenizer tokenizer = Tokenizer::parse(json, "trained").orThrow();
  EXPECT_EQ(tokenizer.size(), 1000u);
  EXPECT_EQ(tokenizer.idLimit(), 1000u);
  EXPECT_EQ(tokenizer.idOf("<|end|>"), 1u);
  const std::vector<uint32_t> ids = tokenizer.encode(text).orThrow();
  EXPECT_LT(ids.size(), text.size() / 2);
  EXPECT_EQ(tokenizer.decode(ids).orThrow(), text);
  std::string every_byte_of_UTF8 = "\xF4\x8F\xBF\xBF\xE0\xA0\x80";
  for (char c = 0; c < 127; ++c) every_byte_of_UTF8 += c;
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(every_byte_of_UTF8).orThrow()).orThrow(), every_byte_of_UTF8);
}

TEST(TrainBpe, a_text_without_pairs_gives_bytes_only) {
  for (const char* text : {"", "a", "a b"}) {
    const Tokenizer tokenizer = Tokenizer::parse(trainByteLevelBpe(text, {}).orThrow(), "trained").orThrow();
    EXPECT_EQ(tokenizer.size(), 256u) << text;
  }
}

TEST(TrainBpe, wrong_arguments_are_refused) {
  EXPECT_EQ(errorOf("a", {.vocabulary_size = 100}),
            "tokenizer.train: a vocabulary of 100 tokens, wanted 256 (the bytes and 0 special tokens) to 1000000");
  EXPECT_EQ(errorOf("a\xFF", {}), "tokenizer.train: the text is not UTF-8 at byte 1");
  EXPECT_EQ(errorOf("a", {.special_tokens = {"x", "<s>", "<s>"}}), "tokenizer.train: the special token '<s>' is there twice, or a byte");
  EXPECT_EQ(errorOf("a", {.special_tokens = {""}}), "tokenizer.train: a special token is empty or not UTF-8");
}

}  // namespace
}  // namespace lockstep::text
