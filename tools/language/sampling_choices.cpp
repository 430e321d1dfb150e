// SPDX-License-Identifier: Apache-2.0
#include "tools/language/sampling_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace lockstep::tools {
namespace {

/// Leaves the target where nothing was written.
template <class Number>
Status readNumber(const std::string& text, const char* flag, Number& target) {
  if (text.empty()) return Success{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target);
  if (error == std::errc() && end == text.data() + text.size()) return Success{};
  constexpr bool whole = std::is_integral_v<Number>;
  return console::usage("value", fmt::format("{} '{}' is not {}", flag, text, whole ? "a whole number" : "a number"));
}

}  // namespace

void SamplingChoices::addTo(console::Options& options) {
  options.value(temperature_, "--temperature", "logits are divided by it; 0 takes the likeliest token");
  options.value(top_k_, "--top-k", "only the K likeliest tokens; 0: all");
  options.value(top_p_, "--top-p", "only the likeliest tokens that have this probability together; 1: all");
  options.value(min_p_, "--min-p", "only tokens with this part of the largest probability; 0: all");
  options.value(penalty_, "--repetition-penalty", "makes tokens that were there less likely; 1: none");
  options.value(seed_, "--seed", "of the random numbers [0]; the same seed gives the same text");
  options.flag(greedy_, "--greedy", "take the likeliest token each time");
}

Result<llm::SamplingOptions> SamplingChoices::with(const llm::LanguageConfig& config) const {
  const bool sampled = !temperature_.empty() || !top_k_.empty() || !top_p_.empty() || !min_p_.empty();
  if (greedy_ && sampled)
    return console::usage("value", "--greedy does not go with --temperature, --top-k, --top-p or --min-p", "leave one of them out");
  LS_TRY(llm::SamplingOptions options, llm::samplingOf(config, sampled));
  if (greedy_) options.temperature = 0;
  LS_CHECK(readNumber(temperature_, "--temperature", options.temperature));
  LS_CHECK(readNumber(top_k_, "--top-k", options.top_k));
  LS_CHECK(readNumber(top_p_, "--top-p", options.top_p));
  LS_CHECK(readNumber(min_p_, "--min-p", options.min_p));
  LS_CHECK(readNumber(penalty_, "--repetition-penalty", options.repetition_penalty));
  LS_CHECK(readNumber(seed_, "--seed", options.seed));
  LS_CHECK(console::asUsage(options.check()));
  LS_TRY(const std::vector<std::string> others, llm::rulesNotApplied(config, options));
  if (!others.empty()) {
    fmt::print(stderr, "generation_config.json has {}, which {} not applied: transformers may choose other tokens\n",
               fmt::join(others, ", "), others.size() == 1 ? "is" : "are");
  }
  return options;
}

}  // namespace lockstep::tools
