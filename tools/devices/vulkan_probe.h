// SPDX-License-Identifier: Apache-2.0
// Looks at the Vulkan installation from outside, one step after the other, without the Vulkan backend, so that each way in which it can
// be broken gets its own name and remedy. Drivers run in a child process: one that crashes or hangs is a finding, not our end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::tools {

enum class FindingState { Ok, Warning, Failure, Skipped };
std::string_view toString(FindingState state);  ///< "ok", "warning", "failure", "skipped"

/// One check of the doctor.
struct Finding {
  std::string check;  ///< stable name for scripts: "vulkan.loader"
  FindingState state = FindingState::Ok;
  std::string message = {};
  std::string remedy = {};  ///< empty when there is nothing to do
  /// Of vulkan.instance, where some drivers cannot be loaded without harm: VK_DRIVER_FILES with the others; empty when there is no other.
  std::string good_drivers = {};
};

/// Where the probe looks, and how; tests point it elsewhere.
struct ProbePaths {
  std::string command = {};  ///< of the tool, for processes that load drivers
  int timeout_seconds = 30;  ///< of such a process
  std::string loader = "libvulkan.so.1";
  std::vector<std::filesystem::path> manifest_directories;  ///< with the drivers' JSON files
  std::vector<std::filesystem::path> layer_directories;     ///< with the layers' JSON files
  std::filesystem::path render_nodes = "/dev/dri";
  std::filesystem::path nvidia_kernel = "/proc/driver/nvidia/version";
  /// The system's places and what the environment says about them.
  static ProbePaths system();
};

/// The checks vulkan.build, .loader, .drivers, .nodes, .nvidia, .instance, .devices, .layers in this order; those that cannot run because
/// an earlier one failed are Skipped.
std::vector<Finding> probeVulkan(const ProbePaths& paths);

/// The manifests of the drivers that the loader will load.
std::vector<std::filesystem::path> driverManifests(const ProbePaths& paths);

/// What creating an instance and counting devices gave.
struct InstanceOutcome {
  enum class Kind { Done, LoaderMissing, NoEntryPoint, InstanceFailed, Crashed, TimedOut, SystemFailed } kind = Kind::Done;
  int result = 0;        ///< VkResult of vkCreateInstance, or the signal of a crash, 0 where the process ended in another way
  int device_count = 0;  ///< Done only
};
/// In this process.
InstanceOutcome createInstance(const std::string& loader);

}  // namespace lockstep::tools
