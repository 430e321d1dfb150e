// SPDX-License-Identifier: Apache-2.0
// Private: a template as tokens. White space around tags is gone as trim_blocks and lstrip_blocks have it, which Hugging Face sets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::text::jinja {

enum class Lexeme : uint8_t { Text, BlockBegin, BlockEnd, OutputBegin, OutputEnd, Name, String, Integer, Real, Sign, End };

struct Token {
  Lexeme kind = Lexeme::End;
  std::string text = {};
  uint32_t line = 0;
};

/// Throws TemplateFailure.
std::vector<Token> tokenize(std::string_view source);

}  // namespace lockstep::text::jinja
