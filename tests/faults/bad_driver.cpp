// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that crashes as soon as it is asked anything, or hangs where LOCKSTEP_FAULT_DRIVER is "hang".
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

[[noreturn]] void misbehave() {
  const char* wish = std::getenv("LOCKSTEP_FAULT_DRIVER");
  while (wish != nullptr && std::string_view(wish) == "hang") ::pause();
  ::raise(SIGSEGV);
  std::abort();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned*) { misbehave(); }
void* vk_icdGetInstanceProcAddr(void*, const char*) { misbehave(); }
void* vk_icdGetPhysicalDeviceProcAddr(void*, const char*) { misbehave(); }
}
#pragma GCC visibility pop
