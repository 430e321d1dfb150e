// SPDX-License-Identifier: Apache-2.0
#include "ir/support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

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
  return fmt::format("{}\n{}^{}\n", text, padding, std::string(std::max(length, 1u) - 1, '~'));
}

std::string toString(const Location& location) {
  if (location.embedded && location.line != 0) return fmt::format("{}, line {} of its WGSL", location.file, location.line);
  std::string text = location.file;
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
  return text;
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
