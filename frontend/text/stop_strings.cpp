// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace lockstep::text {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase_if(strings_, [](const std::string& one) { return one.empty(); });
}

std::string StopStrings::push(std::string_view piece) {
  if (ended_) return "";
  held_ += piece;
  // Where the first string begins, or else where one may begin.
  size_t begin = std::string::npos;
  for (const std::string& one : strings_) begin = std::min(begin, held_.find(one));
  ended_ = begin != std::string::npos;
  if (!ended_) {
    const auto may_begin = [&](size_t at) {
      const std::string_view rest = std::string_view(held_).substr(at);
      return std::ranges::any_of(strings_, [&](const std::string& one) { return one.starts_with(rest); });
    };
    size_t longest = 0;
    for (const std::string& one : strings_) longest = std::max(longest, one.size());
    begin = held_.size() - std::min(held_.size(), longest);
    while (begin < held_.size() && !may_begin(begin)) ++begin;
  }
  std::string known = held_.substr(0, begin);
  held_.erase(0, ended_ ? held_.size() : begin);
  return known;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace lockstep::text
