// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"

namespace lockstep::bench {

/// The devices that are named, else all that can be used.
inline std::vector<std::string> chosenDevices(std::vector<std::string> named) {
  if (!named.empty()) return named;
  for (const DeviceInfo& device : listDevices()) {
    if (device.usable) named.push_back(device.id);
  }
  return named;
}

}  // namespace lockstep::bench
