// SPDX-License-Identifier: Apache-2.0
// Where the Vulkan loader is that the stand-in passes calls on to.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace lockstep::testing {

/// As the dynamic linker finds it; empty without one.
inline std::string realLoader() {
  void* handle = ::dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {};
  Dl_info info{};
  void* function = ::dlsym(handle, "vkGetInstanceProcAddr");
  return function != nullptr && ::dladdr(function, &info) != 0 ? std::filesystem::canonical(info.dli_fname).string() : std::string();
}

}  // namespace lockstep::testing
