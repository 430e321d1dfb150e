// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/support/nearest.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

using console::OptionRow;

struct VerbOptions {
  Verb verb;
  std::vector<OptionRow> rows;
};
std::vector<VerbOptions> describeAll() {
  std::vector<VerbOptions> all;
  for (const Verb& verb : verbs()) {
    all.push_back({.verb = verb, .rows = console::describe([&] { (void)verb.function({}); }).rows});
  }
  return all;
}

std::string replaced(std::string_view text, std::string_view special, std::string_view escape) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += escape;
    result += c;
  }
  return result;
}
/// Inside '...' of a Bourne shell.
std::string quoted(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result;
}

std::string forBash(const std::vector<VerbOptions>& all) {
  std::string cases, values, names;
  for (const VerbOptions& one : all) {
    std::vector<std::string> options, valued, words;
    for (const OptionRow& row : one.rows) {
      if (row.argument) {
        words.insert(words.end(), row.choices.begin(), row.choices.end());
        continue;
      }
      options.insert(options.end(), row.names.begin(), row.names.end());
      if (!row.value.empty()) valued.insert(valued.end(), row.names.begin(), row.names.end());
      if (row.choices.empty()) continue;
      for (const std::string& name : row.names) {
        values += fmt::format("      '{} {}') offered='{}' ;;\n", one.verb.name, name, fmt::join(row.choices, " "));
      }
    }
    cases += fmt::format("    {})\n      options='{}'\n      valued='{}'\n      words='{}' ;;\n", one.verb.name, fmt::join(options, " "),
                         fmt::join(valued, " "), fmt::join(words, " "));
    names += fmt::format("{} ", one.verb.name);
  }
  return fmt::format(R"(# bash completion of lockstep; file names where nothing else fits
_lockstep() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}" options='' valued='' words='' offered=''
  COMPREPLY=()
  case "${{COMP_WORDS[1]}}" in
{}  esac
  if ((COMP_CWORD == 1)); then
    offered='{}--help --version'
  elif [[ $current == -* ]]; then
    offered="$options"
  elif [[ " $valued " == *" $previous "* ]]; then
    case "${{COMP_WORDS[1]}} $previous" in
{}    esac
  else
    offered="$words"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$current")
}}
complete -o default -F _lockstep lockstep
)",
                     cases, names, values);
}

std::string forZsh(const std::vector<VerbOptions>& all) {
  std::string cases, names;
  for (const VerbOptions& one : all) {
    names += fmt::format("    '{}:{}'\n", one.verb.name, quoted(one.verb.summary));
    cases += fmt::format("    {})\n      _arguments", one.verb.name);
    for (const OptionRow& row : one.rows) {
      const std::string action = row.choices.empty() ? "_files" : fmt::format("({})", fmt::join(row.choices, " "));
      if (row.argument) {
        cases += fmt::format(" \\\n        '{}:{}:{}'", row.required ? "" : ":", row.names[0], action);
        continue;
      }
      for (const std::string& name : row.names) {
        cases += fmt::format(" \\\n        '*{}[{}]", name, quoted(replaced(row.text, "[]:\\", "\\")));
        cases += row.value.empty() ? "'" : fmt::format(":{}:{}'", row.value, action);
      }
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef lockstep
_lockstep() {{
  local -a verbs
  verbs=(
{}  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  shift words
  ((CURRENT--))
  case "$words[1]" in
{}  esac
}}
_lockstep "$@"
)",
                     names, cases);
}

std::string forFish(const std::vector<VerbOptions>& all) {
  const auto inQuotes = [](std::string_view text) { return replaced(text, "'\\", "\\"); };
  std::string lines = "# fish completion of lockstep\n";
  for (const VerbOptions& one : all) {
    lines += fmt::format("complete -c lockstep -n __fish_use_subcommand -f -a {} -d '{}'\n", one.verb.name, inQuotes(one.verb.summary));
    const std::string start = fmt::format("complete -c lockstep -n '__fish_seen_subcommand_from {}'", one.verb.name);
    for (const OptionRow& row : one.rows) {
      const std::string words = row.choices.empty() ? "" : fmt::format(" -a '{}'", fmt::join(row.choices, " "));
      if (row.argument) {
        if (!words.empty()) lines += start + words + "\n";
        continue;
      }
      lines += start;
      for (const std::string& name : row.names) {
        lines += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2)) : fmt::format(" -s {}", name.substr(1));
      }
      lines += fmt::format("{}{} -d '{}'\n", row.value.empty() ? "" : " -r", words, inQuotes(row.text));
    }
  }
  return lines;
}

struct Shell {
  std::string_view name;
  std::string (*script)(const std::vector<VerbOptions>& all);
};
constexpr std::array kShells = {Shell{"bash", forBash}, Shell{"zsh", forZsh}, Shell{"fish", forFish}};

}  // namespace

Result<ExitCode> completionsVerb(Arguments arguments) {
  std::string name;
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  Options options("lockstep completions", "Prints a script with which a shell completes the verbs and options of this command.");
  options.argument(name, "SHELL", fmt::format("{}", fmt::join(names, ", ")));
  options.choices("SHELL", names);
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  const auto shell = std::ranges::find(kShells, name, &Shell::name);
  if (shell == kShells.end()) return usage("shell", fmt::format("there are no completions for '{}'", name), suggest(name, names));
  fmt::print("{}", shell->script(describeAll()));
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
