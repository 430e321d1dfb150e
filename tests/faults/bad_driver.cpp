// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that crashes as soon as it is asked anything; LOCKSTEP_FAULT_DRIVER "hang": it hangs and
// writes its process to LOCKSTEP_FAULT_REPORT, "exit": it ends the process.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

[[noreturn]] void misbehave() {
  const char* wish = std::getenv("LOCKSTEP_FAULT_DRIVER");
  const std::string_view way = wish == nullptr ? "" : wish;
  if (const char* report = std::getenv("LOCKSTEP_FAULT_REPORT"); report != nullptr && way == "hang") {
    const int file = ::open(report, O_WRONLY | O_CREAT | O_APPEND, 0666);
    char line[32];
    const int length = std::snprintf(line, sizeof line, "%d\n", static_cast<int>(::getpid()));
    (void)!::write(file, line, static_cast<size_t>(length));
  }
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
