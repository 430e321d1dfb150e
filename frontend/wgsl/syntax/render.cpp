// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text, with the lines of the source that they are about.
#include <fmt/format.h>

#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl {
std::string renderDiagnostics(const std::vector<Diagnostic>& diagnostics, std::string_view text) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    Diagnostic head = diagnostic;
    head.notes.clear();
    head.remedy.clear();
    head.excerpt.clear();
    out += toString(head) + "\n" + excerptOf(text, diagnostic.where, diagnostic.length);
    for (const Note& note : diagnostic.notes) {
      const std::string place = toString(note.where);
      out += fmt::format("  {}{}note: {}\n{}", place, place.empty() ? "" : ": ", note.message, excerptOf(text, note.where, note.length));
    }
    if (!diagnostic.remedy.empty()) out += fmt::format("  help: {}\n", diagnostic.remedy);
  }
  return withoutControls(out);
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
