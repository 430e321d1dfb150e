// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that crashes as soon as it is asked anything; LOCKSTEP_FAULT_DRIVER "hang": it hangs, "exit": it ends the process.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

[[noreturn]] void misbehave() {
  const char* wish = std::getenv("LOCKSTEP_FAULT_DRIVER");
  const std::string_view way = wish == nullptr ? "" : wish;
  while (way == "hang") ::pause();
  if (way == "exit") ::_exit(0);
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
