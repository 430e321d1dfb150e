// SPDX-License-Identifier: Apache-2.0
// The answer to an unknown name: the known one that was probably meant, or all of them.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
inline size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before = previous;
    std::swap(previous, current);
  }
  return previous[b.size()];
}

/// The candidate that is nearest to `name`, or "" when none is within a third of its length, rounded up (a prefix counts as near).
template <class Range>
std::string nearestName(std::string_view name, const Range& candidates) {
  std::string best;
  size_t best_distance = (name.size() + 2) / 3 + 1;
  for (const auto& item : candidates) {
    const std::string_view candidate = item;
    size_t distance = editDistance(name, candidate);
    if (name.size() >= 2 && candidate.starts_with(name)) distance = std::min<size_t>(distance, 1);
    if (distance < best_distance) {
      best = std::string(candidate);
      best_distance = distance;
    }
  }
  return best;
}

/// "a, b, c", where `name` gives an item's text: a pointer to a member or a function; "" for no items.
template <class Range, class Name = std::identity>
std::string joinNames(const Range& items, Name name = {}) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += std::string_view(std::invoke(name, item));
  }
  return text;
}

/// A remedy: "did you mean 'sine'?", or "one of sine, addition" when nothing is near.
template <class Range>
std::string suggest(std::string_view name, const Range& candidates) {
  if (const std::string near = nearestName(name, candidates); !near.empty()) return "did you mean '" + near + "'?";
  constexpr size_t kMost = 40;
  std::vector<std::string> shown;
  size_t count = 0;
  for (const auto& item : candidates) {
    if (++count <= kMost) shown.emplace_back(item);
  }
  if (shown.empty()) return "";
  return "it is one of " + joinNames(shown) + (count > kMost ? " and " + std::to_string(count - kMost) + " more" : "");
}

}  // namespace lockstep
