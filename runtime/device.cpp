// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

namespace lockstep::detail {

Result<Device> tryOpenDevice(const std::string& selector) {
  LS_TRY(ChosenDevice chosen, chooseDevice(selector));
  LS_TRY(std::shared_ptr<Backend> backend, openDevice(chosen.info));
  return Device{.chosen = std::move(chosen), .backend = std::move(backend), .turn = std::make_shared<Turn>()};
}

Device openChosenDevice(const std::string& selector) { return tryOpenDevice(selector).orThrow(); }

}  // namespace lockstep::detail
