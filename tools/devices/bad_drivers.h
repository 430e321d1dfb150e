// SPDX-License-Identifier: Apache-2.0
// Which Vulkan drivers crash or hang while they are loaded, and how to do without them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "tools/devices/vulkan_probe.h"

namespace lockstep::tools {

/// What drivers answer in a process of their own: to {"instance", LOADER} how createInstance() ended, to {"devices"} how many Vulkan
/// devices listDevices() has. With `manifest` there is no other driver than its one.
using Question = std::vector<std::string>;
InstanceOutcome askDrivers(const ProbePaths& paths, const Question& question, const std::filesystem::path& manifest = {});
/// What such a process writes.
std::string answerText(const InstanceOutcome& outcome);

/// Whether this process would have crashed or hung.
bool isHarmful(const InstanceOutcome& outcome);
/// "crashed with signal 11", "did not answer in time".
std::string harmOf(const InstanceOutcome& outcome);

struct BadDriver {
  std::filesystem::path manifest;
  InstanceOutcome outcome;
};
struct BadDrivers {
  std::vector<BadDriver> bad;
  std::string others;    ///< those with devices, as VK_DRIVER_FILES takes them
  int device_count = 0;  ///< of the others
};
/// Asks each driver alone, all at the same time.
BadDrivers findBadDrivers(const ProbePaths& paths, const Question& question);

/// Why a library cannot be loaded; empty when it can. Another process tries it, because loading runs code of the library.
std::string loadingProblem(const ProbePaths& paths, const std::string& library);

/// Seconds for each of two rounds: LOCKSTEP_DRIVER_TIMEOUT, or 30. 0: drivers are not tried.
Result<int> driverTimeout();
/// To be asked before this process loads drivers: what `paths` says of them in another one. Where some crash or hang, it says so on stderr
/// and leaves them out of this process. Code "vulkan.bad_driver" when no other is left.
Status leaveOutBadDrivers();

}  // namespace lockstep::tools
