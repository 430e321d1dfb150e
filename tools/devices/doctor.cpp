// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tools/devices/bad_drivers.h"
#include "tools/devices/device_report.h"
#include "tools/devices/vulkan_probe.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

Finding judgeDevices(const std::vector<DeviceInfo>& devices) {
  Finding finding{.check = "devices"};
  const auto isVulkan = [](const DeviceInfo& device) { return device.kind != DeviceKind::Reference; };
  const auto best = std::ranges::find_if(devices, [&](const DeviceInfo& device) { return isVulkan(device) && device.usable; });
  if (best != devices.end()) {
    finding.message = fmt::format("{} is usable", best->name);
    if (best->kind == DeviceKind::CpuDriver) {
      finding.message += "; it is a driver for the CPU, no GPU was found";
      finding.state = FindingState::Warning;
      finding.remedy = "if this machine has a GPU, install its Vulkan driver";
    }
    return finding;
  }
  const auto rejected = std::ranges::find_if(devices, isVulkan);
  finding.state = FindingState::Failure;
  if (rejected != devices.end()) {
    finding.message = fmt::format("{} cannot be used: {}", rejected->name, rejected->why_not);
    finding.remedy = "update its driver; until then everything runs on the device 'reference'";
  } else {
    finding.message = "no Vulkan device was found, everything runs on the device 'reference'";
    finding.remedy = "see the checks above";
  }
  return finding;
}

/// The keys of a device, so that a script may read the whole list in one way.
io::Json findingJson(const Finding& finding) {
  const bool bad = finding.state == FindingState::Failure;
  return io::Json::object()
      .add("id", finding.check)
      .add("name", finding.message)
      .add("kind", "check")
      .add("state", toString(finding.state))
      .add("driver", "")
      .add("limits", io::Json::object())
      .add("usable", !bad)
      .add("why_not", bad ? io::Json(finding.message) : io::Json())
      .add("remedy", finding.remedy);
}

}  // namespace

Result<ExitCode> doctorVerb(Arguments arguments) {
  bool json = false;
  Options options("lockstep doctor", "Checks the Vulkan installation step by step and says what to do; works without Vulkan.");
  options.flag(json, "--json", "a JSON list for scripts: the checks (kind \"check\"), then the devices");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  ProbePaths paths = ProbePaths::system();
  LS_TRY(const int seconds, driverTimeout());
  if (seconds != 0) paths.timeout_seconds = seconds;
  std::vector<Finding> findings = probeVulkan(paths);
  // A driver that crashes or hangs in the probe would take us with it, so only the others are loaded.
  const auto instance = std::ranges::find(findings, "vulkan.instance", &Finding::check);
  const bool failed = instance != findings.end() && instance->state == FindingState::Failure;
  const bool safe = !failed || !instance->good_drivers.empty();
  if (failed && safe) {
    for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) ::setenv(variable, instance->good_drivers.c_str(), 1);
  }
  const std::vector<DeviceInfo> devices = safe ? listDevices() : std::vector<DeviceInfo>{};
  findings.push_back(judgeDevices(devices));
  const bool healthy = std::ranges::none_of(findings, [](const Finding& finding) { return finding.state == FindingState::Failure; });

  if (json) {
    io::Json list = io::Json::array();
    for (const Finding& finding : findings) list.add(findingJson(finding));
    for (const DeviceInfo& device : devices) list.add(deviceJson(device));
    fmt::print("{}\n", list.text());
  } else {
    for (const Finding& finding : findings) {
      fmt::print("{:<8} {:<16} {}\n", toString(finding.state), finding.check, finding.message);
      if (!finding.remedy.empty()) fmt::print("{:<25} help: {}\n", "", finding.remedy);
    }
    fmt::print("\n");
    for (const DeviceInfo& device : devices) fmt::print("{}", deviceText(device));
  }
  return healthy ? ExitCode::Ok : ExitCode::NoDevice;
}

}  // namespace lockstep::tools
