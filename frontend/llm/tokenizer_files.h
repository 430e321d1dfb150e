// SPDX-License-Identifier: Apache-2.0
// The files of a model's folder that are its tokenizer's, as they are: to be saved again with weights that were changed.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "ir/support/result.h"

namespace lockstep::llm {

/// By their names: "tokenizer.json".
using TokenizerFiles = std::map<std::string, std::string, std::less<>>;

/// tokenizer.json, and those of the others that transformers writes beside it that are there. Codes "language_model.tokenizer" where there
/// is no tokenizer.json, and "file.read".
Result<TokenizerFiles> readTokenizerFiles(const std::filesystem::path& folder);
/// Codes "file.write", "file.directory".
Status writeTokenizerFiles(const std::filesystem::path& folder, const TokenizerFiles& files);

}  // namespace lockstep::llm
