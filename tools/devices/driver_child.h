// SPDX-License-Identifier: Apache-2.0
// Drivers are loaded in a process of their own first: one that crashes or hangs is a finding there, not our end. The process is this
// command again, with a verb that no help text has. It is started and not forked, so that threads of ours do no harm.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/support/descriptor.h"

namespace lockstep::tools {

/// The verb: "probe-driver instance LOADER", "probe-driver library FILE" or "probe-driver devices".
inline constexpr const char* kProbeVerb = "probe-driver";

/// How a child ended.
struct ChildEnd {
  enum class Kind { Answered, Crashed, TimedOut, Unknown } kind = Kind::Unknown;
  int signal = 0;           ///< of a crash; 0: it ended without an answer
  std::string answer = {};  ///< one line, without its end
};

/// A process that loads drivers.
class DriverChild {
 public:
  using Clock = std::chrono::steady_clock;
  /// `command` is that of the tool. With `manifest` there is no other driver than its one.
  DriverChild(const std::string& command, const std::vector<std::string>& arguments, const std::filesystem::path& manifest = {});
  DriverChild(DriverChild&& other) noexcept;
  DriverChild& operator=(DriverChild&&) = delete;
  ~DriverChild();
  /// Ends it where it takes longer.
  ChildEnd wait(Clock::time_point until);

 private:
  void end();
  Descriptor answer_{-1};
  pid_t pid_ = -1;
  int status_ = 0;
};

/// In the child, before a driver is loaded: gives the file for the answer. What drivers print goes nowhere, no crash is kept on the disk,
/// and the child ends with the command.
Descriptor becomeDriverChild();

}  // namespace lockstep::tools
