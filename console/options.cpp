// SPDX-License-Identifier: Apache-2.0
#include "console/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "console/verbose.h"
#include "ir/support/nearest.h"

namespace lockstep::console {

Failure usage(std::string code, std::string message, std::string remedy) {
  Failure failure = fail("usage." + std::move(code), std::move(message), {}, std::move(remedy));
  failure.exit_code = ExitCode::Usage;
  return failure;
}

namespace {

// Where describe() wants the next parse() to leave its rows. The verbs make their Options themselves, so nothing else can be passed to
// them.
CommandDescription* wanted = nullptr;

std::vector<std::string> namesOf(const std::string& flag) {
  std::vector<std::string> names;
  for (size_t start = 0; start <= flag.size();) {
    const size_t end = std::min(flag.find(',', start), flag.size());
    names.push_back(flag.substr(start, end - start));
    start = end + 1;
  }
  return names;
}

}  // namespace

CommandDescription describe(const std::function<void()>& verb) {
  CommandDescription description;
  wanted = &description;
  verb();
  wanted = nullptr;
  return description;
}

struct Options::State {
  CommandDescription description;
  CLI::App app;
  bool verbose = false;
  State(std::string command, std::string summary)
      : description{.command = std::move(command), .summary = std::move(summary), .rows = {}},
        app(description.summary, description.command) {
    app.allow_extras(false);
    description.rows.push_back({.names = {"-h", "--help"}, .text = "Print this help message and exit", .value = {}});
    const std::string names = "-v,--verbose", text = "log decisions and stage timings to stderr";
    remember(names, text, {});
    app.add_flag(names, verbose, text);
  }
  void remember(const std::string& flag, const std::string& text, std::string value, std::string initial = {}) {
    description.rows.push_back({.names = namesOf(flag), .text = text, .value = std::move(value), .initial = std::move(initial)});
  }
};

Options::Options(std::string command, std::string summary) : state_(std::make_unique<State>(std::move(command), std::move(summary))) {}
Options::~Options() = default;

void Options::value(std::string& target, const std::string& flag, const std::string& text) {
  state_->remember(flag, text, "TEXT", target);
  state_->app.add_option(flag, target, text)->capture_default_str();
}
void Options::value(int64_t& target, const std::string& flag, const std::string& text) {
  state_->remember(flag, text, "INT", fmt::format("{}", target));
  // CLI11 takes the nearest number for one beyond 64 bits.
  const auto fits = [](const std::string& word) -> std::string {
    errno = 0;
    (void)std::strtoll(word.c_str(), nullptr, 0);
    return errno == ERANGE ? fmt::format("{} is beyond 64 bits", word) : "";
  };
  state_->app.add_option(flag, target, text)->check(fits)->capture_default_str();
}
void Options::value(double& target, const std::string& flag, const std::string& text) {
  state_->remember(flag, text, "FLOAT", fmt::format("{}", target));
  state_->app.add_option(flag, target, text)->capture_default_str();
}
void Options::list(std::vector<std::string>& target, const std::string& flag, const std::string& text) {
  state_->remember(flag, text, "TEXT");
  // One value per flag, so that positional arguments may follow.
  state_->app.add_option(flag, target, text)->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}
void Options::commaList(std::vector<std::string>& target, const std::string& flag, const std::string& text) {
  state_->remember(flag, text, "TEXT");
  state_->app.add_option(flag, target, text)
      ->expected(1)
      ->allow_extra_args(false)
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}
void Options::flag(bool& target, const std::string& flag, const std::string& text) {
  state_->remember(flag, text, {});
  state_->app.add_flag(flag, target, text);
}
void Options::flagOrValue(std::string& target, const std::string& flag, const std::string& alone, const std::string& text) {
  state_->remember(flag, text, {});
  state_->app.add_flag(fmt::format("{}{{{}}}", flag, alone), target, text);
}
void Options::argument(std::string& target, const std::string& name, const std::string& text, bool required) {
  state_->description.rows.push_back({.names = {name}, .text = text, .value = {}, .argument = true, .required = required});
  state_->app.add_option(name, target, text)->required(required);
}
void Options::arguments(std::vector<std::string>& target, const std::string& name, const std::string& text, bool required) {
  state_->description.rows.push_back({.names = {name + "..."}, .text = text, .value = {}, .argument = true, .required = required});
  state_->app.add_option(name, target, text)->required(required)->expected(required ? 1 : 0, -1);
}
void Options::choices(const std::string& name, const std::vector<std::string>& words) {
  for (OptionRow& row : state_->description.rows) {
    if (std::ranges::find(row.names, name) != row.names.end()) row.choices = words;
  }
}

Result<bool> Options::parse(std::span<const std::string> arguments) {
  if (wanted != nullptr) {
    *wanted = state_->description;
    return false;
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  const std::string help = fmt::format("see '{} --help'", state_->description.command);
  try {
    state_->app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", state_->app.help());
    return false;
  } catch (const CLI::ExtrasError&) {
    for (const std::string& extra : state_->app.remaining()) {
      if (!extra.starts_with("-")) return usage("argument", fmt::format("unexpected argument '{}'", extra), help);
      const std::string name = extra.substr(0, extra.find('='));
      std::vector<std::string> flags;
      for (const OptionRow& row : state_->description.rows) {
        if (!row.argument) flags.insert(flags.end(), row.names.begin(), row.names.end());
      }
      const std::string near = nearestName(name, flags);
      return usage("option", fmt::format("'{}' has no option '{}'", state_->description.command, name),
                   near.empty() ? help : fmt::format("did you mean '{}'?", near));
    }
    return usage("argument", "unexpected arguments", help);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what(), name = message.substr(0, message.find(':'));
    const bool is_missing = message.find("missing") != std::string::npos;
    return usage("value", fmt::format("{} {}", name, is_missing ? "needs a value" : "is given more than once"), help);
  } catch (const CLI::ConversionError& error) {
    const std::string_view message = error.what(), start = "Could not convert: ", between = " = ";
    const size_t equals = message.find(between);
    if (!message.starts_with(start) || equals == std::string_view::npos) return usage("value", std::string(message), help);
    const std::string_view name = message.substr(start.size(), equals - start.size()), given = message.substr(equals + between.size());
    double number = 0;
    const auto parsed = std::from_chars(given.begin(), given.end(), number);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == given.end();
    return usage("value", fmt::format("{} cannot be '{}': it takes a {}", name, given, is_number ? "whole number of 64 bits" : "number"),
                 help);
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    // The library's sentences start with a capital where no option name comes first.
    if (message.size() > 1 && message[0] >= 'A' && message[0] <= 'Z' && message[1] >= 'a' && message[1] <= 'z') {
      message[0] = static_cast<char>(message[0] - 'A' + 'a');
    }
    while (!message.empty() && (message.back() == '.' || message.back() == '\n')) message.pop_back();
    return usage("value", message, help);
  }
  if (state_->verbose) speakUp();
  return true;
}

}  // namespace lockstep::console
