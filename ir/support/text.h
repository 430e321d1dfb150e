// SPDX-License-Identifier: Apache-2.0
// What the three IR texts share: number formatting that round-trips, and a cursor over tokens for the parsers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep {

/// Shortest decimal that reads back to the same value; always has a '.', 'e', "inf" or "nan".
std::string formatFloat(float value);
std::string formatFloat(double value);
/// A double-quoted string with \" \\ \n \t \xNN escapes.
std::string quote(std::string_view text);

/// Validators point into `printed`, what they checked as a text, which they call `name`. Where that was read from the text of a file, this
/// gives their diagnostics the place of the same line there. A line that the file has otherwise is quoted.
Failure pointInto(Failure failure, std::string_view name, std::string_view printed, std::string_view text, const std::string& file);

/// Tokens of the IR texts. Comments run from '#' to the end of the line.
enum class TokenKind : uint8_t { End, Identifier, Percent, At, Integer, Float, String, Punctuation };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  ///< of a Percent or At token: the name without its sigil; of a String: the quoted source
  Location where;
};

/// A tokenised text with one token of look-ahead. Identifiers: [A-Za-z_][A-Za-z0-9_.]*; names after '%' and '@' may also start with a
/// digit. Numbers keep their sign ("-3", "1.5e-3", "-inf", "nan"); "->" is one token, all other punctuation is one character.
class TokenCursor {
 public:
  static Result<TokenCursor> create(std::string_view text, std::string file_name);
  [[nodiscard]] const Token& peek(size_t ahead = 0) const;
  Token next();
  [[nodiscard]] bool atEnd() const { return peek().kind == TokenKind::End; }
  /// Consumes the next token if it is this punctuation or identifier.
  bool accept(std::string_view text);
  Status expect(std::string_view text);
  Result<std::string> identifier();
  Result<std::string> percentName();
  Result<std::string> atName();
  Result<int64_t> integer();
  Result<double> number();
  Result<std::string> string();
  /// A failure that points at the next token.
  [[nodiscard]] Failure error(std::string message) const;

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace lockstep
