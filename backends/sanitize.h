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
  bool races = true;      ///< race.*
  bool memory = true;     ///< memory.*
  bool integers = true;   ///< integer.*
  bool floats = true;     ///< float.*
  bool loops = true;      ///< loop.*, order.*
  bool barriers = true;   ///< barrier.*
  bool subgroups = true;  ///< subgroup.*: of `lockstep run`, which runs the kernel with several sizes
  bool layouts = true;    ///< layout.*: buffers that the arrays in them do not fit, which `lockstep run` looks at
  bool wraps = false;     ///< integer.wrap of every sum, difference, product and shift; else of those that index an access
  /// float.cancellation, float.absorption, float.denormal, float.contraction, and Executable::bounds(). Several times slower than the rest.
  bool errors = true;
  friend bool operator==(const SanitizeChecks&, const SanitizeChecks&) = default;
};

struct SanitizeOptions {
  SanitizeChecks checks;
  /// Loop iterations times invocations (at least 64) after which a workgroup counts as endless: about a second.
  uint64_t loop_budget = uint64_t{1} << 30;
};

/// The reference with the sanitizer: what it finds in a submission is then in Executable::takeFindings(), and the run continues. An index
/// out of bounds becomes the last one, an endless loop ends its dispatch.
std::unique_ptr<Backend> openSanitizer(const SanitizeOptions& options);

/// A schedule that WGSL allows.
struct ScheduleOptions {
  uint64_t order_seed = 0;     ///< of workgroups, of invocations between barriers and of atomics; 0: in order, and all together
  uint32_t subgroup_size = 4;  ///< a power of two from 4 to 128
  uint64_t loop_budget = uint64_t{1} << 30;
};
/// The reference with another schedule. It reports nothing; indices out of bounds are for the kernel to clamp.
std::unique_ptr<Backend> openSchedule(const ScheduleOptions& options);

/// Their names: race, memory, integer, float, loop, barrier, subgroup, layout, wrap, error.
std::vector<std::string_view> sanitizeCheckNames();

/// Those of a list such as "race,memory". `all`, and an empty list, are all of them but `wrap`; `errors` says whether `error` is
/// among these.
/// code sanitize.check
Result<SanitizeChecks> parseSanitizeChecks(std::string_view list, bool errors);

}  // namespace lockstep
