// SPDX-License-Identifier: Apache-2.0
// What another program computed with a language model: expected.safetensors in the folder of a checkpoint has for each prompt "pK" its
// ids, the logits of every position, and the prompt with the likeliest tokens after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/llm/generator.h"
#include "ir/support/result.h"

namespace lockstep::tools {

constexpr std::string_view kExpectations = "expected.safetensors";

struct LanguagePrompt {
  std::string name;  ///< "p0"
  llm::TokenList ids;
  std::vector<double> logits;  ///< [ids, vocabulary]
  llm::TokenList greedy;       ///< what follows the ids
};

/// At least one, sorted by name. Codes golden.tensor and those of io::readSafetensors().
Result<std::vector<LanguagePrompt>> readLanguageGolden(const std::filesystem::path& folder, int64_t vocabulary);

}  // namespace lockstep::tools
