// SPDX-License-Identifier: Apache-2.0
// The options of one verb: declared with their targets and one line of help each, then parsed. Hides the parser library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::console {

class Options {
 public:
  /// `command`, as it is typed ("lockstep run"), and `summary` head the help text.
  Options(std::string command, std::string summary);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options();

  // `flag` is "--device" or "-o,--output"; the target's value at the time of the call is the default. Targets must outlive parse().
  void value(std::string& target, const std::string& flag, const std::string& text);
  void value(int64_t& target, const std::string& flag, const std::string& text);
  void value(double& target, const std::string& flag, const std::string& text);
  /// May be given several times.
  void list(std::vector<std::string>& target, const std::string& flag, const std::string& text);
  /// One value with commas between its parts.
  void commaList(std::vector<std::string>& target, const std::string& flag, const std::string& text);
  void flag(bool& target, const std::string& flag, const std::string& text);
  /// Positional, in the order of the calls.
  void argument(std::string& target, const std::string& name, const std::string& text, bool required = true);

  /// True: go on; false: help was asked for and printed. A wrong use fails with usage.* and ExitCode::Usage.
  Result<bool> parse(std::span<const std::string> arguments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A failure with ExitCode::Usage.
Failure usage(std::string code, std::string message, std::string remedy = {});

}  // namespace lockstep::console
