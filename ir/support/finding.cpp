// SPDX-License-Identifier: Apache-2.0
#include "ir/support/finding.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

/// The line of a text, from 1; empty when there is none.
std::string_view lineOf(std::string_view text, uint32_t line) {
  for (uint32_t k = 1; k < line; ++k) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string_view toString(Finding::Severity severity) { return severity == Finding::Severity::Error ? "error" : "warning"; }

std::string toString(const Finding& finding) {
  std::string text = toString(finding.diagnostic);
  if (finding.severity == Finding::Severity::Warning) {
    const size_t at = text.find("error: " + finding.diagnostic.code);
    if (at != std::string::npos) text.replace(at, std::string_view("error").size(), "warning");
  }
  if (!finding.invocation.empty()) text += fmt::format("\n  in {}", withoutControls(finding.invocation));
  if (finding.count > 1) text += fmt::format("{} {} times", finding.invocation.empty() ? "\n " : ",", finding.count);
  return text;
}

void dropAllowed(std::vector<Finding>& findings, std::string_view source) {
  std::erase_if(findings, [&](const Finding& finding) {
    const Diagnostic& diagnostic = finding.diagnostic;
    const std::string allowed = fmt::format("lockstep: allow({})", diagnostic.code);
    return diagnostic.where.line != 0 && lineOf(source, diagnostic.where.line).find(allowed) != std::string_view::npos;
  });
}

void addExcerpts(std::vector<Finding>& findings, const std::string& file, std::string_view source) {
  const auto add = [&](auto& place) {
    if (place.where.file == file && place.excerpt.empty()) place.excerpt = excerptOf(source, place.where, 1);
  };
  for (Finding& finding : findings) {
    add(finding.diagnostic);
    for (Note& note : finding.diagnostic.notes) add(note);
  }
}

void merge(std::vector<Finding>& all, std::vector<Finding> more) {
  const auto same = [](const Finding& a, const Finding& b) {
    const Diagnostic &one = a.diagnostic, &other = b.diagnostic;
    return one.code == other.code && a.severity == b.severity && one.where == other.where &&
           std::ranges::equal(one.notes, other.notes, {}, &Note::where, &Note::where);
  };
  for (Finding& finding : more) {
    const auto known = std::ranges::find_if(all, [&](const Finding& one) { return same(one, finding); });
    if (known == all.end()) {
      all.push_back(std::move(finding));
    } else {
      known->count += finding.count;
    }
  }
}

std::string countsOf(const std::vector<Finding>& findings) {
  const auto errors = static_cast<size_t>(std::ranges::count(findings, Finding::Severity::Error, &Finding::severity));
  const size_t warnings = findings.size() - errors;
  return fmt::format("sanitizer: {} {}, {} {}", errors, errors == 1 ? "error" : "errors", warnings, warnings == 1 ? "warning" : "warnings");
}

bool hasError(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) { return finding.severity == Finding::Severity::Error; });
}

}  // namespace lockstep
