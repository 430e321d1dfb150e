// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tools/devices/device_report.h"
#include "tools/verb.h"

namespace lockstep::tools {

Result<ExitCode> devicesVerb(Arguments arguments) {
  bool json = false;
  Options options("lockstep devices", "Lists every device, best first, and says which one 'auto' chooses.");
  options.flag(json, "--json", "a JSON list for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  const std::vector<DeviceInfo> devices = listDevices();
  if (json) {
    io::Json list = io::Json::array();
    for (const DeviceInfo& device : devices) list.add(deviceJson(device));
    fmt::print("{}\n", list.text());
    return ExitCode::Ok;
  }
  for (const DeviceInfo& device : devices) fmt::print("{}", deviceText(device));
  LS_TRY(const ChosenDevice chosen, chooseDevice("auto"));
  fmt::print("auto takes {}: {}\n", chosen.info.id, chosen.reason);
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
