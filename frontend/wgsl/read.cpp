// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/analyses.h"
#include "frontend/wgsl/lower.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl {

Result<kernel::Module> read(std::string_view text, const ReadOptions& options) {
  const Source source(text, options.file_name);
  Reporter reporter(source);
  const auto giveWarnings = [&] {
    if (options.warnings != nullptr) *options.warnings = reporter.takeWarnings();
  };
  const auto failure = [&] {
    giveWarnings();
    return Failure{.diagnostics = reporter.take()};
  };
  constexpr size_t kMaximumText = size_t(64) << 20u;
  if (text.size() > kMaximumText) {
    reporter.error(kLimit, {}, "the text is longer than 64 MiB");
    return failure();
  }
  const Ast ast = parseModule(source, reporter);
  if (reporter.failed()) return failure();
  Program program = check(ast, options, reporter);
  if (reporter.failed()) return failure();
  checkAliases(ast, program, reporter);
  checkUniformity(ast, program, reporter);
  if (reporter.failed()) return failure();
  giveWarnings();
  kernel::Module module = lower(ast, std::move(program), source);
  return module;
}

std::string renderDiagnostics(const std::vector<Diagnostic>& diagnostics, std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string message = toString(diagnostic);
    while (message.ends_with('\n')) message.pop_back();
    const size_t first_end = std::min(message.find('\n'), message.size());
    out += message.substr(0, first_end) + "\n";
    const bool has_line = diagnostic.where.line >= 1 && diagnostic.where.line <= lines.size();
    if (has_line) {
      const std::string_view line = lines[diagnostic.where.line - 1];
      // Tabs are kept before the caret, so that it stands below its place.
      std::string padding;
      uint32_t column = 1;
      for (size_t i = 0; i < line.size() && column < diagnostic.where.column; ++i) {
        if ((static_cast<unsigned char>(line[i]) & 0xC0u) == 0x80u) continue;
        padding += line[i] == '\t' ? '\t' : ' ';
        ++column;
      }
      out += fmt::format("{}\n{}^\n", line, padding);
    }
    if (first_end < message.size()) out += message.substr(first_end + 1) + "\n";
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
