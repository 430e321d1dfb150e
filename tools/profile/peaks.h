// SPDX-License-Identifier: Apache-2.0
// What a device can do at best, measured once and kept in a file.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct Peaks {
  double bytes_per_second = 0;        ///< read and written by an element kernel over large arrays
  double operations_per_second = 0;   ///< f32, a fused multiply-add counted as two
  double dispatch_seconds = 0;        ///< an empty dispatch among others of its level, in a plain step
  double barrier_seconds = 0;         ///< more for a level of its own
  double timed_dispatch_seconds = 0;  ///< an empty dispatch in a timed step, where each is a level and has a timestamp
  friend bool operator==(const Peaks&, const Peaks&) = default;
};

std::string peaksJson(const Peaks& peaks);
/// Nothing when a number is missing or not above zero (a barrier may take no time).
std::optional<Peaks> parsePeaks(const std::string& text);

/// Runs small kernels for about two seconds.
Result<Peaks> measurePeaks(Backend& backend);

/// peaks-DEVICE-DRIVER.json in LOCKSTEP_CACHE_DIR, else in lockstep/ of XDG_CACHE_HOME or of ~/.cache; empty when there is no such folder.
std::filesystem::path peaksFile(const DeviceInfo& device);

struct KnownPeaks {
  Peaks peaks;
  bool measured = false;                 ///< now, not read
  std::optional<Failure> not_kept = {};  ///< why the file could not be written; the peaks are good all the same
};
/// Reads the file; measures and writes it when it is missing or damaged, or when it shall be measured again.
Result<KnownPeaks> knownPeaks(const std::filesystem::path& file, bool remeasure, const std::function<Result<Peaks>()>& measure);

}  // namespace lockstep::tools
