// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/diagnostic_filters.h"

#include <algorithm>

namespace lockstep::wgsl {
namespace {

constexpr std::array<std::string_view, kDiagnosticRules> kNames{"derivative_uniformity", "subgroup_uniformity", "lockstep.index_wraps",
                                                                "lockstep.product_wraps"};
constexpr std::array<Severity, kDiagnosticRules> kDefaults{Severity::Error, Severity::Error, Severity::Warning, Severity::Warning};

}  // namespace

std::string_view toString(DiagnosticRule rule) { return kNames[static_cast<size_t>(rule)]; }

std::optional<DiagnosticRule> findDiagnosticRule(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? std::nullopt : std::optional(static_cast<DiagnosticRule>(found - kNames.begin()));
}

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
  return at == SIZE_MAX ? kDefaults[static_cast<size_t>(rule)] : entries[at].severity;
}

}  // namespace lockstep::wgsl
