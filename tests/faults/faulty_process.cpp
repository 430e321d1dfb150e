// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/faulty_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "frontend/io/file.h"

namespace lockstep::testing {
namespace {

constexpr int kCannotStart = 127;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (std::string& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

/// What there is, without the variables that are set anew.
std::vector<std::string> environmentOf(const Launch& launch) {
  std::map<std::string, std::string> wanted = launch.environment;
  wanted.try_emplace("LOCKSTEP_CACHE_DIR", (launch.folder / "cache").string());
  std::vector<std::string> texts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!wanted.contains(text.substr(0, text.find('=')))) texts.push_back(text);
  }
  for (const auto& [name, value] : wanted) texts.push_back(fmt::format("{}={}", name, value));
  return texts;
}

/// In the child: nothing here may allocate.
[[noreturn]] void become(char* const* arguments, char* const* environment, const char* folder, const char* out, const char* err,
                         uint64_t most_file_bytes) {
  const int null = ::open("/dev/null", O_RDONLY), to = ::open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666),
            errors = ::open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::dup2(null, STDIN_FILENO);
  ::dup2(to, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  for (const int file : {null, to, errors}) ::close(file);
  struct rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (most_file_bytes != UINT64_MAX) {
    const struct rlimit bytes{.rlim_cur = most_file_bytes, .rlim_max = most_file_bytes};
    ::setrlimit(RLIMIT_FSIZE, &bytes);
  }
  // What nohup or a shell ignores would be ignored there, too.
  for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ}) ::signal(number, SIG_DFL);
  if (::chdir(folder) != 0) ::_exit(kCannotStart);
  ::execve(arguments[0], arguments, environment);
  ::_exit(kCannotStart);
}

}  // namespace

std::chrono::seconds patience() { return std::chrono::seconds(std::getenv("LOCKSTEP_NIGHTLY") == nullptr ? 120 : 900); }

std::string Ended::how() const {
  if (hung) return "hangs";
  return signal != 0 ? fmt::format("signal {}", signal) : fmt::format("exit code {}", code);
}

std::filesystem::path FaultyProcess::file(const char* stream) const { return launch_.folder / stream; }

FaultyProcess::FaultyProcess(const Launch& launch) : launch_(launch) {
  std::vector<std::string> arguments = launch.arguments, environment = environmentOf(launch);
  arguments.insert(arguments.begin(), LOCKSTEP_TOOL);
  const std::string folder = launch.folder.string(), out = file("stdout").string(), err = file("stderr").string();
  const std::vector<char*> argument_pointers = pointers(arguments), environment_pointers = pointers(environment);
  pid_ = ::fork();
  if (pid_ == 0) {
    become(argument_pointers.data(), environment_pointers.data(), folder.c_str(), out.c_str(), err.c_str(), launch.most_file_bytes);
  }
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

FaultyProcess::~FaultyProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void FaultyProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);  // other numbers stand for many processes
}

Ended FaultyProcess::wait() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + launch_.limit;
  Ended ended;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() >= until) {
      ended.hung = true;
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  if (ended.code == kCannotStart) throw std::runtime_error("the command cannot be started");
  ended.out = io::readTextFile(file("stdout")).orThrow();
  ended.err = io::readTextFile(file("stderr")).orThrow();
  return ended;
}

}  // namespace lockstep::testing
