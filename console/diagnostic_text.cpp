// SPDX-License-Identifier: Apache-2.0
#include "console/diagnostic_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "console/color.h"
#include "frontend/io/regular_file.h"

namespace lockstep::console {
namespace {

/// Line `number` (1-based) of a text, or nothing.
std::string_view lineOf(std::string_view text, uint32_t number) {
  while (number > 1) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
    --number;
  }
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

/// The line and a caret; tabs stay tabs in the caret's line, so that both line up.
std::string excerpt(std::string_view line, uint32_t column) {
  constexpr size_t kLongest = 200;
  if (line.empty() || line.size() > kLongest) return "";
  std::string text = fmt::format("    {}\n", withoutControls(line, "\uFFFD"));
  if (column == 0 || column > line.size() + 1) return text;
  text += "    ";
  for (size_t i = 0; i + 1 < column; ++i) {
    const bool continuation = (static_cast<unsigned char>(line[i]) & 0xc0) == 0x80;
    if (!continuation) text += line[i] == '\t' ? '\t' : ' ';
  }
  return text + "^\n";
}

/// Whether the line may be shown: a place that was read from a text could name any file of the machine.
bool hasFile(const Location& where) { return where.known() && !where.file.empty() && !where.embedded && !where.quoted; }

constexpr uint64_t kMostSource = uint64_t{16} << 20u;  // bytes of a file whose lines are shown

constexpr std::array kPaintedWords{std::pair{std::string_view("error:"), Paint::Error}, std::pair{std::string_view("help:"), Paint::Help},
                                   std::pair{std::string_view("warning:"), Paint::Loud}};

}  // namespace

std::string paintDiagnostic(std::string text, std::FILE* stream) {
  if (!hasColors(stream)) return text;
  for (const auto& [word, paint] : kPaintedWords) {
    if (const size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), painted(stream, paint, word));
  }
  return text;
}

std::string renderWithSource(const std::vector<Diagnostic>& diagnostics, std::FILE* stream) {
  std::map<std::string, std::string> files;
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    text += paintDiagnostic(toString(diagnostic), stream) + "\n";
    if (!hasFile(diagnostic.where) || !diagnostic.excerpt.empty()) continue;
    auto [file, is_new] = files.try_emplace(diagnostic.where.file);
    if (is_new) {
      const auto content = io::readRegularTextFile(diagnostic.where.file, kMostSource);
      if (content.ok()) file->second = *content;
    }
    text += excerpt(lineOf(file->second, diagnostic.where.line), diagnostic.where.column);
  }
  return text;
}

}  // namespace lockstep::console
