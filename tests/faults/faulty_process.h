// SPDX-License-Identifier: Apache-2.0
// Runs the command under a fault, for at most so long, and says how it ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::testing {

/// Longer at night, when the machine may have other work.
std::chrono::seconds patience();

struct Launch {
  std::vector<std::string> arguments;
  std::filesystem::path folder;                         ///< where it runs; its output and its caches are kept there, too
  std::map<std::string, std::string> environment = {};  ///< beside what there is
  uint64_t most_file_bytes = UINT64_MAX;                ///< RLIMIT_FSIZE
  std::chrono::seconds limit = patience();              ///< then it counts as hung
};

struct Ended {
  int code = -1;   ///< of exit(); -1: it did not come to that
  int signal = 0;  ///< that ended it
  bool hung = false;
  std::string out = {}, err = {};
  /// "exit code 6", "signal 11", "hangs".
  [[nodiscard]] std::string how() const;
};

/// A process that runs; killed with its owner.
class FaultyProcess {
 public:
  explicit FaultyProcess(const Launch& launch);
  ~FaultyProcess();
  FaultyProcess(const FaultyProcess&) = delete;
  FaultyProcess& operator=(const FaultyProcess&) = delete;
  void signal(int number) const;
  Ended wait();

 private:
  [[nodiscard]] std::filesystem::path file(const char* stream) const;
  Launch launch_;
  pid_t pid_ = -1;
};

inline Ended runFaulty(const Launch& launch) { return FaultyProcess(launch).wait(); }

}  // namespace lockstep::testing
