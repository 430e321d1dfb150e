// SPDX-License-Identifier: Apache-2.0
// The only part of the tools that talks to Vulkan, and it does so in a child process.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan_core.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include "ir/support/descriptor.h"
#include "tools/devices/vulkan_probe.h"

namespace lockstep::tools {
namespace {

using Bytes = std::string;

/// How a child ended, and what it wrote before.
struct ChildEnd {
  enum class Kind { Answered, Crashed, TimedOut, NotStarted } kind = Kind::NotStarted;
  int signal = 0;
  Bytes answer = {};
};

/// Reads until the other end is closed; false when that takes longer than it may.
bool readToEnd(int file, int timeout_seconds, Bytes& bytes) {
  while (true) {
    pollfd waiting{.fd = file, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, timeout_seconds * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 512> part{};
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    bytes.append(part.data(), static_cast<size_t>(count));
  }
}

/// What `work` gives in a child process.
ChildEnd inChild(int timeout_seconds, const std::function<Bytes()>& work) {
  using Kind = ChildEnd::Kind;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return {};
  }
  if (child == 0) {
    // What drivers print belongs to neither the report nor its JSON.
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
      ::dup2(null, STDOUT_FILENO);
      ::dup2(null, STDERR_FILENO);
    }
    const Bytes answer = work();
    (void)writeAll(ends[1], std::as_bytes(std::span(answer)));
    // No destructors: the driver may still have threads.
    ::_exit(0);
  }
  ::close(ends[1]);
  ChildEnd end;
  const bool in_time = readToEnd(ends[0], timeout_seconds, end.answer);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  const bool answered = in_time && WIFEXITED(status) && !end.answer.empty();
  end.kind = answered ? Kind::Answered : in_time ? Kind::Crashed : Kind::TimedOut;
  return end;
}

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

InstanceOutcome createInstanceInChild(const std::string& loader, int timeout_seconds, const std::filesystem::path& manifest) {
  using Kind = InstanceOutcome::Kind;
  const ChildEnd end = inChild(timeout_seconds, [&] {
    for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
      if (!manifest.empty()) ::setenv(variable, manifest.c_str(), 1);
    }
    const InstanceOutcome outcome = createInstance(loader);
    Bytes bytes(sizeof(outcome), '\0');
    std::memcpy(bytes.data(), &outcome, sizeof(outcome));
    return bytes;
  });
  InstanceOutcome outcome;
  if (end.kind == ChildEnd::Kind::NotStarted) return {.kind = Kind::SystemFailed};
  if (end.kind == ChildEnd::Kind::TimedOut) return {.kind = Kind::TimedOut};
  if (end.kind == ChildEnd::Kind::Crashed || end.answer.size() != sizeof(outcome)) return {.kind = Kind::Crashed, .result = end.signal};
  std::memcpy(&outcome, end.answer.data(), sizeof(outcome));
  return outcome;
}

std::string loadingProblem(const std::string& library, int timeout_seconds) {
  const ChildEnd end = inChild(timeout_seconds, [&] {
    const bool loaded = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
    const char* reason = loaded ? nullptr : ::dlerror();
    return Bytes("!") + (loaded ? "" : reason == nullptr ? "unknown reason" : reason);
  });
  switch (end.kind) {
    case ChildEnd::Kind::Answered:
      return end.answer.substr(1);
    case ChildEnd::Kind::Crashed:
      return "it crashes with signal " + std::to_string(end.signal);
    case ChildEnd::Kind::TimedOut:
      return "it does not come to an end";
    case ChildEnd::Kind::NotStarted:
      return "";
  }
  return "";
}

}  // namespace lockstep::tools
