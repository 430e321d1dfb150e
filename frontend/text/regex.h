// SPDX-License-Identifier: Apache-2.0
// The regular expressions of tokenizer.json. They are written for Oniguruma with Ruby's syntax, which Hugging Face uses; PCRE2 runs them,
// after what the two mean differently has been rewritten. What cannot be rewritten is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::text {

struct Match {
  size_t begin = 0, end = 0;  ///< in bytes
  friend bool operator==(const Match&, const Match&) = default;
};

class Regex {
 public:
  /// code "tokenizer.regex"
  static Result<Regex> compile(std::string_view pattern, const std::string& file);
  /// The matches from left to right, none of which overlap. `text` is UTF-8. A match that takes more steps than a limit, which grows with
  /// the text, is an error: code "tokenizer.regex".
  [[nodiscard]] Result<std::vector<Match>> matches(std::string_view text) const;

 private:
  std::shared_ptr<void> code_;
  std::string pattern_;
};

/// The pattern as PCRE2 wants it. Failures have no place: code "tokenizer.regex".
Result<std::string> toPcre2(std::string_view pattern);

}  // namespace lockstep::text
