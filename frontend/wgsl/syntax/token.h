// SPDX-License-Identifier: Apache-2.0
// Tokens of WGSL.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/wgsl/syntax/source.h"
#include "frontend/wgsl/syntax/words.h"

namespace lockstep::wgsl {

enum class TokenKind : uint8_t { End, Identifier, Keyword, Literal, TemplateStart, TemplateEnd, Punctuation };

enum class LiteralKind : uint8_t { Bool, AbstractInt, AbstractFloat, I32, U32, F32, F16, Text };

struct Literal {
  LiteralKind kind = LiteralKind::AbstractInt;
  int64_t integer = 0;  ///< Bool and the integers
  double number = 0;    ///< the floats, already rounded to their type
};

struct Token {
  TokenKind kind = TokenKind::End;
  Word word;             ///< Keyword, Punctuation
  uint32_t literal = 0;  ///< Literal: index into the list of literals
  Span span;
  std::string_view text;
};

/// Tokenises and finds the template lists (WGSL, "Template list discovery"). The last token is End. Problems are reported and skipped.
std::vector<Token> tokenize(const Source& source, Reporter& reporter, std::vector<Literal>& literals);
/// The same for who does not need the values of literals.
std::vector<Token> tokenize(const Source& source, Reporter& reporter);

/// Reads the numeric literal at the start of `text`. Returns its length; on a malformed or out-of-range literal sets `error`.
size_t readNumber(std::string_view text, Literal& literal, std::string& error);

}  // namespace lockstep::wgsl
