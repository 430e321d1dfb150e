// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <limits>

#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

std::string pcre2Message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return {buffer.begin(), std::ranges::find(buffer, PCRE2_UCHAR{0})};
}

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern, const std::string& file) {
  const std::string what = fmt::format("the regular expression '{}'", pattern);
  Result<std::string> translated = toPcre2(pattern);
  if (!translated) return fail("tokenizer.regex", fmt::format("{} {}", what, translated.diagnostics()[0].message), {.file = file});
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(pcre2_compile_context_create(nullptr),
                                                                                              pcre2_compile_context_free);
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // In Ruby's syntax ^ and $ are those of lines.
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  if (code == nullptr) {
    return fail("tokenizer.regex",
                fmt::format("{} does not compile: {}, after '{}'", what, pcre2Message(error), translated->substr(0, offset)),
                {.file = file});
  }
  Regex regex;
  regex.code_ = std::shared_ptr<void>(code, [](void* pointer) { pcre2_code_free(static_cast<pcre2_code*>(pointer)); });
  regex.pattern_ = pattern;
  return regex;
}

Result<std::vector<Match>> Regex::matches(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create_from_pattern(code, nullptr),
                                                                                 pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(pcre2_match_context_create(nullptr),
                                                                                          pcre2_match_context_free);
  if (data == nullptr || context == nullptr) throw std::bad_alloc();
  // A run of white space is walked back once, so an honest pattern takes a few steps a byte.
  constexpr uint64_t kLeastLimit = 10'000'000, kStepsPerByte = 8;
  constexpr uint32_t kMostKibibytes = 1U << 20;
  const uint64_t limit = std::max<uint64_t>(kLeastLimit, kStepsPerByte * text.size());
  pcre2_set_match_limit(context.get(), static_cast<uint32_t>(std::min<uint64_t>(limit, std::numeric_limits<uint32_t>::max())));
  pcre2_set_heap_limit(context.get(), kMostKibibytes);

  std::vector<Match> found;
  for (size_t from = 0; from <= text.size();) {
    const int status =
        pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (status == PCRE2_ERROR_NOMATCH) break;
    if (status < 0) {
      return fail("tokenizer.regex",
                  fmt::format("the regular expression '{}' fails at byte {} of a text: {}", pattern_, from, pcre2Message(status)), {},
                  "the text is unusual for this tokenizer; split it");
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
    const Match match{.begin = offsets[0], .end = std::max(offsets[0], offsets[1])};
    const bool repeats = match.begin == match.end && !found.empty() && found.back().end == match.end;
    if (!repeats) found.push_back(match);
    from = match.end;
    if (match.begin == match.end) from += from < text.size() ? utf8Length(text[from]) : 1;
  }
  return found;
}

}  // namespace lockstep::text
