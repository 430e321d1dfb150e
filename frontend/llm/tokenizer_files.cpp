// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/tokenizer_files.h"

#include <fmt/format.h>

#include "frontend/io/file.h"
#include "frontend/io/regular_file.h"

namespace lockstep::llm {
namespace {

constexpr const char* kTokenizer = "tokenizer.json";
constexpr uint64_t kMostTokenizerBytes = uint64_t{1} << 30;
constexpr const char* kOthers[] = {"tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json",
                                   "added_tokens.json",     "vocab.json",          "merges.txt"};

bool hasFile(const std::filesystem::path& folder, const char* name) {
  std::error_code ignored;
  return std::filesystem::exists(folder / name, ignored);
}

}  // namespace

Result<TokenizerFiles> readTokenizerFiles(const std::filesystem::path& folder) {
  if (!hasFile(folder, kTokenizer)) {
    return fail("language_model.tokenizer", fmt::format("{} has no {}", folder.string(), kTokenizer), {},
                "save it with the model: tokenizer.save_pretrained(DIR) of a fast tokenizer of transformers");
  }
  TokenizerFiles files;
  LS_TRY(files[kTokenizer], io::readRegularTextFile(folder / kTokenizer, kMostTokenizerBytes));
  for (const char* name : kOthers) {
    if (!hasFile(folder, name)) continue;
    LS_TRY(files[name], io::readRegularTextFile(folder / name, kMostTokenizerBytes));
  }
  return files;
}

Status writeTokenizerFiles(const std::filesystem::path& folder, const TokenizerFiles& files) {
  LS_CHECK(io::makeDirectories(folder));
  for (const auto& [name, text] : files) LS_CHECK(io::writeFileAtomically(folder / name, std::string_view(text)));
  return Success{};
}

}  // namespace lockstep::llm
