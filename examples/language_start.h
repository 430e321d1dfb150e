// SPDX-License-Identifier: Apache-2.0
// What the training of a language model begins with: a config, a tokenizer, and perhaps weights.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "frontend/llm/language_config.h"
#include "frontend/llm/tokenizer_files.h"
#include "frontend/text/tokenizer.h"
#include "frontend/trace/host_values.h"

namespace lockstep::examples {

struct LanguageStart {
  llm::LanguageConfig config;
  llm::TokenizerFiles files;  ///< of the tokenizer, to be saved with the model
  text::Tokenizer tokenizer;
  std::optional<ParameterValues> values = {};  ///< absent: random ones
};

/// A small model of the form of Qwen 3 with a byte-level BPE that is learned from the text. Where the text has conversations, so has the
/// tokenizer a template.
LanguageStart newLanguageStart(const std::string& text);
/// Of a folder of Hugging Face. Errors of LanguageConfig::load(), llm::readTokenizerFiles() and loadWeights().
LanguageStart languageStartOf(const std::filesystem::path& folder);

/// The tokens of a text. Error language_model.tokens for one that the model does not have.
std::vector<int32_t> tokensOf(const LanguageStart& start, const std::string& text);

}  // namespace lockstep::examples
