// SPDX-License-Identifier: Apache-2.0
// Vulkan itself, for the files of this folder: checked calls, owned handles and the instance.
#pragma once

#include <volk.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::vulkan {

/// "VK_ERROR_DEVICE_LOST".
std::string toString(VkResult result);

/// Success, or a failure of code "vulkan.<call>" that names the object; a lost device and exhausted memory ask for their exit codes.
Status check(VkResult result, std::string_view call, std::string_view object = {});

/// A Vulkan structure of this type with everything else zero.
template <class Structure>
Structure blank(VkStructureType type) {
  Structure made{};
  made.sType = type;
  return made;
}

/// The instance, shared by all devices; it stays open until the process ends.
class Instance {
 public:
  Instance() = default;
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  /// Opens the loader and the instance, or gives the one that is open. LOCKSTEP_VALIDATION=1 asks for the one with the validation layer.
  static Result<std::shared_ptr<Instance>> acquire();

  [[nodiscard]] VkInstance handle() const { return handle_; }
  /// The version that was asked for: at most 1.3, at least 1.1.
  [[nodiscard]] uint32_t version() const { return version_; }
  /// The errors that the validation layer has reported since the last call.
  std::vector<std::string> takeErrors();

 private:
  Status open(bool validate);
  static VkBool32 VKAPI_CALL report(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                    const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  uint32_t version_ = 0;
  std::mutex mutex_;
  std::vector<std::string> errors_;
};

/// Opens libvulkan.so.1; fails with "vulkan.no_loader".
Status loadVulkan();
bool hasValidationLayer();
bool wantsValidationLayer();

/// The device's functions and handle: what an owned handle needs to go away. It outlives every handle (see Context).
struct Functions {
  VolkDeviceTable vk{};
  VkDevice device = VK_NULL_HANDLE;
  /// The device did not answer in time and may still use everything, so nothing of it is destroyed any more.
  bool abandoned = false;
};

/// A device object or memory that is destroyed with its owner. Every creation goes through `create`, which counts it.
template <class Handle, auto Create, auto Destroy>
class Owned {
 public:
  Owned() = default;
  Owned(const Functions& functions, Handle handle) : functions_(&functions), handle_(handle) {}
  Owned(Owned&& other) noexcept : functions_(other.functions_), handle_(std::exchange(other.handle_, VK_NULL_HANDLE)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != VK_NULL_HANDLE && !functions_->abandoned) (functions_->vk.*Destroy)(functions_->device, handle_, nullptr);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  template <class Info>
  static Result<Owned> create(const Functions& functions, uint64_t& counter, const Info& info, std::string_view call,
                              std::string_view object = {}) {
    Handle handle = VK_NULL_HANDLE;
    ++counter;
    LS_CHECK(check((functions.vk.*Create)(functions.device, &info, nullptr, &handle), call, object));
    return Owned(functions, handle);
  }
  [[nodiscard]] Handle get() const { return handle_; }
  [[nodiscard]] explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

 private:
  const Functions* functions_ = nullptr;
  Handle handle_ = VK_NULL_HANDLE;
};

using T = VolkDeviceTable;
using Buffer = Owned<VkBuffer, &T::vkCreateBuffer, &T::vkDestroyBuffer>;
using DeviceMemory = Owned<VkDeviceMemory, &T::vkAllocateMemory, &T::vkFreeMemory>;
using ShaderModule = Owned<VkShaderModule, &T::vkCreateShaderModule, &T::vkDestroyShaderModule>;
using SetLayout = Owned<VkDescriptorSetLayout, &T::vkCreateDescriptorSetLayout, &T::vkDestroyDescriptorSetLayout>;
using PipelineLayout = Owned<VkPipelineLayout, &T::vkCreatePipelineLayout, &T::vkDestroyPipelineLayout>;
using DescriptorPool = Owned<VkDescriptorPool, &T::vkCreateDescriptorPool, &T::vkDestroyDescriptorPool>;
using CommandPool = Owned<VkCommandPool, &T::vkCreateCommandPool, &T::vkDestroyCommandPool>;
using QueryPool = Owned<VkQueryPool, &T::vkCreateQueryPool, &T::vkDestroyQueryPool>;
using Fence = Owned<VkFence, &T::vkCreateFence, &T::vkDestroyFence>;
using PipelineCache = Owned<VkPipelineCache, &T::vkCreatePipelineCache, &T::vkDestroyPipelineCache>;
/// Made by vkCreateComputePipelines, whose arguments differ; only destroyed here.
using Pipeline = Owned<VkPipeline, nullptr, &T::vkDestroyPipeline>;

}  // namespace lockstep::vulkan
