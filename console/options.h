// SPDX-License-Identifier: Apache-2.0
// The options of one verb: declared with their targets and one line of help each, then parsed. Hides the parser library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::console {

/// One option or positional argument, as it was declared.
struct OptionRow {
  std::vector<std::string> names;  ///< {"-o", "--output"}; of an argument {"FILE"}
  std::string text;
  std::string value;                      ///< what follows the name: "TEXT", "INT", "FLOAT"; of a flag and of an argument empty
  std::string initial = {};               ///< the value without it; may be empty
  std::vector<std::string> choices = {};  ///< words that make sense, if they are known
  bool argument = false, required = false;
};

struct CommandDescription {
  std::string command;  ///< "lockstep run"
  std::string summary;  ///< may have several lines
  std::vector<OptionRow> rows;
};

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
  /// "--flag" gives `alone`, "--flag=VALUE" the value; what follows a space is no value of it.
  void flagOrValue(std::string& target, const std::string& flag, const std::string& alone, const std::string& text);
  /// Positional, in the order of the calls.
  void argument(std::string& target, const std::string& name, const std::string& text, bool required = true);

  /// Positional, one or more, or any number; no others may follow.
  void arguments(std::vector<std::string>& target, const std::string& name, const std::string& text, bool required = true);

  /// Words that a shell may offer for an argument or option that was declared; others stay allowed.
  void choices(const std::string& name, const std::vector<std::string>& words);

  /// True: go on; false: help was asked for and printed. A wrong use fails with usage.* and ExitCode::Usage.
  Result<bool> parse(std::span<const std::string> arguments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What --device takes, for its help. docs/devices.md says what the selectors mean.
inline constexpr const char* kDevices =
    "auto, reference, vulkan, vulkan:N, vulkan:NAME, reference:fault=OP+Nulp, reference:perturb=LIST or sanitizer";

/// What the Options that `verb` makes would accept. Their parse() returns false as if help had been asked for, so the verb does nothing.
CommandDescription describe(const std::function<void()>& verb);

/// A failure with ExitCode::Usage.
Failure usage(std::string code, std::string message, std::string remedy = {});

/// The value of an option, read by a function that does not know of command lines: its failure is one of usage.
template <class T>
Result<T> asUsage(Result<T> value) {
  if (value.ok()) return value;
  return Failure{.diagnostics = value.diagnostics(), .exit_code = ExitCode::Usage};
}

}  // namespace lockstep::console
