// SPDX-License-Identifier: Apache-2.0
// What the sanitizer of the reference looks for. Its findings come from Executable::takeFindings().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "ir/support/result.h"

namespace lockstep {

/// Kinds of checks, by the first word of their codes. docs/sanitizer.md has every code.
struct SanitizeChecks {
  bool races = true;     ///< race.*
  bool memory = true;    ///< memory.*
  bool integers = true;  ///< integer.*
  bool floats = true;    ///< float.*
  bool loops = true;     ///< loop.*, order.*
  bool barriers = true;  ///< barrier.*
  friend bool operator==(const SanitizeChecks&, const SanitizeChecks&) = default;
};

struct SanitizeOptions {
  SanitizeChecks checks;
  /// Loop iterations times invocations (at least 64) after which a workgroup counts as endless: about a second.
  uint64_t loop_budget = uint64_t{1} << 30;
};

/// The reference with the sanitizer: what it finds in a submission is then in Executable::takeFindings(), and the run goes on. An index out
/// of bounds becomes the last one, an endless loop ends its dispatch.
std::unique_ptr<Backend> openSanitizer(const SanitizeOptions& options);

/// Their names: race, memory, integer, float, loop, barrier.
std::vector<std::string_view> sanitizeCheckNames();

/// Those of a list such as "race,memory"; all for an empty text. code sanitize.check
Result<SanitizeChecks> parseSanitizeChecks(std::string_view list);

}  // namespace lockstep
