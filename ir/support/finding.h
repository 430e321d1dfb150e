// SPDX-License-Identifier: Apache-2.0
// What a sanitizer says of a kernel that ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/diagnostic.h"

namespace lockstep {

/// One distinct fault, however often it happened. The diagnostic has the place, and in its notes the other places that belong to it: the
/// second access of a race, for example.
struct Finding {
  enum class Severity : uint8_t { Error, Warning };
  Severity severity = Severity::Error;
  Diagnostic diagnostic;
  uint64_t count = 1;
  std::string invocation;  ///< the first one that it happened to: "workgroup (0, 0, 0), local (5, 0, 0)"; may be empty
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// "error" or "warning"
std::string_view toString(Finding::Severity severity);
/// "k.wgsl:7:3: error: race.workgroup: message" with excerpts and notes, and how often.
std::string toString(const Finding& finding);
/// Drops findings whose line of `source` says "lockstep: allow(code)".
void dropAllowed(std::vector<Finding>& findings, std::string_view source);
/// Gives the places that lie in `file`, whose text is `source`, their excerpts.
void addExcerpts(std::vector<Finding>& findings, const std::string& file, std::string_view source);
/// Adds what `more` found to `all`: the same fault at the same places only raises its count.
void merge(std::vector<Finding>& all, std::vector<Finding> more);
/// "sanitizer: 2 errors, 1 warning"
std::string countsOf(const std::vector<Finding>& findings);
bool hasError(const std::vector<Finding>& findings);

}  // namespace lockstep
