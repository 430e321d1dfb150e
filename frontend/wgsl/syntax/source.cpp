// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/syntax/source.h"

#include <algorithm>

namespace lockstep::wgsl {
namespace {

bool isBefore(const Diagnostic& a, const Diagnostic& b) {
  return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
}

}  // namespace

Source::Source(std::string_view text, std::string file_name) : text_(text), file_name_(std::move(file_name)), line_starts_{0} {
  for (uint32_t i = 0; i < text.size(); ++i) {
    if (static_cast<signed char>(text[i]) > '\r') continue;  // the usual ones
    const bool carriage_return_alone = text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n');
    if (text[i] == '\n' || carriage_return_alone) line_starts_.push_back(i + 1);
    if ((static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u) continuation_bytes_.push_back(i);
  }
}

Location Source::locate(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<uint32_t>(after - line_starts_.begin());
  return {.file = file_name_, .line = line, .column = codePoints(line_starts_[line - 1], offset) + 1};
}

uint32_t Source::codePoints(uint32_t begin, uint32_t end) const {
  const auto first = std::lower_bound(continuation_bytes_.begin(), continuation_bytes_.end(), begin);
  return end - begin - static_cast<uint32_t>(std::lower_bound(first, continuation_bytes_.end(), end) - first);
}

uint32_t Source::offsetOf(const Location& where) const {
  uint32_t offset = line_starts_.at(where.line - 1);
  for (uint32_t column = 1; column < where.column && offset < text_.size(); ++column) {
    do ++offset;
    while (offset < text_.size() && (static_cast<unsigned char>(text_[offset]) & 0xC0u) == 0x80u);
  }
  return offset;
}

uint32_t Source::lengthOnLine(Span span) const {
  const auto size = static_cast<uint32_t>(text_.size());
  const uint32_t begin = std::min(span.begin, size);
  uint32_t end = std::clamp(span.end, begin, size);
  if (const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), begin); next != line_starts_.end()) {
    end = std::min(end, *next);
  }
  while (end > begin && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  return codePoints(begin, end);
}

void Reporter::error(std::string code, Span where, std::string message, std::string remedy, std::vector<Note> notes) {
  if (full()) return;
  const Location place = source_.locate(where);
  for (const Diagnostic& other : diagnostics_) {
    if (other.where == place && other.message == message) return;
  }
  diagnostics_.push_back({.code = std::move(code),
                          .message = std::move(message),
                          .where = place,
                          .notes = std::move(notes),
                          .remedy = std::move(remedy),
                          .length = source_.lengthOnLine(where)});
}

void Reporter::report(Severity severity, std::string code, Span where, std::string message, std::string remedy, std::vector<Note> notes) {
  if (severity == Severity::Error) return error(std::move(code), where, std::move(message), std::move(remedy), std::move(notes));
  if (severity == Severity::Off || warnings_.size() >= kMaximumWarnings) return;
  Diagnostic warning{.code = std::move(code),
                     .message = std::move(message),
                     .where = source_.locate(where),
                     .notes = std::move(notes),
                     .remedy = std::move(remedy),
                     .length = source_.lengthOnLine(where)};
  if (std::any_of(warnings_.begin(), warnings_.end(), [&](const Warning& each) { return each.diagnostic == warning; })) return;
  warnings_.push_back({severity, std::move(warning)});
}

std::vector<Diagnostic> Reporter::take() {
  std::stable_sort(diagnostics_.begin(), diagnostics_.end(), isBefore);
  return std::move(diagnostics_);
}

std::vector<Warning> Reporter::takeWarnings() {
  std::stable_sort(warnings_.begin(), warnings_.end(),
                   [](const Warning& a, const Warning& b) { return isBefore(a.diagnostic, b.diagnostic); });
  return std::move(warnings_);
}

}  // namespace lockstep::wgsl
