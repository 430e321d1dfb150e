// SPDX-License-Identifier: Apache-2.0
// Private to the library: an open device that several programs share.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"
#include "runtime/fair_mutex.h"

namespace lockstep::detail {

/// Backends are not safe for concurrent calls, so whoever calls one holds `turn`; States and Execution do it themselves.
struct Device {
  ChosenDevice chosen;
  std::shared_ptr<Backend> backend;
  std::shared_ptr<Turn> turn;
  /// What the sanitizer has found since the device was opened; see ir/support/finding.h, merge().
  std::shared_ptr<std::vector<Finding>> findings = std::make_shared<std::vector<Finding>>();
};
/// `selector` as in chooseDevice(). Exit code NoDevice when nothing matches.
Result<Device> tryOpenDevice(const std::string& selector);
/// The same; throws Error.
Device openChosenDevice(const std::string& selector);

}  // namespace lockstep::detail
