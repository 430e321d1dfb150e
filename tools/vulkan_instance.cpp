// SPDX-License-Identifier: Apache-2.0
// The only part of the tools that talks to Vulkan, and it does so in a child process.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan_core.h>

#include <cerrno>

#include "tools/vulkan_probe.h"

namespace lockstep::tools {
namespace {

/// Runs in the child.
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

}  // namespace

InstanceOutcome createInstanceInChild(const std::string& loader, int timeout_seconds) {
  using Kind = InstanceOutcome::Kind;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.kind = Kind::SystemFailed};
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return {.kind = Kind::SystemFailed};
  }
  if (child == 0) {
    // What drivers print belongs to neither the report nor its JSON.
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
      ::dup2(null, STDOUT_FILENO);
      ::dup2(null, STDERR_FILENO);
    }
    const InstanceOutcome outcome = createInstance(loader);
    const ssize_t written = ::write(ends[1], &outcome, sizeof(outcome));
    // No destructors: the driver may still have threads.
    ::_exit(written == sizeof(outcome) ? 0 : 1);
  }
  ::close(ends[1]);
  InstanceOutcome outcome{.kind = Kind::Crashed};
  pollfd waiting{.fd = ends[0], .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&waiting, 1, timeout_seconds * 1000);
  } while (ready < 0 && errno == EINTR);
  const bool complete = ready > 0 && ::read(ends[0], &outcome, sizeof(outcome)) == static_cast<ssize_t>(sizeof(outcome));
  ::close(ends[0]);
  if (ready == 0) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (complete) return outcome;
  if (ready == 0) return {.kind = Kind::TimedOut};
  return {.kind = Kind::Crashed, .result = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace lockstep::tools
