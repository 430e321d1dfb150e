// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/text/jinja/value.h"
#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool isDigitChar(char c) { return c >= '0' && c <= '9'; }
bool isSpaceChar(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// \r\n and \r become \n; one \n at the end goes.
std::string withUnixLines(std::string_view source) {
  std::string text;
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r') {
      text += '\n';
      if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
    } else {
      text += source[at];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) textUpToTag();
    tokens_.push_back({.kind = Lexeme::End, .text = "", .line = line_});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void failAt(const std::string& message) const { throw TemplateFailure(TemplateFailure::Kind::Syntax, message, line_); }
  [[nodiscard]] bool follows(std::string_view text) const { return std::string_view(source_).substr(at_).starts_with(text); }
  void push(Lexeme kind, std::string text = {}) { tokens_.push_back({.kind = kind, .text = std::move(text), .line = line_}); }
  void skip(size_t count) {
    line_ += static_cast<uint32_t>(std::ranges::count(std::string_view(source_).substr(at_, count), '\n'));
    at_ += count;
  }
  void skipSpace() {
    while (at_ < source_.size()) {
      size_t next = at_;
      if (!isWhiteSpace(nextCodePoint(source_, next))) break;
      skip(next - at_);
    }
  }

  /// The text before a tag that opens at `end` with the sign after its braces.
  void pushText(size_t end, char sign, bool is_output) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      size_t length = text.size();
      while (length > 0) {
        size_t previous = length;
        if (!isWhiteSpace(previousCodePoint(text, previous))) break;
        length = previous;
      }
      text = text.substr(0, length);
    } else if (sign != '+' && !is_output) {
      const size_t newline = text.rfind('\n');
      const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((begin > 0 || line_starts_) && std::ranges::all_of(text.substr(begin), isSpaceChar)) text = text.substr(0, begin);
    }
    if (!text.empty()) push(Lexeme::Text, std::string(text));
    skip(end - at_);
  }

  void textUpToTag() {
    size_t open = at_;
    while (true) {
      open = source_.find('{', open);
      if (open == std::string::npos || open + 1 >= source_.size()) {
        push(Lexeme::Text, source_.substr(at_));
        skip(source_.size() - at_);
        return;
      }
      if (source_[open + 1] == '{' || source_[open + 1] == '%' || source_[open + 1] == '#') break;
      ++open;
    }
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() && (source_[open + 2] == '-' || source_[open + 2] == '+') ? source_[open + 2] : ' ';
    pushText(open, sign, kind == '{');
    skip(sign == ' ' ? 2 : 3);
    if (kind == '#') {
      comment();
    } else if (kind == '%' && isRaw()) {
      raw();
    } else {
      push(kind == '{' ? Lexeme::OutputBegin : Lexeme::BlockBegin);
      inside(kind == '{');
    }
  }

  /// Behind the closing braces. `trims`: a line break that follows goes too.
  void close(char sign, bool trims) {
    const size_t before = at_;
    if (sign == '-') {
      skipSpace();
    } else if (trims && sign != '+' && follows("\n")) {
      skip(1);
    }
    line_starts_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) failAt("a comment is not closed");
    const char sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : ' ';
    skip(end + 2 - at_);
    close(sign, true);
  }

  [[nodiscard]] bool isRaw() const {
    size_t at = at_;
    while (at < source_.size() && isSpaceChar(source_[at])) ++at;
    if (source_.compare(at, 3, "raw") != 0) return false;
    at += 3;
    while (at < source_.size() && isSpaceChar(source_[at])) ++at;
    return source_.compare(at, 2, "%}") == 0 || source_.compare(at, 3, "-%}") == 0;
  }

  void raw() {
    const size_t open = source_.find("%}", at_);
    const char sign = source_[open - 1];
    skip(open + 2 - at_);
    if (sign == '-') skipSpace();
    line_starts_ = false;
    for (size_t end = source_.find("{%", at_); end != std::string::npos; end = source_.find("{%", end + 2)) {
      size_t at = end + 2;
      const char begin_sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at++] : ' ';
      while (at < source_.size() && isSpaceChar(source_[at])) ++at;
      if (source_.compare(at, 6, "endraw") != 0) continue;
      at += 6;
      while (at < source_.size() && isSpaceChar(source_[at])) ++at;
      const char end_sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at++] : ' ';
      if (source_.compare(at, 2, "%}") != 0) continue;
      pushText(end, begin_sign, false);
      skip(at + 2 - at_);
      close(end_sign, true);
      return;
    }
    failAt("'raw' without 'endraw'");
  }

  /// The expression of a tag and its end.
  void inside(bool is_output) {
    std::string open_brackets;
    const std::string_view closing = is_output ? "}}" : "%}";
    while (true) {
      skipSpace();
      if (at_ >= source_.size()) failAt(is_output ? "'{{' is not closed" : "'{%' is not closed");
      if (open_brackets.empty()) {
        const bool has_sign = (source_[at_] == '-' || (source_[at_] == '+' && !is_output)) && source_.compare(at_ + 1, 2, closing) == 0;
        if (has_sign || follows(closing)) {
          const char sign = has_sign ? source_[at_] : ' ';
          push(is_output ? Lexeme::OutputEnd : Lexeme::BlockEnd);
          skip(has_sign ? 3 : 2);
          close(sign, !is_output);
          return;
        }
      }
      token(open_brackets);
    }
  }

  void token(std::string& open_brackets) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') {
      string(c);
    } else if (isDigitChar(c)) {
      number();
    } else if (isNameStart(c)) {
      size_t end = at_;
      while (end < source_.size() && (isNameStart(source_[end]) || isDigitChar(source_[end]))) ++end;
      push(Lexeme::Name, source_.substr(at_, end - at_));
      skip(end - at_);
    } else {
      sign(open_brackets);
    }
  }

  void sign(std::string& open_brackets) {
    constexpr std::array<std::string_view, 7> kDouble = {"//", "**", "==", "!=", ">=", "<=", ""};
    for (const std::string_view text : kDouble) {
      if (text.empty() || !follows(text)) continue;
      push(Lexeme::Sign, std::string(text));
      skip(2);
      return;
    }
    const char c = source_[at_];
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) failAt(fmt::format("unexpected character '{}'", c));
    if (c == '(' || c == '[' || c == '{') open_brackets += c;
    if (c == ')' || c == ']' || c == '}') {
      const char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_brackets.empty() || open_brackets.back() != partner) failAt(fmt::format("unexpected '{}'", c));
      open_brackets.pop_back();
    }
    push(Lexeme::Sign, std::string(1, c));
    skip(1);
  }

  void number() {
    const auto digits = [&](size_t at) {
      while (at < source_.size() &&
             (isDigitChar(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && isDigitChar(source_[at + 1]))))
        ++at;
      return at;
    };
    size_t end = digits(at_);
    bool is_real = false;
    if (end + 1 < source_.size() && source_[end] == '.' && isDigitChar(source_[end + 1])) {
      is_real = true;
      end = digits(end + 1);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && isDigitChar(source_[exponent])) {
        is_real = true;
        end = digits(exponent);
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    push(is_real ? Lexeme::Real : Lexeme::Integer, std::move(text));
    skip(end - at_);
  }

  char32_t hexadecimal(size_t count) {
    char32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t digit =
          at_ < source_.size() ? std::string_view("0123456789abcdef").find(static_cast<char>(source_[at_] | 0x20)) : std::string_view::npos;
      if (digit == std::string_view::npos) failAt("a text has an escape without its hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) failAt("a text has an escape that is not a character");
    return value;
  }

  void string(char mark) {
    const uint32_t line = line_;
    std::string text;
    skip(1);
    while (true) {
      if (at_ >= source_.size()) throw TemplateFailure(TemplateFailure::Kind::Syntax, "a text is not closed", line);
      const char c = source_[at_];
      if (c == mark) break;
      if (c != '\\' || at_ + 1 >= source_.size()) {
        text += c;
        skip(1);
        continue;
      }
      const char letter = source_[at_ + 1];
      skip(2);
      constexpr std::string_view kLetters = "ntrabfv0\\'\"", kMeanings("\n\t\r\a\b\f\v\0\\'\"", 11);
      if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
        text += kMeanings[known];
      } else if (letter == 'x' || letter == 'u' || letter == 'U') {
        appendUtf8(text, hexadecimal(letter == 'x' ? 2 : letter == 'u' ? 4 : 8));
      } else if (letter != '\n') {
        text += '\\';
        text += letter;
      }
    }
    tokens_.push_back({.kind = Lexeme::String, .text = std::move(text), .line = line});
    skip(1);
  }

  std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starts_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(withUnixLines(source)).run(); }

}  // namespace lockstep::text::jinja
