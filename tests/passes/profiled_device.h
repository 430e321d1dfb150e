// SPDX-License-Identifier: Apache-2.0
// A device that is planned for as if it were another one: what GPUs run is tested on CPU drivers.
#pragma once

#include <string>
#include <utility>

#include "runtime/device.h"

namespace lockstep {

inline detail::Device profiledDevice(const std::string& selector, program::DeviceProfile profile) {
  detail::Device device = detail::openChosenDevice(selector);
  device.chosen.info.profile = std::move(profile);
  return device;
}

/// Planned for as a portable GPU.
inline detail::Device portableDevice(const std::string& selector) {
  return profiledDevice(selector, program::findProfile("portable").orThrow());
}

}  // namespace lockstep
