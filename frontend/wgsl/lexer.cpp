// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/wgsl/token.h"
#include "frontend/wgsl/xid.h"

namespace lockstep::wgsl {
namespace {

constexpr std::array kPunctuation = std::to_array<std::string_view>({
    ">>=", "<<=", "&&", "||", "->", "==", "!=", "<=", ">=", "<<", ">>", "++", "--", "+=", "-=", "*=",
    "/=",  "%=",  "&=", "|=", "^=", "&",  "|",  "^",  "!",  "=",  "<",  ">",  "+",  "-",  "*",  "/",
    "%",   "~",   "(",  ")",  "[",  "]",  "{",  "}",  ";",  ":",  ",",  ".",  "@",  "_",
    "?",  // of no grammar rule; the parser says what to write instead
});

struct CodePoint {
  uint32_t value = 0;
  uint32_t length = 0;  ///< 0: not UTF-8
};

CodePoint decodeUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const uint32_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  uint32_t value = first & (0xFFu >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {};
    value = (value << 6u) | (byte(i) & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || surrogate || value > 0x10FFFF) return {};
  return {value, length};
}

bool isBlank(uint32_t c) {
  constexpr std::array<uint32_t, 11> kBlanks{' ', '\t', '\n', '\v', '\f', '\r', 0x85, 0x200E, 0x200F, 0x2028, 0x2029};
  return std::find(kBlanks.begin(), kBlanks.end(), c) != kBlanks.end();
}

bool isDigit(uint32_t c) { return c >= '0' && c <= '9'; }

bool isIdentifierStart(uint32_t c) { return c == '_' || isXidStart(c); }

/// The code points that end a line.
bool isLineBreak(uint32_t c) { return (c >= '\n' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029; }

class Lexer {
 public:
  Lexer(const Source& source, Reporter& reporter) : text_(source.text()), reporter_(reporter) {}

  std::vector<Token> run() {
    constexpr size_t kUsualTokenLength = 3;  // with the blank behind it
    tokens_.reserve(text_.size() / kUsualTokenLength);
    while (skipBlanksAndComments()) readToken();
    const auto end = static_cast<uint32_t>(text_.size());
    tokens_.push_back({.kind = TokenKind::End, .span = {end, end}, .text = "end of file", .literal = {}});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  /// False at the end of the text.
  bool skipBlanksAndComments() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ') {
        ++at_;
      } else if (text_[at_] == '/' && rest().starts_with("//")) {
        skipLineComment();
      } else if (text_[at_] == '/' && rest().starts_with("/*")) {
        skipBlockComment();
      } else {
        const CodePoint c = decodeUtf8(rest());
        if (c.length == 0 || !isBlank(c.value)) return true;
        at_ += c.length;
      }
    }
    return false;
  }

  /// Past one code point of a comment; text that is no text is reported even there.
  void skipCommented() {
    const CodePoint c = decodeUtf8(rest());
    if (c.length == 0 || c.value == 0) return reportBadByte();
    at_ += c.length;
  }

  void skipLineComment() {
    while (at_ < text_.size() && !isLineBreak(decodeUtf8(rest()).value)) skipCommented();
  }

  void skipBlockComment() {
    const uint32_t begin = at_;
    int depth = 0;
    do {
      if (rest().starts_with("/*")) {
        ++depth;
        at_ += 2;
      } else if (rest().starts_with("*/")) {
        --depth;
        at_ += 2;
      } else {
        skipCommented();
      }
    } while (depth > 0 && at_ < text_.size());
    if (depth > 0) reporter_.error(kSyntax, {begin, begin + 2}, "block comment is not closed");
  }

  void push(TokenKind kind, size_t length, Literal literal = {}) {
    const Span span{at_, at_ + static_cast<uint32_t>(length)};
    tokens_.push_back({.kind = kind, .span = span, .text = text_.substr(at_, length), .literal = literal});
    at_ = span.end;
  }

  void readToken() {
    const auto c = static_cast<unsigned char>(text_[at_]);
    const bool number = isDigit(c) || (c == '.' && at_ + 1 < text_.size() && isDigit(static_cast<unsigned char>(text_[at_ + 1])));
    if (number) return readLiteral();
    const CodePoint first = decodeUtf8(rest());
    if (first.length == 0 || first.value == 0) return reportBadByte();
    const size_t length = identifierLength();
    if (length > 0 && rest().substr(0, length) != "_") return readWord(length);
    for (const std::string_view candidate : kPunctuation) {
      // Most differ in the first byte, which costs no call of memcmp.
      if (candidate.front() == text_[at_] && rest().starts_with(candidate)) return push(TokenKind::Punctuation, candidate.size());
    }
    reportStray(first.length, fmt::format("character '{}' is not part of WGSL", rest().substr(0, first.length)));
  }

  void reportBadByte() {
    const auto c = static_cast<unsigned char>(text_[at_]);
    reportStray(1, c == 0 ? "a null character is not allowed" : fmt::format("byte 0x{:02x} is not UTF-8 text", c));
  }

  void reportStray(uint32_t length, std::string message) {
    reporter_.error(kSyntax, {at_, at_ + length}, std::move(message));
    at_ += length;
  }

  [[nodiscard]] size_t identifierLength() const {
    size_t length = 0;
    while (at_ + length < text_.size()) {
      const CodePoint c = decodeUtf8(text_.substr(at_ + length));
      if (c.length == 0 || !(length == 0 ? isIdentifierStart(c.value) : isXidContinue(c.value))) break;
      length += c.length;
    }
    return length;
  }

  void readWord(size_t length) {
    const std::string_view word = rest().substr(0, length);
    if (word == "true" || word == "false") {
      return push(TokenKind::Literal, length, {.kind = LiteralKind::Bool, .integer = word == "true" ? 1 : 0, .number = 0});
    }
    push(isKeyword(word) ? TokenKind::Keyword : TokenKind::Identifier, length);
  }

  void readLiteral() {
    Literal literal;
    std::string error;
    const size_t length = readNumber(rest(), literal, error);
    if (!error.empty()) reporter_.error(kSyntax, {at_, at_ + static_cast<uint32_t>(length)}, std::move(error));
    push(TokenKind::Literal, length, literal);
  }

  std::string_view text_;
  Reporter& reporter_;
  uint32_t at_ = 0;
  std::vector<Token> tokens_;
};

/// Decides for every '<' after an identifier whether it opens a template list, and which '>' closes it.
class TemplateDiscovery {
 public:
  explicit TemplateDiscovery(const std::vector<Token>& tokens) : tokens_(tokens) {}

  std::vector<Token> run() {
    output_.reserve(tokens_.size());
    for (const Token& token : tokens_) {
      if (token.kind != TokenKind::Punctuation || token.text == "_") {
        output_.push_back(token);
      } else if (token.text.front() == '>') {
        close(token);
      } else {
        visit(token);
      }
    }
    return std::move(output_);
  }

 private:
  struct Candidate {
    size_t output_index;
    int nesting;
  };

  void visit(const Token& token) {
    const bool after_word = !output_.empty() && (output_.back().kind == TokenKind::Identifier || output_.back().kind == TokenKind::Keyword);
    if (token.text == "<" && after_word) {
      pending_.push_back({output_.size(), nesting_});
    } else if (token.text == "(" || token.text == "[") {
      ++nesting_;
    } else if (token.text == ")" || token.text == "]") {
      dropFrom(nesting_);
      nesting_ = std::max(0, nesting_ - 1);
    } else if (token.text == "&&" || token.text == "||") {
      dropFrom(nesting_);
    } else if (token.text == "=" || token.text == ";" || token.text == "{" || token.text == ":" || isCompoundAssignment(token.text)) {
      nesting_ = 0;
      pending_.clear();
    }
    output_.push_back(token);
  }

  static bool isCompoundAssignment(std::string_view text) {
    return text.size() >= 2 && text.back() == '=' && text != "==" && text != "!=" && text != "<=" && text != ">=";
  }

  void dropFrom(int nesting) {
    while (!pending_.empty() && pending_.back().nesting >= nesting) pending_.pop_back();
  }

  /// '>' '>>' '>=' '>>=': each leading '>' may close a list; what remains is an ordinary token.
  void close(Token token) {
    while (!token.text.empty() && token.text.front() == '>' && !pending_.empty() && pending_.back().nesting == nesting_) {
      output_[pending_.back().output_index].kind = TokenKind::TemplateStart;
      pending_.pop_back();
      output_.push_back({.kind = TokenKind::TemplateEnd,
                         .span = {token.span.begin, token.span.begin + 1},
                         .text = token.text.substr(0, 1),
                         .literal = {}});
      token.text.remove_prefix(1);
      ++token.span.begin;
    }
    if (token.text.empty()) return;
    if (token.text == "=" || token.text == ">>=") {
      nesting_ = 0;
      pending_.clear();
    }
    output_.push_back(token);
  }

  const std::vector<Token>& tokens_;
  std::vector<Token> output_;
  std::vector<Candidate> pending_;
  int nesting_ = 0;
};

}  // namespace

std::vector<Token> tokenize(const Source& source, Reporter& reporter) {
  const std::vector<Token> tokens = Lexer(source, reporter).run();
  return TemplateDiscovery(tokens).run();
}

}  // namespace lockstep::wgsl
