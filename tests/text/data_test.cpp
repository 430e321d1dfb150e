// SPDX-License-Identifier: Apache-2.0
// Tokens of small tokenizers of our own, as Hugging Face's library gives them (record.mjs), and of the golden folders where they are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "frontend/io/file.h"
#include "frontend/io/safetensors.h"
#include "frontend/text/tokenizer.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

namespace fs = std::filesystem;
const fs::path kData = fs::path(LOCKSTEP_SOURCE_DIR) / "tests/text/data";

std::string streamed(const Tokenizer& tokenizer, const std::vector<uint32_t>& ids) {
  StreamDecoder stream(tokenizer, {.skip_special_tokens = false});
  std::string text;
  for (const uint32_t id : ids) {
    const std::string piece = stream.push(id).orThrow();
    EXPECT_EQ(validUtf8Prefix(piece), piece.size());
    text += piece;
  }
  return text + stream.finish().orThrow();
}

class TokenizerData : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerData, tokens_and_texts_are_those_of_Hugging_Face) {
  const Tokenizer tokenizer = Tokenizer::load(kData / fmt::format("{}.json", GetParam())).orThrow();
  std::istringstream lines(io::readTextFile(kData / fmt::format("{}.cases.jsonl", GetParam())).orThrow());
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto test = nlohmann::json::parse(line);
    const auto text = test["text"].get<std::string>();
    SCOPED_TRACE(test["text"].dump());
    const std::vector<uint32_t> ids = tokenizer.encode(text).orThrow();
    EXPECT_EQ(ids, test["ids"].get<std::vector<uint32_t>>());
    EXPECT_EQ(tokenizer.encode(text, {.add_special_tokens = false}).orThrow(), test["plain"].get<std::vector<uint32_t>>());
    const auto decoded = test["decoded"].get<std::string>();
    EXPECT_EQ(tokenizer.decode(ids, {.skip_special_tokens = false}).orThrow(), decoded);
    EXPECT_EQ(tokenizer.decode(ids).orThrow(), test["skipped"].get<std::string>());
    // A run of bytes that is no UTF-8 is one replacement character a byte in a whole text, and as few as possible in a stream.
    if (decoded.find("\xEF\xBF\xBD") == std::string::npos) {
      EXPECT_EQ(streamed(tokenizer, ids), decoded);
    }
  }
  EXPECT_GT(count, 50u);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerData,
                         ::testing::Values("byte_level", "byte_level_ignore_merges", "byte_fallback", "metaspace", "metaspace_unfused",
                                           "whole_text", "suffix", "prefix"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TokenizerGolden, prompts_have_the_ids_of_the_golden_folders) {
  const fs::path golden = fs::path(LOCKSTEP_SOURCE_DIR) / "../shared/golden/llm";
  if (!fs::exists(golden)) GTEST_SKIP() << "there is no " << golden;
  size_t prompts = 0;
  for (const fs::path& folder : io::listFolder(golden).orThrow()) {
    SCOPED_TRACE(folder.string());
    const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.json").orThrow();
    const io::TensorFile expected = io::readSafetensors(folder / "expected.safetensors").orThrow();
    for (const auto& [name, entry] : expected.metadata) {
      const io::Array* ids = expected.find(name + "/ids");
      const io::Array* greedy = expected.find(name + "/greedy");
      if (ids == nullptr || greedy == nullptr) continue;
      const auto texts = nlohmann::json::parse(entry);
      const auto wanted = [](const io::Array& array) {
        const std::vector<int32_t> values = array.toInts();
        return std::vector<uint32_t>(values.begin(), values.end());
      };
      EXPECT_EQ(tokenizer.encode(texts["prompt"].get<std::string>()).orThrow(), wanted(*ids));
      EXPECT_EQ(tokenizer.decode(wanted(*greedy), {.skip_unknown_ids = true}).orThrow(), texts["decoded"].get<std::string>());
      ++prompts;
    }
  }
  EXPECT_GT(prompts, 0u);
}

}  // namespace
}  // namespace lockstep::text
