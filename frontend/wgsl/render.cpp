// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text, with the lines of the source that they are about.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl {
namespace {

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

/// The line of the place and below it "^~~~"; nothing when the place is not in the text.
std::string excerpt(const std::vector<std::string_view>& lines, const Location& where, uint32_t length) {
  if (where.line < 1 || where.line > lines.size()) return "";
  const std::string_view line = lines[where.line - 1];
  // Tabs are kept before the caret, so that it stands below its place.
  std::string padding;
  uint32_t column = 1;
  for (size_t i = 0; i < line.size() && column < where.column; ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xC0u) == 0x80u) continue;
    padding += line[i] == '\t' ? '\t' : ' ';
    ++column;
  }
  return fmt::format("{}\n{}^{}\n", line, padding, std::string(std::max(length, 1u) - 1, '~'));
}

}  // namespace

std::string renderDiagnostics(const std::vector<Diagnostic>& diagnostics, std::string_view text) {
  const std::vector<std::string_view> lines = linesOf(text);
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    Diagnostic head = diagnostic;
    head.notes.clear();
    head.remedy.clear();
    out += toString(head) + "\n" + excerpt(lines, diagnostic.where, diagnostic.length);
    for (const Note& note : diagnostic.notes) {
      const std::string place = toString(note.where);
      out += fmt::format("  {}{}note: {}\n{}", place, place.empty() ? "" : ": ", note.message, excerpt(lines, note.where, note.length));
    }
    if (!diagnostic.remedy.empty()) out += fmt::format("  help: {}\n", diagnostic.remedy);
  }
  return out;
}

std::string renderWarnings(const std::vector<Warning>& warnings, std::string_view text) {
  std::string out;
  for (const Warning& warning : warnings) {
    std::string one = renderDiagnostics({warning.diagnostic}, text);
    // A diagnostic calls itself an error right behind its place.
    const std::string place = toString(warning.diagnostic.where) + ": ";
    one.replace(place.size(), std::string_view("error").size(), warning.severity == Severity::Info ? "info" : "warning");
    out += one;
  }
  return out;
}

}  // namespace lockstep::wgsl
