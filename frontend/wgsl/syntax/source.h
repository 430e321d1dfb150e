// SPDX-License-Identifier: Apache-2.0
// The text that is read, spans in it, and the list of problems found so far.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/wgsl/wgsl.h"
#include "ir/support/diagnostic.h"

namespace lockstep::wgsl {

/// Byte offsets [begin, end) into the source text.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

inline Span join(Span a, Span b) { return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end}; }

/// A named text with its line table. The text must outlive the Source.
class Source {
 public:
  Source(std::string_view text, std::string file_name);
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string_view text(Span span) const { return text_.substr(span.begin, span.end - span.begin); }
  /// Line and column (in code points), both 1-based.
  [[nodiscard]] Location locate(uint32_t offset) const;
  [[nodiscard]] Location locate(Span span) const { return locate(span.begin); }
  /// The byte at a line and column that locate() gave.
  [[nodiscard]] uint32_t offsetOf(const Location& where) const;
  /// Code points of the span on its first line.
  [[nodiscard]] uint32_t lengthOnLine(Span span) const;

 private:
  [[nodiscard]] uint32_t codePoints(uint32_t begin, uint32_t end) const;
  std::string_view text_;
  std::string file_name_;
  std::vector<uint32_t> line_starts_;
  std::vector<uint32_t> continuation_bytes_;  // of UTF-8, which are no columns of their own
};

/// Collects diagnostics. Repeats at one place are dropped, and so is everything after the first kMaximum errors and kMaximumWarnings.
class Reporter {
 public:
  static constexpr size_t kMaximum = 40;
  static constexpr size_t kMaximumWarnings = 200;
  explicit Reporter(const Source& source) : source_(source) {}
  void error(std::string code, Span where, std::string message, std::string remedy = {}, std::vector<Note> notes = {});
  /// As an error, a warning or not at all.
  void report(Severity severity, std::string code, Span where, std::string message, std::string remedy = {}, std::vector<Note> notes = {});
  [[nodiscard]] Note note(Span where, std::string message) const {
    return {.message = std::move(message), .where = source_.locate(where), .length = source_.lengthOnLine(where)};
  }
  [[nodiscard]] const Source& source() const { return source_; }
  [[nodiscard]] bool failed() const { return !diagnostics_.empty(); }
  [[nodiscard]] bool full() const { return diagnostics_.size() >= kMaximum; }
  /// In order of place.
  [[nodiscard]] std::vector<Diagnostic> take();
  [[nodiscard]] std::vector<Warning> takeWarnings();

 private:
  const Source& source_;
  std::vector<Diagnostic> diagnostics_;
  std::vector<Warning> warnings_;
};

// Codes of the diagnostics; each names an anchor of docs/errors.md.
inline constexpr const char* kSyntax = "wgsl.syntax";
inline constexpr const char* kName = "wgsl.name";
inline constexpr const char* kType = "wgsl.type";
inline constexpr const char* kConstant = "wgsl.constant";
inline constexpr const char* kOverride = "wgsl.override";
inline constexpr const char* kAttribute = "wgsl.attribute";
inline constexpr const char* kFlow = "wgsl.flow";
inline constexpr const char* kAlias = "wgsl.alias";
inline constexpr const char* kUniformity = "wgsl.uniformity";
inline constexpr const char* kLimit = "wgsl.limit";
inline constexpr const char* kLayout = "wgsl.layout";
inline constexpr const char* kUnsupported = "wgsl.unsupported";
inline constexpr const char* kContract = "wgsl.contract";

}  // namespace lockstep::wgsl
