// SPDX-License-Identifier: Apache-2.0
// The verb that this command starts itself with, to load drivers where a crash does no harm.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "backends/backend.h"
#include "tools/devices/bad_drivers.h"
#include "tools/devices/driver_child.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

std::string answerTo(Arguments question) {
  if (question.size() == 1 && question[0] == "devices") {
    const std::vector<DeviceInfo> devices = listDevices();
    const auto isVulkan = [](const DeviceInfo& device) { return device.kind != DeviceKind::Reference; };
    return answerText({.device_count = static_cast<int>(std::ranges::count_if(devices, isVulkan))});
  }
  if (question.size() == 2 && question[0] == "instance") return answerText(createInstance(question[1]));
  if (question.size() != 2 || question[0] != "library") return "";
  const bool loaded = ::dlopen(question[1].c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
  const char* reason = loaded ? nullptr : ::dlerror();
  return std::string("!") + (loaded ? "" : reason == nullptr ? "unknown reason" : reason) + "\n";
}

}  // namespace

Result<ExitCode> probeDriverVerb(Arguments arguments) {
  const Descriptor answer = becomeDriverChild();
  const std::string text = answerTo(arguments);
  (void)writeAll(answer.get(), std::as_bytes(std::span(text)));
  // No destructors: the driver may still have threads.
  ::_exit(static_cast<int>(text.empty() ? ExitCode::Usage : ExitCode::Ok));
}

}  // namespace lockstep::tools
