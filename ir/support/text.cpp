// SPDX-License-Identifier: Apache-2.0
#include "ir/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lockstep {
namespace {

template <class T>
std::string formatShortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isHexLetter(char c) { return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool isNameByte(char c) { return isLetter(c) || isDigit(c) || c == '.'; }

}  // namespace

std::string formatFloat(float value) { return formatShortest(value); }
std::string formatFloat(double value) { return formatShortest(value); }

namespace {

struct Line {
  std::string_view text;  ///< without the blanks around it
  uint32_t number = 0;    ///< 1-based
  uint32_t indentation = 0;
};

std::vector<Line> linesOf(std::string_view text) {
  std::vector<Line> lines;
  for (uint32_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    line.remove_prefix(begin);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
    lines.push_back({line, number, static_cast<uint32_t>(begin)});
  }
  return lines;
}

/// The line of `lines` that says what `wanted` says: the n-th such line when it is the n-th in its own text.
const Line* sameLine(const std::vector<Line>& lines, const std::vector<Line>& own, const Line& wanted) {
  const auto same = [&](const Line& line) { return line.text == wanted.text; };
  auto before = std::count_if(own.begin(), own.begin() + (wanted.number - 1), same);
  for (const Line& line : lines) {
    if (same(line) && before-- == 0) return &line;
  }
  return nullptr;
}

}  // namespace

Failure pointInto(Failure failure, std::string_view name, std::string_view printed, std::string_view text, const std::string& file) {
  const std::vector<Line> own = linesOf(printed), lines = linesOf(text);
  // Whether there is a line that the file has otherwise, and which.
  const auto move = [&](Location& where) -> const Line* {
    if (where.file != name) return nullptr;
    where.file = file;
    if (where.line == 0 || where.line > own.size()) return nullptr;
    const Line& wanted = own[where.line - 1];
    const Line* found = sameLine(lines, own, wanted);
    const uint32_t column = where.column > wanted.indentation ? where.column - wanted.indentation : 0;
    where.line = found == nullptr ? 0 : found->number;
    where.column = found == nullptr || column == 0 ? 0 : found->indentation + column;
    return found == nullptr ? &wanted : nullptr;
  };
  for (Diagnostic& diagnostic : failure.diagnostics) {
    for (Note& note : diagnostic.notes) (void)move(note.where);
    const Line* quoted = move(diagnostic.where);
    if (quoted != nullptr)
      diagnostic.notes.push_back({.message = fmt::format("in the order of the printer it is `{}`", quoted->text), .where = {}});
  }
  return failure;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Result<TokenCursor> TokenCursor::create(std::string_view text, std::string file_name) {
  TokenCursor cursor;
  size_t at = 0;
  uint32_t line = 1;
  size_t line_start = 0;
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      line_start = ++at;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
      continue;
    }
    if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
      continue;
    }
    Token token{.kind = TokenKind::Punctuation, .text = {}, .where = {file_name, line, static_cast<uint32_t>(at - line_start + 1)}};
    size_t start = at;
    bool sign_then_number = c == '-' && at + 1 < text.size() && (isDigit(text[at + 1]) || text.substr(at, 4) == "-inf");
    if ((c == '%' || c == '@') && at + 1 < text.size() && isNameByte(text[at + 1])) {
      token.kind = c == '%' ? TokenKind::Percent : TokenKind::At;
      ++at;
      while (at < text.size() && isNameByte(text[at])) ++at;
      token.text = text.substr(start + 1, at - start - 1);
    } else if (text.substr(at, 4) == "-inf") {
      at += 4;
      token.kind = TokenKind::Float;
      token.text = text.substr(start, 4);
    } else if (isLetter(c)) {
      while (at < text.size() && isNameByte(text[at])) ++at;
      token.text = text.substr(start, at - start);
      token.kind = token.text == "inf" || token.text == "nan" ? TokenKind::Float : TokenKind::Identifier;
    } else if (isDigit(c) || sign_then_number) {
      token.kind = TokenKind::Integer;
      bool hexadecimal = text.substr(at, 2) == "0x";
      at += hexadecimal ? 2 : 1;
      while (at < text.size()) {
        if (isDigit(text[at]) || (hexadecimal && isHexLetter(text[at]))) {
          ++at;
        } else if (text[at] == '.') {
          token.kind = TokenKind::Float;
          ++at;
        } else if (text[at] == 'e' && at + 1 < text.size() && (isDigit(text[at + 1]) || text[at + 1] == '-' || text[at + 1] == '+')) {
          token.kind = TokenKind::Float;
          at += 2;
        } else {
          break;
        }
      }
      token.text = text.substr(start, at - start);
    } else if (c == '"') {
      ++at;
      while (at < text.size() && text[at] != '"' && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
      if (at >= text.size() || text[at] != '"') return fail("text.string", "string is not closed", token.where);
      ++at;
      token.kind = TokenKind::String;
      token.text = text.substr(start, at - start);
    } else {
      at += text.substr(at, 2) == "->" ? 2 : 1;
      token.text = text.substr(start, at - start);
    }
    cursor.tokens_.push_back(token);
  }
  cursor.tokens_.push_back({.kind = TokenKind::End, .text = {}, .where = {file_name, line, static_cast<uint32_t>(at - line_start + 1)}});
  return cursor;
}

const Token& TokenCursor::peek(size_t ahead) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }

Token TokenCursor::next() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenCursor::accept(std::string_view text) {
  const Token& token = peek();
  if ((token.kind != TokenKind::Punctuation && token.kind != TokenKind::Identifier) || token.text != text) return false;
  next();
  return true;
}

Failure TokenCursor::error(std::string message) const {
  const Token& token = peek();
  std::string found = token.kind == TokenKind::End ? "the end of the text" : fmt::format("'{}'", token.text);
  return fail("text.syntax", fmt::format("{}, found {}", message, found), token.where);
}

Status TokenCursor::expect(std::string_view text) {
  if (!accept(text)) return error(fmt::format("expected '{}'", text));
  return Success{};
}

Result<std::string> TokenCursor::identifier() {
  if (peek().kind != TokenKind::Identifier) return error("expected a word");
  return std::string(next().text);
}

Result<std::string> TokenCursor::percentName() {
  if (peek().kind != TokenKind::Percent) return error("expected a value such as %0");
  return std::string(next().text);
}

Result<std::string> TokenCursor::atName() {
  if (peek().kind != TokenKind::At) return error("expected a name such as @main");
  return std::string(next().text);
}

Result<int64_t> TokenCursor::integer() {
  if (peek().kind != TokenKind::Integer) return error("expected an integer");
  std::string_view text = peek().text;
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  int64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (status != std::errc() || end != text.data() + text.size()) return error("expected an integer of at most 64 bits");
  next();
  return value;
}

Result<double> TokenCursor::number() {
  if (peek().kind != TokenKind::Integer && peek().kind != TokenKind::Float) return error("expected a number");
  std::string_view text = peek().text;
  double value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return error("expected a number in the range of f64");
  next();
  return value;
}

Result<std::string> TokenCursor::string() {
  if (peek().kind != TokenKind::String) return error("expected a quoted string");
  std::string_view source = peek().text.substr(1, peek().text.size() - 2);
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\\') {
      out += source[i];
      continue;
    }
    char escape = source[++i];
    if (escape == 'n') {
      out += '\n';
    } else if (escape == 't') {
      out += '\t';
    } else if (escape == 'x') {
      unsigned value = 0;
      if (i + 2 >= source.size() || std::from_chars(source.data() + i + 1, source.data() + i + 3, value, 16).ec != std::errc()) {
        return error("\\x needs two hexadecimal digits");
      }
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += escape;
    }
  }
  next();
  return out;
}

}  // namespace lockstep
