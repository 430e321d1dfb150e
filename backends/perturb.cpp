// SPDX-License-Identifier: Apache-2.0
#include "backends/perturb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backends/reference/reference.h"

namespace lockstep {
namespace {

struct Row {
  std::string_view name;
  bool Perturbation::* member;
};
constexpr std::array kRows{Row{"rounding", &Perturbation::rounding}, Row{"truncation", &Perturbation::truncation},
                           Row{"contraction", &Perturbation::contraction}, Row{"flush", &Perturbation::flush}};

Failure bad(std::string_view text, const std::string& why) {
  return fail("device.perturb", fmt::format("'{}' does not name a perturbation: {}", text, why), {},
              "write rounding or truncation, contraction and flush, joined by +, and a seed if you like: rounding+flush@7");
}

}  // namespace

Result<Perturbation> parsePerturbation(std::string_view text) {
  Perturbation perturbation;
  const size_t at = std::min(text.find('@'), text.size());
  if (at < text.size()) {
    const std::string_view digits = text.substr(at + 1);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), perturbation.seed);
    if (error != std::errc() || end != digits.end()) return bad(text, "after @ stands a whole number");
  }
  const std::string_view list = text.substr(0, at);
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find('+', start), list.size());
    const std::string_view name = list.substr(start, end - start);
    const auto* row = std::ranges::find(kRows, name, &Row::name);
    if (row == kRows.end()) return bad(text, fmt::format("there is no '{}'", name));
    perturbation.*row->member = true;
    start = end + 1;
  }
  if (perturbation.rounding && perturbation.truncation) return bad(text, "a result is rounded at random or truncated, not both");
  return perturbation;
}

std::unique_ptr<Backend> openPerturbed(const Perturbation& perturbation, uint32_t max_threads) {
  return makeReference({.max_threads = max_threads, .perturbation = perturbation});
}

}  // namespace lockstep
