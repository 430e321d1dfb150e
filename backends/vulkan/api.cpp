// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep::vulkan {

namespace {

struct ResultName {
  VkResult result;
  std::string_view text;
};
constexpr ResultName kResultNames[] = {
    {VK_SUCCESS, "VK_SUCCESS"},
    {VK_NOT_READY, "VK_NOT_READY"},
    {VK_TIMEOUT, "VK_TIMEOUT"},
    {VK_INCOMPLETE, "VK_INCOMPLETE"},
    {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
    {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
    {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
    {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
    {VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
};

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

bool hasInstanceExtension(const char* name) {
  uint32_t count = 0;
  vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateInstanceExtensionProperties(nullptr, &count, extensions.data());
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

ExitCode exitCodeOf(VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST || result == VK_TIMEOUT) return ExitCode::DeviceLost;
  constexpr VkResult kMemory[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_MEMORY_MAP_FAILED,
                                  VK_ERROR_TOO_MANY_OBJECTS,   VK_ERROR_FRAGMENTED_POOL,      VK_ERROR_OUT_OF_POOL_MEMORY};
  if (std::ranges::find(kMemory, result) != std::end(kMemory)) return ExitCode::OutOfMemory;
  return ExitCode::NoDevice;
}

}  // namespace

std::string toString(VkResult result) {
  for (const ResultName& row : kResultNames) {
    if (row.result == result) return std::string(row.text);
  }
  return fmt::format("VkResult {}", static_cast<int>(result));
}

Status check(VkResult result, std::string_view call, std::string_view object) {
  if (result == VK_SUCCESS) return Success{};
  std::string what = object.empty() ? "" : fmt::format(" for {}", object);
  Failure failure = fail(fmt::format("vulkan.{}", call), fmt::format("{} answers {}{}", call, toString(result), what));
  failure.exit_code = exitCodeOf(result);
  if (result == VK_ERROR_DEVICE_LOST) {
    failure.diagnostics[0].remedy =
        "the driver gave the device up, often after a kernel that ran too long or used too much; start again, and try --device reference "
        "to find the kernel";
  }
  return failure;
}

Status loadVulkan() {
  // volk keeps the functions in globals; opening it again would only load the same library again.
  static std::mutex mutex;
  static bool loaded = false;
  std::lock_guard lock(mutex);
  if (!loaded) loaded = volkInitialize() == VK_SUCCESS;
  if (loaded) return Success{};
  Failure failure = fail("vulkan.no_loader", "the Vulkan loader libvulkan.so.1 is not installed", {},
                         "install it (Debian and Ubuntu: apt install libvulkan1 mesa-vulkan-drivers) or use --device reference");
  failure.exit_code = ExitCode::NoDevice;
  return failure;
}

bool hasValidationLayer() {
  uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  return std::any_of(layers.begin(), layers.end(),
                     [](const VkLayerProperties& layer) { return std::strcmp(layer.layerName, kValidationLayer) == 0; });
}

bool wantsValidationLayer() {
  const char* wish = std::getenv("LOCKSTEP_VALIDATION");
  return wish != nullptr && std::string_view(wish) == "1";
}

Result<std::shared_ptr<Instance>> Instance::acquire() {
  // One instance with the validation layer and one without, never destroyed: NVIDIA's driver, unloaded with its last instance, may refuse
  // the next one, and at exit the drivers' own statics may be gone before ours.
  static std::mutex mutex;
  static auto& open = *new std::array<std::shared_ptr<Instance>, 2>;
  std::lock_guard lock(mutex);
  bool validate = wantsValidationLayer();
  if (open[validate]) return open[validate];
  LS_CHECK(loadVulkan());
  auto instance = std::make_shared<Instance>();
  LS_CHECK(instance->open(validate));
  open[validate] = instance;
  return instance;
}

Status Instance::open(bool validate) {
  if (validate && !hasValidationLayer()) {
    return fail("vulkan.validation_layer", "LOCKSTEP_VALIDATION is set but the Khronos validation layer is not installed", {},
                "install it (Debian and Ubuntu: apt install vulkan-validationlayers) or unset LOCKSTEP_VALIDATION");
  }
  version_ = std::min(volkGetInstanceVersion(), VK_API_VERSION_1_3);
  if (version_ < VK_API_VERSION_1_1) {
    return fail("vulkan.old_loader", "the Vulkan loader offers only Vulkan 1.0", {}, "update the loader: Vulkan 1.1 is needed");
  }
  auto application = blank<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "lockstep";
  application.apiVersion = version_;
  std::vector<const char*> layers, extensions;
  auto info = blank<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  if (hasInstanceExtension(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  auto messenger = blank<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = &Instance::report;
  messenger.pUserData = this;
  if (validate) {
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    info.pNext = &messenger;
  }
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  Status created = check(vkCreateInstance(&info, nullptr, &handle_), "vkCreateInstance");
  if (!created) {
    handle_ = VK_NULL_HANDLE;
    Failure failure = created.failure();
    failure.diagnostics[0].remedy = "run `lockstep doctor`: it looks at the loader, the drivers and the devices";
    return failure;
  }
  volkLoadInstanceOnly(handle_);
  if (validate) {
    VkDebugUtilsMessengerEXT made = VK_NULL_HANDLE;
    LS_CHECK(check(vkCreateDebugUtilsMessengerEXT(handle_, &messenger, nullptr, &made), "vkCreateDebugUtilsMessengerEXT"));
    messenger_ = made;  // after a failure it may hold anything
  }
  return Success{};
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  if (handle_ != VK_NULL_HANDLE) vkDestroyInstance(handle_, nullptr);
}

VkBool32 VKAPI_CALL Instance::report(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                     const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto* instance = static_cast<Instance*>(user);
  std::lock_guard lock(instance->mutex_);
  instance->errors_.emplace_back(data->pMessage);
  return VK_FALSE;
}

std::vector<std::string> Instance::takeErrors() {
  std::lock_guard lock(mutex_);
  return std::exchange(errors_, {});
}

}  // namespace lockstep::vulkan
