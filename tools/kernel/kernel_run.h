// SPDX-License-Identifier: Apache-2.0
// What `lockstep run` binds and prints: values for the variables of a kernel, by group and binding.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/dispatch.h"
#include "backends/sanitize.h"
#include "backends/why.h"
#include "frontend/io/array.h"
#include "ir/kernel/guard_accesses.h"
#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::tools {

/// Group and binding of a variable.
struct Slot {
  uint32_t group = 0, binding = 0;
  friend auto operator<=>(const Slot&, const Slot&) = default;
};
std::string toString(Slot slot);  ///< "0.1"

/// "0.1", or "1" for group 0. code "run.bind".
Result<Slot> parseSlot(const std::string& text);

/// "64", "8,8", "4,4,2". Each at least 1. code "run.dispatch".
Result<std::array<uint32_t, 3>> parseGroups(const std::string& text);

/// Initial bytes of a variable of type `type` (sizes of runtime-sized arrays come from here):
///   FILE.npy | zeros | zeros:BYTES | uninit:BYTES (zeros, too) | iota:f32[N] | fill:f32[N]=V | fill:V | list:V,V,...
/// with f32, f16 (rounded), i32 or u32.
/// `zeros` and `fill:V` take the size from the type; `list` has a number for each scalar of it, in order. code "run.bind".
Result<Bytes> makeBytes(const std::string& spec, const kernel::Module& module, const kernel::GlobalVariable& variable);

/// The bytes of a variable as an array: its elements where it is an array of scalars or vectors, else u32 words.
io::Array toArray(const Bytes& bytes, const kernel::Module& module, const kernel::GlobalVariable& variable);

/// Whether toArray gives the values themselves.
bool isPlainArray(const kernel::Module& module, const kernel::GlobalVariable& variable);

struct KernelRun {
  kernel::Module module;
  std::string entry;  ///< empty: the only entry point
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::map<Slot, Bytes> bytes = {};  ///< one for each storage or uniform variable that the entry point uses
  std::string immediate = {};        ///< for makeBytes(): the value of the immediate variable that the entry point uses
  std::string device = "auto";
  std::set<Slot> unwritten = {};      ///< of `bytes`: memory that nobody has written, for the sanitizer
  std::map<Slot, Slot> aliases = {};  ///< variables that are bound to the buffer of another one
  size_t repeat = 0;                  ///< timed runs after the one whose results count
  /// Absent: what the device notices traps, elsewhere indices are clamped. Error "usage.value" for Trap on a device that notices nothing.
  std::optional<kernel::OutOfBounds> out_of_bounds = kernel::OutOfBounds::Clamp;
  /// Gets what the run printed, also when it fails later on; not called where the device does not say.
  std::function<void(Printed)> on_print = {};
  /// The device is the reference then; error "usage.device" for another one.
  std::optional<SanitizeOptions> sanitize = std::nullopt;
  int64_t schedules = 0;       ///< of `sanitize`: how many other schedules to compare with
  uint64_t schedule_seed = 1;  ///< of them
  /// A word of a binding that is to be explained, or a half of one that has f16.
  struct WhyTarget {
    Slot slot;
    uint64_t index = 0;  ///< see why()
  };
  std::optional<WhyTarget> why = std::nullopt;
};
struct KernelResult {
  std::map<Slot, Bytes> bytes;  ///< of the variables after the dispatch
  std::string device;           ///< as the driver calls it
  std::vector<double> seconds;  ///< of each repetition
  std::vector<Finding> findings = {};
  std::map<Slot, RoundingBounds> rounding = {};  ///< of the variables that it wrote, with SanitizeChecks::errors
  std::vector<RoundingBounds::Choice> unstable = {};
  std::vector<WhyLine> why = {};
};
/// Whether some function of the module prints.
bool hasPrint(const kernel::Module& module);

/// Runs it once, and then `repeat` times more for the clock. Codes run.entry, run.bind and those of validation and the device.
Result<KernelResult> runKernel(KernelRun run);

/// "0.4[303]": word 303 of a binding, or half 303. code "usage.value".
Result<KernelRun::WhyTarget> parseWhy(const std::string& text);

/// Where the kernel first stores to a variable, by an atomic or without; unknown where it does not.
Location storeTo(const kernel::Module& module, const kernel::GlobalVariable& variable);

/// The storage or uniform variable of a slot, or null.
const kernel::GlobalVariable* findVariable(const kernel::Module& module, Slot slot);

}  // namespace lockstep::tools
