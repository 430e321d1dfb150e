// SPDX-License-Identifier: Apache-2.0
#include "backends/sanitize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/reference/reference.h"

namespace lockstep {
namespace {

struct Row {
  std::string_view name;
  bool SanitizeChecks::* member;
};
constexpr std::array kRows{Row{"race", &SanitizeChecks::races},         Row{"memory", &SanitizeChecks::memory},
                           Row{"integer", &SanitizeChecks::integers},   Row{"float", &SanitizeChecks::floats},
                           Row{"loop", &SanitizeChecks::loops},         Row{"barrier", &SanitizeChecks::barriers},
                           Row{"subgroup", &SanitizeChecks::subgroups}, Row{"layout", &SanitizeChecks::layouts},
                           Row{"wrap", &SanitizeChecks::wraps},         Row{"error", &SanitizeChecks::errors}};

}  // namespace

std::unique_ptr<Backend> openSanitizer(const SanitizeOptions& options) {
  return makeReference({.loop_budget = options.loop_budget, .sanitize = options.checks});
}

std::unique_ptr<Backend> openSchedule(const ScheduleOptions& options) {
  return makeReference({.checks = false,
                        .order_seed = options.order_seed,
                        .max_threads = 1,
                        .subgroup_size = options.subgroup_size,
                        .loop_budget = options.loop_budget});
}

std::vector<std::string_view> sanitizeCheckNames() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

Result<SanitizeChecks> parseSanitizeChecks(std::string_view list, bool errors) {
  SanitizeChecks checks{.errors = errors};
  if (list.empty()) return checks;
  const SanitizeChecks all = checks;
  for (const Row& row : kRows) checks.*row.member = false;
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find(',', start), list.size());
    const std::string name(list.substr(start, end - start));
    const auto* row = std::ranges::find(kRows, name, &Row::name);
    start = end + 1;
    if (name == "all") {
      for (const Row& one : kRows) checks.*one.member |= all.*one.member;
      continue;
    }
    if (row == kRows.end()) {
      return fail("sanitize.check", fmt::format("there is no check named '{}'", name), {},
                  fmt::format("choose from all, {}", fmt::join(sanitizeCheckNames(), ", ")));
    }
    checks.*row->member = true;
  }
  return checks;
}

}  // namespace lockstep
