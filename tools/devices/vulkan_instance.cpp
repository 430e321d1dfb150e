// SPDX-License-Identifier: Apache-2.0
// The only part of the tools that talks to Vulkan, and it does so in a process of its own.
#include <dlfcn.h>
#include <vulkan/vulkan_core.h>

#include "tools/devices/vulkan_probe.h"

namespace lockstep::tools {

InstanceOutcome createInstance(const std::string& loader) {
  using Kind = InstanceOutcome::Kind;
  void* handle = ::dlopen(loader.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {.kind = Kind::LoaderMissing};
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(handle, "vkGetInstanceProcAddr"));
  if (get == nullptr) return {.kind = Kind::NoEntryPoint};
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  if (create == nullptr) return {.kind = Kind::NoEntryPoint};
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "lockstep doctor";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  const VkResult result = create(&info, nullptr, &instance);
  if (result != VK_SUCCESS) return {.kind = Kind::InstanceFailed, .result = result};
  const auto enumerate = reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(get(instance, "vkEnumeratePhysicalDevices"));
  uint32_t count = 0;
  const VkResult counted = enumerate == nullptr ? VK_ERROR_INITIALIZATION_FAILED : enumerate(instance, &count, nullptr);
  if (counted != VK_SUCCESS) return {.kind = Kind::InstanceFailed, .result = counted};
  return {.kind = Kind::Done, .device_count = static_cast<int>(count)};
}

}  // namespace lockstep::tools
