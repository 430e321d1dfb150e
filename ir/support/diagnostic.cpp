// SPDX-License-Identifier: Apache-2.0
#include "ir/support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

/// On lines of their own, each indented.
std::string indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("\n    {}", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

/// The code point at the begin of a text and its bytes; of bytes that are no UTF-8 the first one, and the length 0.
struct CodePoint {
  uint32_t number = 0;
  size_t length = 0;
};

CodePoint firstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 && first < 0xF0 ? 3 : first >= 0xC2 && first < 0xE0 ? 2 : 0;
  if (length == 0 || text.size() < length) return {first, 0};
  uint32_t number = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {first, 0};
    number = number << 6u | (byte(i) & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = number >= 0xD800 && number < 0xE000;
  return number < kLeast[length] || surrogate || number > 0x10FFFF ? CodePoint{first, 0} : CodePoint{number, length};
}

bool actsOnTerminal(uint32_t c) {
  const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
  const bool turns = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return control || turns;
}

}  // namespace

std::string withoutControls(std::string_view text, std::string_view mark) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = firstOf(text);
    const size_t length = std::max<size_t>(c.length, 1);
    const bool line_end = text.starts_with("\r\n");
    if (c.length != 0 && (line_end || !actsOnTerminal(c.number))) {
      out += text.substr(0, length);
    } else if (!mark.empty()) {
      out += mark;
    } else {
      out += c.number < 0x100 ? fmt::format("\\x{:02x}", c.number) : fmt::format("\\u{:04x}", c.number);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string excerptOf(std::string_view text, const Location& where, uint32_t length) {
  if (where.line == 0) return "";
  for (uint32_t line = 1; line < where.line; ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  // Tabs are kept before the caret, so that it stands below its place.
  std::string padding;
  uint32_t column = 1;
  for (size_t i = 0; i < text.size() && column < where.column; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u) continue;
    padding += text[i] == '\t' ? '\t' : ' ';
    ++column;
  }
  return fmt::format("{}\n{}^{}\n", withoutControls(text, "\uFFFD"), padding, std::string(std::max(length, 1u) - 1, '~'));
}

std::string toString(const Location& location) {
  std::string text = withoutControls(location.file);
  if (location.embedded && location.line != 0) return fmt::format("{}, line {} of its WGSL", text, location.line);
  if (location.line != 0) text += fmt::format("{}{}", text.empty() ? "line " : ":", location.line);
  if (location.line != 0 && location.column != 0) text += fmt::format(":{}", location.column);
  return text;
}

std::string toString(const Diagnostic& diagnostic) {
  std::string place = toString(diagnostic.where);
  std::string text = fmt::format("{}{}error: {}: {}", place, place.empty() ? "" : ": ", diagnostic.code, diagnostic.message);
  text += indented(diagnostic.excerpt);
  for (const Note& note : diagnostic.notes) {
    place = toString(note.where);
    text += fmt::format("\n  {}{}note: {}", place, place.empty() ? "" : ": ", note.message);
    text += indented(note.excerpt);
  }
  if (!diagnostic.remedy.empty()) text += "\n  help: " + diagnostic.remedy;
  return withoutControls(text);
}

std::string toString(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += "\n";
    text += toString(diagnostic);
  }
  return text;
}

Error::Error(Diagnostic diagnostic, ExitCode exit_code) : Error(std::vector<Diagnostic>{std::move(diagnostic)}, exit_code) {}

Error::Error(std::vector<Diagnostic> diagnostics, ExitCode exit_code)
    : std::runtime_error(toString(diagnostics)), diagnostics_(std::move(diagnostics)), exit_code_(exit_code) {}

void internalError(const std::string& what) { throw InternalError(what); }

}  // namespace lockstep
