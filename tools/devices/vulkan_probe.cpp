// SPDX-License-Identifier: Apache-2.0
#include "tools/devices/vulkan_probe.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "frontend/io/file.h"
#include "tools/devices/bad_drivers.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> splitPaths(const std::string& text) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find(':', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

/// The directories in which the loader searches, in its order; `leaf` is "icd.d" or "explicit_layer.d".
std::vector<fs::path> searchDirectories(std::string_view leaf) {
  std::vector<fs::path> directories;
  const auto addAll = [&](const std::string& roots) {
    for (const std::string& root : splitPaths(roots)) directories.push_back(fs::path(root) / "vulkan" / leaf);
  };
  const std::string home = environment("HOME");
  const auto orElse = [](const std::string& value, const std::string& fallback) { return value.empty() ? fallback : value; };
  if (!home.empty()) addAll(orElse(environment("XDG_CONFIG_HOME"), home + "/.config"));
  addAll(orElse(environment("XDG_CONFIG_DIRS"), "/etc/xdg"));
  addAll("/etc:/usr/local/etc");
  if (!home.empty()) addAll(orElse(environment("XDG_DATA_HOME"), home + "/.local/share"));
  addAll(orElse(environment("XDG_DATA_DIRS"), "/usr/local/share:/usr/share"));
  return directories;
}

std::vector<fs::path> manifestsIn(const std::vector<fs::path>& directories) {
  std::vector<fs::path> files;
  for (const fs::path& directory : directories) {
    for (fs::path& path : io::entriesOf(directory)) {
      if (path.extension() == ".json") files.push_back(std::move(path));
    }
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

/// Empty when a driver's manifest is in order; else what is wrong with it.
std::string manifestProblem(const ProbePaths& paths, const fs::path& path) {
  const auto text = io::readTextFile(path);
  if (!text.ok()) return text.diagnostics().front().message;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return fmt::format("'{}' is not JSON", path.string());
  const auto icd = json.find("ICD");
  if (icd == json.end() || !icd->is_object() || !icd->contains("library_path") || !(*icd)["library_path"].is_string()) {
    return fmt::format("'{}' names no library_path", path.string());
  }
  std::string library = (*icd)["library_path"].get<std::string>();
  // A path with a slash is relative to the manifest; a bare name is searched by the dynamic linker.
  if (library.find('/') != std::string::npos && library.front() != '/') library = (path.parent_path() / library).string();
  const std::string problem = loadingProblem(paths, library);
  return problem.empty() ? "" : fmt::format("the driver of '{}' cannot be loaded: {}", path.filename().string(), problem);
}

Finding checkLoader(const ProbePaths& paths) {
  void* handle = ::dlopen(paths.loader.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) {
    ::dlclose(handle);
    return {.check = "vulkan.loader", .state = FindingState::Ok, .message = paths.loader + " is there"};
  }
  const char* reason = ::dlerror();
  return {.check = "vulkan.loader",
          .state = FindingState::Failure,
          .message = fmt::format("there is no Vulkan loader: {}", reason == nullptr ? paths.loader : reason),
          .remedy = "install it (Debian: apt-get install libvulkan1); until then everything runs on the device 'reference'"};
}

Finding checkDrivers(const ProbePaths& paths) {
  Finding finding{.check = "vulkan.drivers"};
  std::error_code ignored;
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    for (const std::string& file : splitPaths(environment(variable))) {
      if (fs::exists(file, ignored)) continue;
      finding.state = FindingState::Failure;
      finding.message = fmt::format("{} names '{}', which does not exist", variable, file);
      finding.remedy = fmt::format("unset {} or correct it", variable);
      return finding;
    }
  }
  const std::vector<fs::path> manifests = driverManifests(paths);
  if (manifests.empty()) {
    finding.state = FindingState::Failure;
    finding.message = "no Vulkan driver is installed: no manifest in any icd.d folder";
    finding.remedy = "install the driver of your GPU, or mesa-vulkan-drivers, which also has a driver for the CPU";
    return finding;
  }
  std::vector<std::string> problems, names;
  for (const fs::path& manifest : manifests) {
    const std::string problem = manifestProblem(paths, manifest);
    if (problem.empty()) {
      names.push_back(manifest.stem().string());
    } else {
      problems.push_back(problem);
    }
  }
  if (names.empty()) {
    finding.state = FindingState::Failure;
    finding.message = "no installed driver can be loaded: " + problems.front();
    finding.remedy = "install the driver's package again, or the library that it misses";
  } else if (!problems.empty()) {
    finding.state = FindingState::Warning;
    finding.message = fmt::format("{} of {} drivers cannot be loaded: {}", problems.size(), manifests.size(), fmt::join(problems, "; "));
    finding.remedy = "harmless unless it is the driver of the GPU that you want; if so, install its package again";
  } else {
    finding.message = fmt::format("drivers: {}", fmt::join(names, ", "));
  }
  for (const char* variable : {"VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"}) {
    if (!environment(variable).empty() && finding.state == FindingState::Ok) {
      finding.state = FindingState::Warning;
      finding.message += fmt::format("; {} is set and hides some", variable);
      finding.remedy = fmt::format("unset {} to see every driver", variable);
    }
  }
  return finding;
}

Finding checkNodes(const ProbePaths& paths) {
  Finding finding{.check = "vulkan.nodes"};
  std::vector<fs::path> nodes = io::entriesOf(paths.render_nodes);
  std::erase_if(nodes, [](const fs::path& path) { return !path.filename().string().starts_with("renderD"); });
  if (nodes.empty()) {
    finding.message = "there is no render node, so no GPU of the Mesa drivers; a CPU driver needs none";
    return finding;
  }
  for (const fs::path& node : nodes) {
    if (::access(node.c_str(), R_OK | W_OK) == 0) continue;
    finding.state = FindingState::Warning;
    finding.message = fmt::format("this user may not open {}, so the GPU behind it is invisible", node.string());
    finding.remedy = "add the user to the group render and log in again (sudo usermod -aG render $USER); in a container pass the device";
    return finding;
  }
  finding.message = fmt::format("{} render node{} may be opened", nodes.size(), nodes.size() == 1 ? "" : "s");
  return finding;
}

Finding checkNvidia(const ProbePaths& paths) {
  Finding finding{.check = "vulkan.nvidia"};
  std::error_code ignored;
  if (!fs::exists(paths.nvidia_kernel, ignored)) {
    finding.message = "no NVIDIA kernel driver is loaded";
    return finding;
  }
  for (const fs::path& manifest : manifestsIn(paths.manifest_directories)) {
    if (manifest.filename().string().find("nvidia") == std::string::npos) continue;
    finding.message = "the NVIDIA kernel driver is loaded and its Vulkan driver is installed";
    return finding;
  }
  finding.state = FindingState::Warning;
  finding.message = "the NVIDIA kernel driver is loaded but its Vulkan driver is not installed";
  finding.remedy =
      "install the package of the same version with nvidia_icd.json (Debian: nvidia-vulkan-icd); in a container start it with "
      "NVIDIA_DRIVER_CAPABILITIES=all";
  return finding;
}

std::string vulkanResultName(int result) {
  switch (result) {
    case -1:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case -3:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case -6:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case -7:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case -9:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    default:
      return fmt::format("VkResult {}", result);
  }
}

Finding explainInstance(const InstanceOutcome& outcome) {
  using Kind = InstanceOutcome::Kind;
  Finding finding{.check = "vulkan.instance", .state = FindingState::Failure};
  switch (outcome.kind) {
    case Kind::Done:
      finding.state = FindingState::Ok;
      finding.message = "an instance can be made";
      break;
    case Kind::LoaderMissing:
    case Kind::NoEntryPoint:
      finding.message = "the Vulkan loader has no vkGetInstanceProcAddr";
      finding.remedy = "install the loader again (Debian: apt-get install --reinstall libvulkan1)";
      break;
    case Kind::InstanceFailed:
      finding.message = fmt::format("vkCreateInstance fails with {}", vulkanResultName(outcome.result));
      finding.remedy = outcome.result == -9   ? "no driver works with this machine: see vulkan.drivers, or install mesa-vulkan-drivers"
                       : outcome.result == -6 ? "unset VK_INSTANCE_LAYERS or install the layer that it names"
                                              : "run with VK_LOADER_DEBUG=error to see what the loader says";
      break;
    case Kind::Crashed:
      finding.message = fmt::format("a driver {} while it was being loaded", harmOf(outcome));
      finding.remedy = "update or remove that driver; VK_LOADER_DEBUG=driver names it, VK_DRIVER_FILES selects another";
      break;
    case Kind::TimedOut:
      finding.message = fmt::format("a driver {} while it was being loaded", harmOf(outcome));
      finding.remedy = "restart the machine or select another driver with VK_DRIVER_FILES";
      break;
    case Kind::SystemFailed:
      finding.state = FindingState::Warning;
      finding.message = "the check could not be started";
      break;
  }
  return finding;
}

/// A driver that crashes or hangs takes every program with it that loads all drivers, so it gets a name and the others a chance.
void nameBadDrivers(const ProbePaths& paths, Finding& finding, InstanceOutcome& outcome) {
  if (!isHarmful(outcome)) return;
  const BadDrivers found = findBadDrivers(paths, {"instance", paths.loader});
  if (found.bad.empty()) return;
  std::vector<std::string> names;
  for (const BadDriver& driver : found.bad) names.push_back(driver.manifest.filename().string());
  finding.message += fmt::format(": {}", fmt::join(names, ", "));
  if (found.others.empty()) return;
  finding.good_drivers = found.others;
  finding.remedy = fmt::format("update or remove that driver; until then leave it out: export VK_DRIVER_FILES={}", finding.good_drivers);
  outcome = {.kind = InstanceOutcome::Kind::Done, .device_count = found.device_count};
}

Finding checkLayers(const ProbePaths& paths) {
  for (const fs::path& manifest : manifestsIn(paths.layer_directories)) {
    if (manifest.filename().string().find("khronos_validation") != std::string::npos) {
      return {.check = "vulkan.layers", .state = FindingState::Ok, .message = "the validation layer is installed"};
    }
  }
  return {.check = "vulkan.layers",
          .state = FindingState::Ok,
          .message = "the validation layer is not installed; only the tests use it",
          .remedy = "apt-get install vulkan-validationlayers"};
}

}  // namespace

std::vector<fs::path> driverManifests(const ProbePaths& paths) {
  std::vector<fs::path> manifests;
  std::error_code ignored;
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    if (!manifests.empty()) break;
    for (const std::string& file : splitPaths(environment(variable))) {
      // An entry may be a folder of manifests, as for the loader.
      if (fs::is_directory(file, ignored)) {
        std::ranges::copy(manifestsIn({file}), std::back_inserter(manifests));
      } else {
        manifests.emplace_back(file);
      }
    }
  }
  return manifests.empty() ? manifestsIn(paths.manifest_directories) : manifests;
}

std::string_view toString(FindingState state) {
  switch (state) {
    case FindingState::Ok:
      return "ok";
    case FindingState::Warning:
      return "warning";
    case FindingState::Failure:
      return "failure";
    case FindingState::Skipped:
      return "skipped";
  }
  return "";
}

ProbePaths ProbePaths::system() {
  ProbePaths paths;
  paths.command = "/proc/self/exe";
  paths.manifest_directories = searchDirectories("icd.d");
  paths.layer_directories = searchDirectories("explicit_layer.d");
  return paths;
}

std::vector<Finding> probeVulkan(const ProbePaths& paths) {
  std::vector<Finding> findings;
#if LOCKSTEP_HAS_VULKAN
  findings.push_back({.check = "vulkan.build", .state = FindingState::Ok, .message = "the Vulkan backend is built in"});
#else
  findings.push_back({.check = "vulkan.build",
                      .state = FindingState::Failure,
                      .message = "this lockstep was built without the Vulkan backend",
                      .remedy = "configure with -DLOCKSTEP_VULKAN=ON (the preset dev does)"});
#endif
  findings.push_back(checkLoader(paths));
  const bool has_loader = findings.back().state == FindingState::Ok;
  findings.push_back(checkDrivers(paths));
  const bool has_driver = findings.back().state != FindingState::Failure;
  findings.push_back(checkNodes(paths));
  findings.push_back(checkNvidia(paths));
  if (!has_loader || !has_driver) {
    const std::string why = has_loader ? "there is no driver to ask" : "there is no loader to ask";
    findings.push_back({.check = "vulkan.instance", .state = FindingState::Skipped, .message = why});
    findings.push_back({.check = "vulkan.devices", .state = FindingState::Skipped, .message = why});
  } else {
    InstanceOutcome outcome = askDrivers(paths, {"instance", paths.loader});
    findings.push_back(explainInstance(outcome));
    nameBadDrivers(paths, findings.back(), outcome);
    Finding devices{.check = "vulkan.devices"};
    if (outcome.kind != InstanceOutcome::Kind::Done) {
      devices.state = FindingState::Skipped;
      devices.message = "there is no instance to ask";
    } else if (outcome.device_count == 0) {
      devices.state = FindingState::Failure;
      devices.message = "the drivers see no device";
      devices.remedy =
          "check the permissions of /dev/dri and that the GPU's kernel driver is loaded, or install mesa-vulkan-drivers for the CPU";
    } else {
      devices.message = fmt::format("the drivers see {} device{}", outcome.device_count, outcome.device_count == 1 ? "" : "s");
    }
    findings.push_back(devices);
  }
  findings.push_back(checkLayers(paths));
  return findings;
}

}  // namespace lockstep::tools
