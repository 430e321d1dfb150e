// SPDX-License-Identifier: Apache-2.0
// Diagnostic filters: diagnostic(severity, rule).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "frontend/wgsl/check/diagnostic_filters.h"
#include "frontend/wgsl/syntax/parser.h"

namespace lockstep::wgsl {
namespace {

constexpr std::array kSeverities = std::to_array<std::pair<std::string_view, Severity>>({
    {"off", Severity::Off},
    {"info", Severity::Info},
    {"warning", Severity::Warning},
    {"error", Severity::Error},
});

}  // namespace

uint32_t Parser::parseFilter(uint32_t begin) {
  DiagnosticFilter filter;
  expect("(", "after 'diagnostic'");
  const Token& word = peek();
  const auto* severity = std::find_if(kSeverities.begin(), kSeverities.end(), [&](const auto& row) { return row.first == word.text; });
  if (severity == kSeverities.end()) fail(fmt::format("'{}' is not a severity", word.text), "write off, info, warning or error");
  filter.severity = severity->second;
  next();
  expect(",", "after the severity");
  const auto part = [&] {
    if (peek().kind != TokenKind::Identifier) fail(fmt::format("expected the name of a diagnostic rule, found '{}'", peek().text));
    if (isReservedWord(peek().text)) fail(fmt::format("'{}' is a reserved word", peek().text));
    filter.rule += next().text;
  };
  const Span rule = peek().span;
  part();
  if (accept(".")) {
    filter.rule += ".";
    part();
  }
  const bool said = std::ranges::any_of(ast_.filters, [&](const DiagnosticFilter& other) { return other.rule == filter.rule; });
  if (!said && !findDiagnosticRule(filter.rule)) {
    reporter_.report(Severity::Warning, kName, rule, fmt::format("'{}' is not a diagnostic rule that is known", filter.rule),
                     fmt::format("rules are {}", diagnosticRuleNames()));
  }
  accept(",");
  expect(")", "after the diagnostic rule");
  filter.span = since(begin);
  ast_.filters.push_back(std::move(filter));
  return static_cast<uint32_t>(ast_.filters.size() - 1);
}

void Parser::bindFilters(const std::vector<Attribute>& attributes, uint32_t begin, bool only_filters) {
  std::map<std::string_view, Span> seen;
  for (const Attribute& attribute : attributes) {
    if (attribute.name != "diagnostic") {
      if (only_filters)
        reporter_.error(kAttribute, attribute.span, fmt::format("attribute '{}' is not allowed on a statement", attribute.name));
      continue;
    }
    DiagnosticFilter& filter = ast_.filters[attribute.filter];
    filter.range = since(begin);
    const auto [first, is_new] = seen.try_emplace(filter.rule, attribute.span);
    if (!is_new) {
      reporter_.error(kAttribute, attribute.span, fmt::format("rule '{}' is filtered twice at one place", filter.rule), {},
                      {reporter_.note(first->second, "first filtered here")});
    }
  }
}

void Parser::checkDirectiveConflicts() {
  std::map<std::string_view, const DiagnosticFilter*> seen;
  for (const DiagnosticFilter& filter : ast_.filters) {
    const auto [first, is_new] = seen.try_emplace(filter.rule, &filter);
    if (is_new || first->second->severity == filter.severity) continue;
    reporter_.error(kAttribute, filter.span, fmt::format("rule '{}' already has another severity", filter.rule), {},
                    {reporter_.note(first->second->span, "which it has from here")});
  }
}

}  // namespace lockstep::wgsl
