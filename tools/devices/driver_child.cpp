// SPDX-License-Identifier: Apache-2.0
#include "tools/devices/driver_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

namespace lockstep::tools {
namespace {

using Kind = ChildEnd::Kind;
using Clock = DriverChild::Clock;

/// Ours; with `manifest` only its driver.
std::vector<std::string> environmentWith(const std::filesystem::path& manifest) {
  constexpr std::array<std::string_view, 2> kDrivers = {"VK_DRIVER_FILES=", "VK_ICD_FILENAMES="};
  std::vector<std::string> texts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool replaced = !manifest.empty() && std::ranges::any_of(kDrivers, [&](std::string_view name) { return text.starts_with(name); });
    if (!replaced) texts.emplace_back(text);
  }
  if (manifest.empty()) return texts;
  for (const std::string_view name : kDrivers) texts.push_back(fmt::format("{}{}", name, manifest.string()));
  return texts;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (std::string& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

/// What it reads from and prints to. The places are kept in memory that the system may refuse.
class Streams {
 public:
  explicit Streams(int answer) {
    works_ = ::posix_spawn_file_actions_init(&actions_) == 0;
    ok_ = works_ && ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
          ::posix_spawn_file_actions_adddup2(&actions_, answer, STDOUT_FILENO) == 0 &&
          ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0;
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() {
    if (works_) ::posix_spawn_file_actions_destroy(&actions_);
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
  bool works_ = false, ok_ = false;
};

/// Reads a line; false when that takes longer than it may. Not to the end of the file: a driver's own children may keep that open.
bool readLine(int file, Clock::time_point until, std::string& line) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waiting{.fd = file, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 512> part{};
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    line.append(part.data(), static_cast<size_t>(count));
    if (const size_t at = line.find('\n'); at != std::string::npos) {
      line.resize(at);
      return true;
    }
  }
}

/// Others end a process from outside, for reasons of their own.
bool isCrash(int signal) {
  constexpr std::array kCrashes = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
  return std::ranges::find(kCrashes, signal) != kCrashes.end();
}

}  // namespace

DriverChild::DriverChild(const std::string& command, const std::vector<std::string>& arguments, const std::filesystem::path& manifest) {
  std::vector<std::string> words{command, kProbeVerb}, variables = environmentWith(manifest);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> word_pointers = pointers(words), variable_pointers = pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  answer_ = Descriptor(ends[0]);
  const Descriptor other_end(ends[1]);
  const Streams streams(other_end.get());
  if (!streams.ok()) return;
  pid_t pid = -1;
  if (::posix_spawn(&pid, command.c_str(), streams.get(), nullptr, word_pointers.data(), variable_pointers.data()) == 0) pid_ = pid;
}

DriverChild::DriverChild(DriverChild&& other) noexcept
    : answer_(std::move(other.answer_)), pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

DriverChild::~DriverChild() {
  if (pid_ > 0) end();
}

/// A process that waits for the hardware does not even end when it is killed; it is left to the system then.
void DriverChild::end() {
  using namespace std::chrono_literals;
  ::kill(pid_, SIGKILL);
  for (int i = 0; i < 100 && ::waitpid(pid_, &status_, WNOHANG) == 0; ++i) std::this_thread::sleep_for(10ms);
  pid_ = -1;
}

ChildEnd DriverChild::wait(Clock::time_point until) {
  if (pid_ < 0) return {};
  std::string answer;
  if (!readLine(answer_.get(), until, answer)) return {.kind = Kind::TimedOut};
  // With its answer it has done its work; without one its end says why.
  if (!answer.empty()) return {.kind = Kind::Answered, .answer = std::move(answer)};
  while (::waitpid(pid_, &status_, WNOHANG) == 0) {
    if (Clock::now() >= until) return {.kind = Kind::TimedOut};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  if (WIFSIGNALED(status_)) return isCrash(WTERMSIG(status_)) ? ChildEnd{.kind = Kind::Crashed, .signal = WTERMSIG(status_)} : ChildEnd{};
  // Codes of the system, which could not start it, and of ours, without memory.
  constexpr std::array kNotItsOwn = {6, 126, 127};
  const bool known = std::ranges::find(kNotItsOwn, WEXITSTATUS(status_)) == kNotItsOwn.end();
  return {.kind = known ? Kind::Crashed : Kind::Unknown};
}

Descriptor becomeDriverChild() {
  Descriptor answer(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const Descriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (null.get() >= 0) ::dup2(null.get(), stream);
  }
  const struct rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // A driver that hangs would stay for ever where somebody ends the command meanwhile.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return answer;
}

}  // namespace lockstep::tools
