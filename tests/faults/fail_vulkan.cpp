// SPDX-License-Identifier: Apache-2.0
// Stands in for libvulkan.so.1: passes every call on to the real loader, except that one call of one function fails, or all from one on.
//   LOCKSTEP_FAULT_LOADER  the path of the real loader
//   LOCKSTEP_FAULT_CALL    "vkQueueSubmit:2:-4": the second call answers VK_ERROR_DEVICE_LOST without doing anything; "2+": it and all
//   after
//                          it; "begun" at the end: the call is made and then said to have failed. "crash" and "hang" are results, too
//   LOCKSTEP_FAULT_REPORT  a file for how often each function was called
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>

// Every function with a VkResult that the backend calls: grep -rho 'vk[A-Z]\w*' backends/vulkan.
#define LOCKSTEP_CALLS(CALL)                   \
  CALL(vkCreateInstance)                       \
  CALL(vkEnumerateInstanceExtensionProperties) \
  CALL(vkEnumerateInstanceLayerProperties)     \
  CALL(vkEnumerateInstanceVersion)             \
  CALL(vkEnumeratePhysicalDevices)             \
  CALL(vkEnumerateDeviceExtensionProperties)   \
  CALL(vkCreateDebugUtilsMessengerEXT)         \
  CALL(vkCreateDevice)                         \
  CALL(vkCreateCommandPool)                    \
  CALL(vkAllocateCommandBuffers)               \
  CALL(vkBeginCommandBuffer)                   \
  CALL(vkEndCommandBuffer)                     \
  CALL(vkCreatePipelineCache)                  \
  CALL(vkGetPipelineCacheData)                 \
  CALL(vkCreateBuffer)                         \
  CALL(vkAllocateMemory)                       \
  CALL(vkBindBufferMemory)                     \
  CALL(vkMapMemory)                            \
  CALL(vkCreateFence)                          \
  CALL(vkResetFences)                          \
  CALL(vkGetFenceStatus)                       \
  CALL(vkWaitForFences)                        \
  CALL(vkQueueSubmit)                          \
  CALL(vkQueueWaitIdle)                        \
  CALL(vkDeviceWaitIdle)                       \
  CALL(vkCreateShaderModule)                   \
  CALL(vkCreateDescriptorSetLayout)            \
  CALL(vkCreatePipelineLayout)                 \
  CALL(vkCreateComputePipelines)               \
  CALL(vkCreateDescriptorPool)                 \
  CALL(vkAllocateDescriptorSets)               \
  CALL(vkCreateQueryPool)                      \
  CALL(vkGetQueryPoolResults)

namespace {

enum class Call : size_t {
#define CALL(name) name,
  LOCKSTEP_CALLS(CALL)
#undef CALL
      Count
};
constexpr size_t kCalls = static_cast<size_t>(Call::Count);
constexpr std::array<std::string_view, kCalls> kNames = {
#define CALL(name) #name,
    LOCKSTEP_CALLS(CALL)
#undef CALL
};

constexpr int kCrash = 1'000'000'001, kHang = 1'000'000'002;

struct Wish {
  size_t call = kCalls;
  uint64_t number = 0;
  bool all_after = false, begun = false;
  int result = 0;
};

Wish readWish() {
  Wish wish;
  const char* text = std::getenv("LOCKSTEP_FAULT_CALL");
  if (text == nullptr) return wish;
  const std::string_view all = text;
  const size_t colon = all.find(':');
  for (size_t i = 0; i < kCalls; ++i) {
    if (kNames[i] == all.substr(0, colon)) wish.call = i;
  }
  if (colon == std::string_view::npos || wish.call == kCalls) std::abort();
  char* rest = nullptr;
  wish.number = std::strtoull(text + colon + 1, &rest, 10);
  if (*rest == '+') {
    wish.all_after = true;
    ++rest;
  }
  if (*rest == ':') ++rest;
  const std::string_view result = rest;
  wish.result = result.starts_with("crash") ? kCrash : result.starts_with("hang") ? kHang : std::atoi(rest);
  wish.begun = result.ends_with(":begun");
  return wish;
}

const Wish& wish() {
  static const Wish read = readWish();
  return read;
}

std::array<std::atomic<uint64_t>, kCalls> counts;

/// A driver that fails may leave anything in what it should have made.
template <class T>
void poison(T* made) {
  constexpr uint64_t kNothing = 0xbad0bad0;
  if constexpr (std::is_pointer_v<T> || std::is_same_v<T, uint64_t>) *made = std::bit_cast<T>(kNothing);
}

template <Call C, class Function>
struct Stand;
template <Call C, class... Arguments>
struct Stand<C, VkResult(VKAPI_PTR*)(Arguments...)> {
  static inline VkResult(VKAPI_PTR* real)(Arguments...) = nullptr;

  static VkResult VKAPI_CALL call(Arguments... arguments) {
    constexpr auto kIndex = static_cast<size_t>(C);
    const uint64_t number = ++counts[kIndex];
    const bool fails = wish().call == kIndex && (number == wish().number || (wish().all_after && number > wish().number));
    if (!fails) return real(arguments...);
    if (wish().result == kCrash) ::raise(SIGSEGV);
    while (wish().result == kHang) ::pause();
    if (wish().begun || wish().result > 0) {  // VK_INCOMPLETE comes with a part of the answer
      const VkResult result = wish().result == VK_TIMEOUT || wish().result == VK_NOT_READY ? VK_SUCCESS : real(arguments...);
      return result < 0 ? result : static_cast<VkResult>(wish().result);
    }
    if constexpr (kNames[kIndex].starts_with("vkCreate") || C == Call::vkMapMemory || C == Call::vkAllocateMemory) {
      if constexpr (C == Call::vkCreateComputePipelines) {
        *std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)) = VK_NULL_HANDLE;  // as the specification has it
      } else {
        poison(std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)));
      }
    }
    return static_cast<VkResult>(wish().result);
  }
};

/// The function in the way of `real`, or `real`.
PFN_vkVoidFunction standFor(const char* name, PFN_vkVoidFunction real) {
  if (real == nullptr) return real;
#define CALL(function)                                        \
  if (std::strcmp(name, #function) == 0) {                    \
    using Here = Stand<Call::function, PFN_##function>;       \
    Here::real = reinterpret_cast<PFN_##function>(real);      \
    return reinterpret_cast<PFN_vkVoidFunction>(&Here::call); \
  }
  LOCKSTEP_CALLS(CALL)
#undef CALL
  return real;
}

PFN_vkGetDeviceProcAddr real_device_address = nullptr;

PFN_vkVoidFunction VKAPI_CALL deviceAddress(VkDevice device, const char* name) { return standFor(name, real_device_address(device, name)); }

PFN_vkGetInstanceProcAddr realInstanceAddress() {
  static const PFN_vkGetInstanceProcAddr real = [] {
    const char* path = std::getenv("LOCKSTEP_FAULT_LOADER");
    void* loader = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (loader == nullptr) std::abort();
    return reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(loader, "vkGetInstanceProcAddr"));
  }();
  return real;
}

__attribute__((destructor)) void report() {
  const char* path = std::getenv("LOCKSTEP_FAULT_REPORT");
  const int file = path == nullptr ? -1 : ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return;
  for (size_t i = 0; i < kCalls; ++i) {
    char line[100];
    const int length = std::snprintf(line, sizeof line, "%.*s %llu\n", static_cast<int>(kNames[i].size()), kNames[i].data(),
                                     static_cast<unsigned long long>(counts[i].load()));
    (void)!::write(file, line, static_cast<size_t>(length));
  }
  ::close(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                                                                      const char* name) {
  const PFN_vkVoidFunction real = realInstanceAddress()(instance, name);
  if (real == nullptr) return nullptr;
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&vkGetInstanceProcAddr);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    real_device_address = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(&deviceAddress);
  }
  return standFor(name, real);
}
