// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/diagnostic_filters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep::wgsl {
namespace {

constexpr std::array<std::string_view, kDiagnosticRules> kNames{"derivative_uniformity",
                                                                "subgroup_uniformity",
                                                                "lockstep.unused",
                                                                "lockstep.dead_store",
                                                                "lockstep.constant_condition",
                                                                "lockstep.identical_operands",
                                                                "lockstep.unsigned_compare",
                                                                "lockstep.unstable_formula",
                                                                "lockstep.workgroup_size",
                                                                "lockstep.index",
                                                                "lockstep.race",
                                                                "lockstep.access_pattern"};

/// Names of before there was one rule for indices.
constexpr std::array<std::pair<std::string_view, DiagnosticRule>, 2> kOlderNames{
    {{"lockstep.index_wraps", DiagnosticRule::Index}, {"lockstep.product_wraps", DiagnosticRule::Index}}};

Severity defaultSeverity(DiagnosticRule rule) { return rule <= DiagnosticRule::SubgroupUniformity ? Severity::Error : Severity::Warning; }

}  // namespace

std::string_view toString(DiagnosticRule rule) { return kNames[static_cast<size_t>(rule)]; }

std::optional<DiagnosticRule> findDiagnosticRule(std::string_view name) {
  for (const auto& [older, rule] : kOlderNames) {
    if (older == name) return rule;
  }
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? std::nullopt : std::optional(static_cast<DiagnosticRule>(found - kNames.begin()));
}

std::string diagnosticRuleNames() { return fmt::format("{} and {}", fmt::join(kNames.begin(), kNames.end() - 1, ", "), kNames.back()); }

DiagnosticFilters::DiagnosticFilters(const std::vector<DiagnosticFilter>& filters) {
  for (const DiagnosticFilter& filter : filters) {
    const auto rule = findDiagnosticRule(filter.rule);
    if (!rule) continue;
    std::vector<Entry>& entries = entries_[static_cast<size_t>(*rule)];
    size_t around = entries.empty() ? SIZE_MAX : entries.size() - 1;
    while (around != SIZE_MAX && entries[around].range.end <= filter.range.begin) around = entries[around].around;
    entries.push_back({.range = filter.range, .severity = filter.severity, .around = around});
  }
}

Severity DiagnosticFilters::severity(DiagnosticRule rule, uint32_t offset) const {
  const std::vector<Entry>& entries = entries_[static_cast<size_t>(rule)];
  const auto after =
      std::upper_bound(entries.begin(), entries.end(), offset, [](uint32_t place, const Entry& e) { return place < e.range.begin; });
  size_t at = after == entries.begin() ? SIZE_MAX : static_cast<size_t>(after - entries.begin()) - 1;
  while (at != SIZE_MAX && entries[at].range.end <= offset) at = entries[at].around;
  return at == SIZE_MAX ? defaultSeverity(rule) : entries[at].severity;
}

bool DiagnosticFilters::makesErrors(DiagnosticRule rule) const {
  return std::ranges::any_of(entries_[static_cast<size_t>(rule)], [](const Entry& entry) { return entry.severity == Severity::Error; });
}

}  // namespace lockstep::wgsl
