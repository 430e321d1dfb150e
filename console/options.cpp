// SPDX-License-Identifier: Apache-2.0
#include "console/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "ir/support/nearest.h"

namespace lockstep::console {

Failure usage(std::string code, std::string message, std::string remedy) {
  Failure failure = fail("usage." + std::move(code), std::move(message), {}, std::move(remedy));
  failure.exit_code = ExitCode::Usage;
  return failure;
}

struct Options::State {
  std::string command;
  CLI::App app;
  std::vector<std::string> flags;  // every spelling, for the nearest one
  State(std::string typed, std::string summary) : command(std::move(typed)), app(std::move(summary), command) {
    app.allow_extras(false);
    flags.emplace_back("--help");
  }
  void remember(const std::string& names) {
    size_t start = 0;
    while (start <= names.size()) {
      const size_t end = std::min(names.find(',', start), names.size());
      flags.push_back(names.substr(start, end - start));
      start = end + 1;
    }
  }
};

Options::Options(std::string command, std::string summary) : state_(std::make_unique<State>(std::move(command), std::move(summary))) {}
Options::~Options() = default;

void Options::value(std::string& target, const std::string& flag, const std::string& text) {
  state_->remember(flag);
  state_->app.add_option(flag, target, text)->capture_default_str();
}
void Options::value(int64_t& target, const std::string& flag, const std::string& text) {
  state_->remember(flag);
  state_->app.add_option(flag, target, text)->capture_default_str();
}
void Options::value(double& target, const std::string& flag, const std::string& text) {
  state_->remember(flag);
  state_->app.add_option(flag, target, text)->capture_default_str();
}
void Options::list(std::vector<std::string>& target, const std::string& flag, const std::string& text) {
  state_->remember(flag);
  // One value a flag, so that positional arguments may follow.
  state_->app.add_option(flag, target, text)->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}
void Options::commaList(std::vector<std::string>& target, const std::string& flag, const std::string& text) {
  state_->remember(flag);
  state_->app.add_option(flag, target, text)
      ->expected(1)
      ->allow_extra_args(false)
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}
void Options::flag(bool& target, const std::string& flag, const std::string& text) {
  state_->remember(flag);
  state_->app.add_flag(flag, target, text);
}
void Options::argument(std::string& target, const std::string& name, const std::string& text, bool required) {
  state_->app.add_option(name, target, text)->required(required);
}

Result<bool> Options::parse(std::span<const std::string> arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  const std::string help = fmt::format("see '{} --help'", state_->command);
  try {
    state_->app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", state_->app.help());
    return false;
  } catch (const CLI::ExtrasError&) {
    for (const std::string& extra : state_->app.remaining()) {
      if (!extra.starts_with("-")) return usage("argument", fmt::format("unexpected argument '{}'", extra), help);
      const std::string name = extra.substr(0, extra.find('='));
      const std::string near = nearestName(name, state_->flags);
      return usage("option", fmt::format("'{}' has no option '{}'", state_->command, name),
                   near.empty() ? help : fmt::format("did you mean '{}'?", near));
    }
    return usage("argument", "unexpected arguments", help);
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    // The library's sentences start with a capital where no option name comes first.
    if (message.size() > 1 && message[0] >= 'A' && message[0] <= 'Z' && message[1] >= 'a' && message[1] <= 'z') {
      message[0] = static_cast<char>(message[0] - 'A' + 'a');
    }
    while (!message.empty() && (message.back() == '.' || message.back() == '\n')) message.pop_back();
    return usage("value", message, help);
  }
  return true;
}

}  // namespace lockstep::console
