// SPDX-License-Identifier: Apache-2.0
#include "ir/support/diagnostic.h"

#include <fmt/format.h>

namespace lockstep {

std::string toString(const Location& location) {
  std::string text = location.file;
  if (location.line != 0) text += fmt::format("{}{}", text.empty() ? "line " : ":", location.line);
  if (location.line != 0 && location.column != 0) text += fmt::format(":{}", location.column);
  return text;
}

std::string toString(const Diagnostic& diagnostic) {
  std::string place = toString(diagnostic.where);
  std::string text = fmt::format("{}{}error: {}: {}", place, place.empty() ? "" : ": ", diagnostic.code, diagnostic.message);
  for (const Note& note : diagnostic.notes) {
    place = toString(note.where);
    text += fmt::format("\n  {}{}note: {}", place, place.empty() ? "" : ": ", note.message);
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
