// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "backends/vulkan/device.h"
#include "backends/vulkan/vulkan.h"

namespace lockstep {

namespace {

constexpr const char* kInstallDriver =
    "install a Vulkan driver: the GPU's own, or the software driver lavapipe (Debian and Ubuntu: apt install mesa-vulkan-drivers); in a "
    "container with an NVIDIA GPU set NVIDIA_DRIVER_CAPABILITIES=all";

/// The variables that replace the loader's search for driver manifests; the newer name wins.
constexpr const char* kOverrides[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};

VulkanCheck checkDrivers() {
  VulkanCheck made{.name = "drivers", .ok = false, .detail = {}, .remedy = {}};
  for (const char* variable : kOverrides) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    made.ok = true;
    made.detail = fmt::format("{}={}", variable, value);
    std::stringstream paths(value);
    for (std::string path; std::getline(paths, path, ':');) {
      std::error_code error;
      if (std::filesystem::exists(path, error)) continue;
      made.ok = false;
      made.remedy = fmt::format("{} names {}, which does not exist; correct the variable or unset it", variable, path);
    }
    return made;
  }
  std::vector<std::filesystem::path> folders{"/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
                                             "/usr/share/vulkan/icd.d"};
  if (const char* home = std::getenv("HOME")) folders.push_back(std::filesystem::path(home) / ".local/share/vulkan/icd.d");
  std::vector<std::string> manifests;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) manifests.push_back(entry.path().filename().string());
  }
  std::sort(manifests.begin(), manifests.end());
  made.ok = !manifests.empty();
  made.detail = manifests.empty() ? "no driver manifest in the usual folders" : fmt::format("{}", fmt::join(manifests, ", "));
  if (!made.ok) made.remedy = kInstallDriver;
  return made;
}

VulkanCheck failed(const char* name, const Failure& failure, std::string remedy) {
  const Diagnostic& first = failure.diagnostics.front();
  return {.name = name, .ok = false, .detail = first.message, .remedy = first.remedy.empty() ? std::move(remedy) : first.remedy};
}

}  // namespace

std::vector<VulkanCheck> diagnoseVulkan() {
  std::vector<VulkanCheck> checks;
  if (Status loaded = vulkan::loadVulkan(); !loaded) {
    checks.push_back(failed("loader", loaded.failure(), {}));
    return checks;
  }
  uint32_t version = volkGetInstanceVersion();
  checks.push_back({.name = "loader",
                    .ok = true,
                    .detail = fmt::format("Vulkan {}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                                          VK_API_VERSION_PATCH(version)),
                    .remedy = {}});
  checks.push_back(checkDrivers());
  auto instance = vulkan::Instance::acquire();
  if (!instance) {
    const std::string& driver_remedy = checks.back().remedy;
    VulkanCheck check = failed("instance", instance.failure(), kInstallDriver);
    bool no_driver = instance.diagnostics().front().code == "vulkan.vkCreateInstance";
    if (no_driver) check.remedy = driver_remedy.empty() ? kInstallDriver : driver_remedy;
    checks.push_back(std::move(check));
    return checks;
  }
  checks.push_back({.name = "instance", .ok = true, .detail = "created", .remedy = {}});
  auto devices = vulkan::findDevices(**instance);
  if (!devices) {
    checks.push_back(failed("devices", devices.failure(), kInstallDriver));
    return checks;
  }
  std::vector<std::string> names;
  bool usable = false;
  for (const vulkan::DeviceFacts& facts : *devices) {
    usable = usable || facts.info.usable;
    names.push_back(facts.info.usable ? facts.info.name : fmt::format("{} ({})", facts.info.name, facts.info.why_not));
  }
  checks.push_back({.name = "devices",
                    .ok = usable,
                    .detail = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                    .remedy = usable ? "" : kInstallDriver});
  bool layer = vulkan::hasValidationLayer();
  checks.push_back({.name = "validation layer",
                    .ok = true,
                    .detail = layer ? "installed" : "not installed (only needed to test Lockstep itself)",
                    .remedy = {}});
  return checks;
}

}  // namespace lockstep
