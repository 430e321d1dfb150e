// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/wgsl/syntax/token.h"
#include "frontend/wgsl/syntax/xid.h"

namespace lockstep::wgsl {
namespace {

/// What a byte can begin or be part of.
enum class ByteClass : uint8_t { Other, Blank, Digit, WordStart };

constexpr std::array<ByteClass, 256> kByteClasses = [] {
  std::array<ByteClass, 256> classes{};
  for (const unsigned char c : {' ', '\t', '\n', '\v', '\f', '\r'}) classes[c] = ByteClass::Blank;
  for (size_t c = '0'; c <= '9'; ++c) classes[c] = ByteClass::Digit;
  for (size_t c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = ByteClass::WordStart;
  classes['_'] = ByteClass::WordStart;
  return classes;
}();

ByteClass classOf(char c) { return kByteClasses[static_cast<unsigned char>(c)]; }

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

/// Those of more than one byte.
bool isWideBlank(uint32_t c) { return c == 0x85 || c == 0x200E || c == 0x200F || c == 0x2028 || c == 0x2029; }

/// The code points that end a line.
bool isLineBreak(uint32_t c) { return (c >= '\n' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029; }

/// What a word says about template lists.
enum class Role : uint8_t { None, Less, Greater, Opens, Closes, Logical, Ends };

constexpr std::array<Role, Word::kCount> kRoles = [] {
  std::array<Role, Word::kCount> roles{};
  const auto set = [&](Role role, std::initializer_list<Word> words) {
    for (const Word word : words) roles[word.index()] = role;
  };
  set(Role::Less, {"<"});
  set(Role::Greater, {">", ">>", ">=", ">>="});
  set(Role::Opens, {"(", "["});
  set(Role::Closes, {")", "]"});
  set(Role::Logical, {"&&", "||"});
  set(Role::Ends, {"=", ";", "{", ":", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="});
  return roles;
}();

/// Decides for every '<' after an identifier whether it opens a template list, and which '>' closes it. Sees each punctuation mark when
/// it is appended to the tokens.
class TemplateDiscovery {
 public:
  explicit TemplateDiscovery(std::vector<Token>& tokens) : tokens_(tokens) {}

  void append(const Token& token) {
    switch (kRoles[token.word.index()]) {
      case Role::None:
        break;
      case Role::Less:
        if (afterWord()) pending_.push_back({tokens_.size(), nesting_});
        break;
      case Role::Greater:
        return close(token);
      case Role::Opens:
        ++nesting_;
        break;
      case Role::Closes:
        dropFrom(nesting_);
        nesting_ = std::max(0, nesting_ - 1);
        break;
      case Role::Logical:
        dropFrom(nesting_);
        break;
      case Role::Ends:
        end();
        break;
    }
    tokens_.push_back(token);
  }

 private:
  struct Candidate {
    size_t index;
    int nesting;
  };
  [[nodiscard]] bool afterWord() const {
    return !tokens_.empty() && (tokens_.back().kind == TokenKind::Identifier || tokens_.back().kind == TokenKind::Keyword);
  }

  void dropFrom(int nesting) {
    while (!pending_.empty() && pending_.back().nesting >= nesting) pending_.pop_back();
  }

  void end() {
    nesting_ = 0;
    pending_.clear();
  }

  /// '>' '>>' '>=' '>>=': each leading '>' may close a list; what remains is an ordinary token.
  void close(Token token) {
    while (token.text.starts_with('>') && !pending_.empty() && pending_.back().nesting == nesting_) {
      Token& opening = tokens_[pending_.back().index];
      opening.kind = TokenKind::TemplateStart;
      opening.word = {};
      pending_.pop_back();
      const Span first{token.span.begin, token.span.begin + 1};
      tokens_.push_back({.kind = TokenKind::TemplateEnd, .word = {}, .span = first, .text = token.text.substr(0, 1)});
      token.text.remove_prefix(1);
      ++token.span.begin;
      token.word = findPunctuation(token.text);
    }
    if (token.text.empty()) return;
    if (token.word == "=" || token.word == ">>=") end();
    tokens_.push_back(token);
  }

  std::vector<Token>& tokens_;
  std::vector<Candidate> pending_;
  int nesting_ = 0;
};

class Lexer {
 public:
  Lexer(const Source& source, Reporter& reporter, std::vector<Literal>& literals)
      : text_(source.text()), reporter_(reporter), literals_(literals), templates_(tokens_) {}

  std::vector<Token> run() {
    constexpr size_t kUsualTokenLength = 3;  // with the blank behind it
    tokens_.reserve(text_.size() / kUsualTokenLength);
    while (skipBlanksAndComments()) readToken();
    const auto end = static_cast<uint32_t>(text_.size());
    tokens_.push_back({.kind = TokenKind::End, .word = {}, .span = {end, end}, .text = "end of file"});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  /// False at the end of the text.
  bool skipBlanksAndComments() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (classOf(c) == ByteClass::Blank) {
        ++at_;
      } else if (c == '/' && rest().starts_with("//")) {
        skipLineComment();
      } else if (c == '/' && rest().starts_with("/*")) {
        skipBlockComment();
      } else {
        if (static_cast<unsigned char>(c) < 0x80) return true;
        const CodePoint wide = decodeUtf8(rest());
        if (wide.length == 0 || !isWideBlank(wide.value)) return true;
        at_ += wide.length;
      }
    }
    return false;
  }

  /// Past one code point of a comment; text that is no text is reported even there.
  void skipCommented(CodePoint c) {
    if (c.length == 0 || c.value == 0) return reportBadByte();
    at_ += c.length;
  }

  void skipLineComment() {
    while (at_ < text_.size()) {
      const CodePoint c = decodeUtf8(rest());
      if (isLineBreak(c.value)) return;
      skipCommented(c);
    }
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
        skipCommented(decodeUtf8(rest()));
      }
    } while (depth > 0 && at_ < text_.size());
    if (depth > 0) reporter_.error(kSyntax, {begin, begin + 2}, "block comment is not closed");
  }

  /// The token that the next `length` bytes are; goes past it.
  Token take(TokenKind kind, size_t length, Word word = {}) {
    const Span span{at_, at_ + static_cast<uint32_t>(length)};
    at_ = span.end;
    return {.kind = kind, .word = word, .span = span, .text = {text_.data() + span.begin, length}};
  }

  void readToken() {
    const char c = text_[at_];
    const ByteClass byte = classOf(c);
    const bool number = byte == ByteClass::Digit || (c == '.' && at_ + 1 < text_.size() && classOf(text_[at_ + 1]) == ByteClass::Digit);
    if (number) return readLiteral();
    if (c == '"') return readText();
    if (const size_t length = identifierLength(); length > 1 || (length == 1 && c != '_')) return readWord(length);
    if (const Word word = findPunctuation(rest()); word != Word()) {
      return templates_.append(take(TokenKind::Punctuation, word.text().size(), word));
    }
    const CodePoint first = decodeUtf8(rest());
    if (first.length == 0 || first.value == 0) return reportBadByte();
    reportForeign(first);
  }

  /// Many of these characters cannot be seen, as the spaces that come with text from a web page, so each has its number as well.
  void reportForeign(CodePoint character) {
    constexpr uint32_t kByteOrderMark = 0xFEFF;
    const std::string_view bytes = rest().substr(0, character.length);
    if (character.length == 1) return reportStray(1, fmt::format("character '{}' is not part of WGSL", bytes));
    if (character.value == kByteOrderMark) {
      return reportStray(character.length, "a byte order mark (U+FEFF) is not allowed", "save the file as UTF-8 without a byte order mark");
    }
    reportStray(character.length, fmt::format("character '{}' (U+{:04X}) is not part of WGSL", bytes, character.value));
  }

  void reportBadByte() {
    const auto c = static_cast<unsigned char>(text_[at_]);
    reportStray(1, c == 0 ? "a null character is not allowed" : fmt::format("byte 0x{:02x} is not UTF-8 text", c));
  }

  void reportStray(uint32_t length, std::string message, std::string remedy = {}) {
    reporter_.error(kSyntax, {at_, at_ + length}, std::move(message), std::move(remedy));
    at_ += length;
  }

  /// 0 if no identifier or keyword begins here.
  [[nodiscard]] size_t identifierLength() const {
    size_t at = at_;
    while (at < text_.size()) {
      const ByteClass byte = classOf(text_[at]);
      if (byte == ByteClass::WordStart || (byte == ByteClass::Digit && at > at_)) {
        ++at;
        continue;
      }
      if (static_cast<unsigned char>(text_[at]) < 0x80) break;
      const CodePoint c = decodeUtf8(text_.substr(at));
      if (c.length == 0 || !(at == at_ ? isXidStart(c.value) : isXidContinue(c.value))) break;
      at += c.length;
    }
    return at - at_;
  }

  void readWord(size_t length) {
    const Word keyword = findKeyword(rest().substr(0, length));
    if (keyword == "true" || keyword == "false") {
      return pushLiteral({.kind = LiteralKind::Bool, .integer = keyword == "true" ? 1 : 0, .number = 0}, length);
    }
    tokens_.push_back(take(keyword == Word() ? TokenKind::Identifier : TokenKind::Keyword, length, keyword));
  }

  /// "..." of a print, which ends on its line; \" and \\ stand for themselves.
  void readText() {
    uint32_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') {
      const CodePoint c = decodeUtf8(text_.substr(end));
      if (c.length == 0 || c.value == 0) {
        at_ = end;
        return reportBadByte();
      }
      if (isLineBreak(c.value)) break;
      const bool escaped = text_[end] == '\\' && end + 1 < text_.size() && (text_[end + 1] == '"' || text_[end + 1] == '\\');
      end += escaped ? 2 : static_cast<uint32_t>(c.length);
    }
    const bool closed = end < text_.size() && text_[end] == '"';
    if (!closed) reporter_.error(kSyntax, {at_, at_ + 1}, "the text is not closed; it ends on its line, with '\"'");
    pushLiteral({.kind = LiteralKind::Text}, end + (closed ? 1 : 0) - at_);
  }

  void readLiteral() {
    Literal literal;
    std::string error;
    const size_t length = readNumber(rest(), literal, error);
    if (!error.empty()) reporter_.error(kSyntax, {at_, at_ + static_cast<uint32_t>(length)}, std::move(error));
    pushLiteral(literal, length);
  }

  void pushLiteral(const Literal& literal, size_t length) {
    tokens_.push_back(take(TokenKind::Literal, length));
    tokens_.back().literal = static_cast<uint32_t>(literals_.size());
    literals_.push_back(literal);
  }

  std::string_view text_;
  Reporter& reporter_;
  std::vector<Literal>& literals_;
  uint32_t at_ = 0;
  std::vector<Token> tokens_;
  TemplateDiscovery templates_;
};

}  // namespace

std::vector<Token> tokenize(const Source& source, Reporter& reporter, std::vector<Literal>& literals) {
  return Lexer(source, reporter, literals).run();
}

std::vector<Token> tokenize(const Source& source, Reporter& reporter) {
  std::vector<Literal> literals;
  return tokenize(source, reporter, literals);
}

}  // namespace lockstep::wgsl
