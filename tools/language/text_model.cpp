// SPDX-License-Identifier: Apache-2.0
#include "tools/language/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "console/terminal.h"
#include "frontend/llm/stored_weights.h"

namespace lockstep::tools {

namespace {

Result<Precision> promptPrecision(const std::string& word) {
  if (word == "f32") return Precision{};
  if (word == "bf16") return mixed(DType::BF16);
  if (word == "f16") return mixed(DType::F16);
  return console::usage("value", fmt::format("--prompt-precision does not know '{}'", word), "use f32, f16 or bf16");
}

}  // namespace

void TextModelChoices::addTo(console::Options& options) {
  options.argument(folder, "DIR", "a folder with config.json, weights as safetensors, and tokenizer.json");
  options.value(device, "--device", console::kDevices);
  weights.addTo(options);
  options.value(context, "--context", "room for so many tokens; 0: what the model was made for, at most 4096");
  options.value(prompt_precision, "--prompt-precision", "of products over a prompt: f32, f16 or bf16");
  options.choices("--prompt-precision", {"f32", "f16", "bf16"});
}

void TextModelChoices::addPaceTo(console::Options& options) {
  tokens_per_submission = 4;
  options.value(tokens_per_submission, "--tokens-per-submission",
                "tokens that a device makes before the host looks at them, where it makes so many in a twentieth of a second");
}

Status checkContext(int64_t context) {
  constexpr int64_t kMost = int64_t{1} << 24;  // as for the number of a config
  if (context < 0) return console::usage("value", "--context is less than 0");
  if (context > kMost) return console::usage("value", fmt::format("--context is more than {}", kMost));
  return Success{};
}

Status TextModelChoices::check() const {
  LS_CHECK(checkContext(context));
  if (tokens_per_submission < 1) return console::usage("value", "--tokens-per-submission is less than 1");
  if (tokens_per_submission > llm::kMostTokensPerSubmission)
    return console::usage("value", fmt::format("--tokens-per-submission is more than {}", llm::kMostTokensPerSubmission));
  LS_CHECK(promptPrecision(prompt_precision));
  return Success{};
}

Result<TextModelFiles> TextModelFiles::load(const std::string& folder) {
  const std::filesystem::path path = folder;
  LS_TRY(llm::LanguageConfig config, llm::LanguageConfig::load(path));
  std::error_code ignored;
  if (!std::filesystem::exists(path / "tokenizer.json", ignored)) {
    return fail("language_model.tokenizer", fmt::format("{} has no tokenizer.json", folder), {},
                "save it with the model: tokenizer.save_pretrained(DIR) of a fast tokenizer of transformers");
  }
  LS_TRY(text::Tokenizer tokenizer, text::Tokenizer::load(path / "tokenizer.json"));
  LS_TRY(text::TokenizerConfig tokenizer_config, text::TokenizerConfig::load(path));
  std::set<int32_t> end_tokens(config.end_tokens.begin(), config.end_tokens.end());
  if (const auto eos = tokenizer_config.special_tokens.find("eos_token"); eos != tokenizer_config.special_tokens.end()) {
    if (const std::optional<uint32_t> id = tokenizer.idOf(eos->second)) end_tokens.insert(static_cast<int32_t>(*id));
  }
  return TextModelFiles{.folder = folder,
                        .config = std::move(config),
                        .tokenizer = std::move(tokenizer),
                        .tokenizer_config = std::move(tokenizer_config),
                        .end_tokens = std::move(end_tokens)};
}

Result<llm::TokenList> TextModelFiles::encode(const std::string& text, const text::EncodeOptions& options) const {
  LS_TRY(const std::vector<uint32_t> ids, tokenizer.encode(text, options));
  if (ids.empty()) return fail("language_model.tokens", "the text has no token", {}, "give it one at least");
  return llm::TokenList(ids.begin(), ids.end());
}

Result<llm::Generator> makeGenerator(const TextModelFiles& files, const TextModelChoices& choices, bool samples) {
  LS_TRY(const std::optional<nn::WeightFormat> format, choices.weights.weights());
  LS_TRY(const graph::DType cache, choices.weights.cache());
  LS_TRY(const Precision prompt_precision, promptPrecision(choices.prompt_precision));
  LS_TRY(llm::LanguageConfig config, llm::withFormat(files.config, format));
  fmt::print(stderr, "compiling a {} model of {:.3g} million parameters, kept as {}\n", config.family,
             static_cast<double>(llm::parameterCount(config)) / 1e6, toString(config.weights));
  // Models may have more ids than their tokenizers; tokenizers may have ids of parts that a model of text alone lacks.
  const int64_t ids = std::min(static_cast<int64_t>(files.tokenizer.idLimit()), config.vocabulary);
  config.end_tokens.assign(files.end_tokens.begin(), files.end_tokens.end());
  // A line that counts is for people.
  const bool counts = console::isTerminal(stderr);
  const auto progress = [&](size_t done, size_t all) {
    if (counts) fmt::print(stderr, "\rreading {}: {} of {} tensors", files.folder, done, all);
    if (!counts && done == 1) fmt::print(stderr, "reading {}\n", files.folder);
    if (counts && done == all) fmt::print(stderr, "\n");
  };
  return llm::Generator::load(config, files.folder,
                              {.device = choices.device,
                               .positions = choices.context,
                               .vocabulary = ids,
                               .tokens_per_submission = choices.tokens_per_submission,
                               .precision = prompt_precision,
                               .cache = cache,
                               .samples = samples},
                              progress);
}

}  // namespace lockstep::tools
