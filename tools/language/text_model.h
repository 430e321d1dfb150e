// SPDX-License-Identifier: Apache-2.0
// A folder of Hugging Face as something that takes and gives text: a model, its tokenizer, and how it chooses.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "console/options.h"
#include "frontend/llm/generator.h"
#include "frontend/text/tokenizer.h"
#include "frontend/text/tokenizer_config.h"
#include "tools/language/weight_choices.h"

namespace lockstep::tools {

/// code "usage.value" for a number of positions that nothing has
Status checkContext(int64_t context);

/// The options that all verbs of language models have.
struct TextModelChoices {
  std::string folder, device = "auto";
  WeightChoices weights = {};
  int64_t context = 0;  ///< positions; 0: those of the model, at most 4096
  int64_t tokens_per_submission = 1;
  std::string prompt_precision = "f32";
  void addTo(console::Options& options);
  /// Of verbs that write texts.
  void addPaceTo(console::Options& options);
  [[nodiscard]] Status check() const;
};

/// What is small, and read first: a mistake in it is told before the weights are read.
struct TextModelFiles {
  std::string folder;
  llm::LanguageConfig config;
  text::Tokenizer tokenizer;
  text::TokenizerConfig tokenizer_config;
  /// Those of config.json and generation_config.json, and the tokenizer's eos_token.
  std::set<int32_t> end_tokens;

  /// Codes "language_model.tokenizer" where there is no tokenizer.json, and those of the files.
  static Result<TextModelFiles> load(const std::string& folder);
  /// code "language_model.tokens" for text that has no token
  [[nodiscard]] Result<llm::TokenList> encode(const std::string& text, const text::EncodeOptions& options = {}) const;
};

/// Reads the weights and compiles; says so on stderr, as both take time.
Result<llm::Generator> makeGenerator(const TextModelFiles& files, const TextModelChoices& choices, bool samples);

}  // namespace lockstep::tools
