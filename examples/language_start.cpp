// SPDX-License-Identifier: Apache-2.0
#include "examples/language_start.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/data/conversations.h"
#include "frontend/io/jsonl.h"
#include "frontend/llm/checkpoint.h"
#include "frontend/text/train_bpe.h"

namespace lockstep::examples {
namespace {

constexpr uint64_t kContext = 128;

/// A token for each 1000 bytes: those of a small text are seen too rarely else.
size_t vocabularyFor(const std::string& text) { return std::clamp<size_t>(text.size() / 1000, 512, 4096); }

io::Json idOf(const text::Tokenizer& tokenizer, const char* token) { return uint64_t{*tokenizer.idOf(token)}; }

/// 0.63 million parameters with 512 tokens.
std::string configJson(const text::Tokenizer& tokenizer) {
  return io::Json::object()
      .add("architectures", io::Json::array().add("Qwen3ForCausalLM"))
      .add("model_type", "qwen3")
      .add("vocab_size", uint64_t{tokenizer.idLimit()})
      .add("hidden_size", 128)
      .add("intermediate_size", 320)
      .add("num_hidden_layers", 3)
      .add("num_attention_heads", 4)
      .add("num_key_value_heads", 4)
      .add("head_dim", 32)
      .add("hidden_act", "silu")
      .add("max_position_embeddings", kContext)
      .add("rms_norm_eps", 1e-6)
      .add("rope_theta", 10000.0)
      .add("tie_word_embeddings", true)
      .add("initializer_range", 0.05)
      .add("bos_token_id", idOf(tokenizer, kTextEnd))
      .add("eos_token_id", idOf(tokenizer, kTextEnd))
      .add("pad_token_id", idOf(tokenizer, kTextEnd))
      .add("dtype", "float32")
      .text();
}

std::string generationJson(const text::Tokenizer& tokenizer) {
  return io::Json::object()
      .add("eos_token_id", io::Json::array().add(idOf(tokenizer, kTextEnd)).add(idOf(tokenizer, kTurnEnd)))
      .add("pad_token_id", idOf(tokenizer, kTextEnd))
      .add("do_sample", true)
      .add("temperature", 0.5)
      .add("top_k", 20)
      .text();
}

std::string chatTemplate() {
  return fmt::format(
      "{{% for message in messages %}}{0}{{{{ message.role }}}}\n{{{{ message.content }}}}{1}\n{{% endfor %}}"
      "{{% if add_generation_prompt %}}{0}assistant\n{{% endif %}}",
      kTurn, kTurnEnd);
}

std::string tokenizerConfigJson(bool chats) {
  io::Json json = io::Json::object()
                      .add("tokenizer_class", "PreTrainedTokenizerFast")
                      .add("bos_token", kTextEnd)
                      .add("eos_token", kTextEnd)
                      .add("pad_token", kTextEnd)
                      .add("model_max_length", kContext)
                      .add("clean_up_tokenization_spaces", false);
  if (chats) json.add("chat_template", chatTemplate());
  return json.text();
}

}  // namespace

LanguageStart newLanguageStart(const std::string& text) {
  const std::string json =
      text::trainByteLevelBpe(text, {.vocabulary_size = vocabularyFor(text), .special_tokens = {kTextEnd, kTurn, kTurnEnd}}).orThrow();
  text::Tokenizer tokenizer = text::Tokenizer::parse(json, "tokenizer.json").orThrow();
  const bool chats = text.find(kAnswer) != std::string::npos;
  llm::LanguageConfig config = llm::LanguageConfig::parse(configJson(tokenizer), "config.json", generationJson(tokenizer)).orThrow();
  return {.config = std::move(config),
          .files = {{"tokenizer.json", json}, {"tokenizer_config.json", tokenizerConfigJson(chats)}},
          .tokenizer = std::move(tokenizer)};
}

LanguageStart languageStartOf(const std::filesystem::path& folder) {
  llm::LanguageConfig config = llm::LanguageConfig::load(folder).orThrow();
  llm::TokenizerFiles files = llm::readTokenizerFiles(folder).orThrow();
  text::Tokenizer tokenizer = text::Tokenizer::parse(files.at("tokenizer.json"), (folder / "tokenizer.json").string()).orThrow();
  ParameterValues values = llm::loadWeights(config, folder).orThrow();
  return {.config = std::move(config), .files = std::move(files), .tokenizer = std::move(tokenizer), .values = std::move(values)};
}

std::vector<int32_t> tokensOf(const LanguageStart& start, const std::string& text) {
  const std::vector<uint32_t> ids = start.tokenizer.encode(text).orThrow();
  const auto beyond = std::ranges::find_if(ids, [&](uint32_t id) { return id >= start.config.vocabulary; });
  if (beyond != ids.end()) {
    throw Error(fail("language_model.tokens",
                     fmt::format("the text has the token {}, and the model has {} of them", *beyond, start.config.vocabulary), {},
                     "leave the special token that it stands for out of the text")
                    .diagnostics);
  }
  return {ids.begin(), ids.end()};
}

}  // namespace lockstep::examples
