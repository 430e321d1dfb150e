// SPDX-License-Identifier: Apache-2.0
// The `lockstep` command: finds the verb, runs it, prints what went wrong and turns it into an exit code.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "backends/driver_check.h"
#include "console/color.h"
#include "console/guarded_main.h"
#include "console/verbose.h"
#include "experiment/build_version.h"
#include "ir/support/nearest.h"
#include "tools/devices/bad_drivers.h"
#include "tools/devices/driver_child.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

constexpr std::array kVerbs = {
    Verb{.name = "train", .summary = "train a sample model and report its progress", .function = trainVerb},
    Verb{.name = "devices", .summary = "list the devices and which one is chosen", .function = devicesVerb},
    Verb{.name = "doctor", .summary = "find out why a device is missing and what to do about it", .function = doctorVerb},
    Verb{.name = "explain", .summary = "say what an error code or a lint rule means", .function = explainVerb},
    Verb{.name = "check", .summary = "say what is wrong with WGSL files", .function = checkVerb},
    Verb{.name = "reflect", .summary = "list what a WGSL file binds, and the limits that it needs", .function = reflectVerb},
    Verb{.name = "compile", .summary = "turn a kernel into SPIR-V, WGSL or kernel IR", .function = compileVerb},
    Verb{.name = "run", .summary = "run one kernel (.wgsl or .kir) on arrays", .function = runVerb},
    Verb{.name = "explore", .summary = "make a page that shows how a model became kernels", .function = exploreVerb},
    Verb{.name = "opt", .summary = "run passes on a graph, program or kernel text", .function = optVerb},
    Verb{.name = "profile", .summary = "show where the time of a training step goes", .function = profileVerb},
    Verb{.name = "tune", .summary = "measure plans of kernels and keep the fastest", .function = tuneVerb},
    Verb{.name = "verify", .summary = "compare a device with golden data, or a program kernel by kernel", .function = verifyVerb},
    Verb{.name = "bisect", .summary = "find the pass that makes a step wrong on a device", .function = bisectVerb},
    Verb{.name = "generate", .summary = "go on with a text, by a language model", .function = generateVerb},
    Verb{.name = "chat", .summary = "talk with a language model", .function = chatVerb},
    Verb{.name = "eval", .summary = "measure how well a language model predicts a text", .function = evalVerb},
    Verb{.name = "quantize", .summary = "make a language model small", .function = quantizeVerb},
    Verb{.name = "fmt", .summary = "give WGSL files the standard layout", .function = fmtVerb},
    Verb{.name = "conformance", .summary = "replay recorded WGSL suites and count what agrees", .function = conformanceVerb},
    Verb{.name = "new", .summary = "make a folder with a program that trains its own model", .function = newVerb},
    Verb{.name = "manual", .summary = "print the manual page", .function = manualVerb},
    Verb{.name = "completions", .summary = "print what a shell needs to complete this command", .function = completionsVerb},
};

void printHelp() {
  fmt::print(
      "lockstep: compiles and trains neural networks on any Vulkan GPU\n\nusage: lockstep [--color auto|always|never] [-v] "
      "VERB [ARGUMENTS]\n\n");
  for (const Verb& verb : kVerbs) fmt::print("  {:<13}{}\n", verb.name, verb.summary);
  fmt::print("\n'lockstep VERB --help' has the arguments of a verb; with --json it prints JSON.\n");
}

/// "--color WHEN" or "--color=WHEN" in front of the verb, taken off the arguments.
Status takeColor(Arguments& arguments) {
  constexpr std::string_view kFlag = "--color";
  if (arguments.empty() || !arguments.front().starts_with(kFlag)) return Success{};
  std::string when = arguments.front().substr(kFlag.size());
  arguments = arguments.subspan(1);
  if (when.empty() && !arguments.empty()) {
    when = "=" + arguments.front();
    arguments = arguments.subspan(1);
  }
  using console::ColorChoice;
  for (const auto& [name, choice] :
       {std::pair{"=auto", ColorChoice::Auto}, {"=always", ColorChoice::Always}, {"=never", ColorChoice::Never}}) {
    if (when != name) continue;
    console::chooseColors(choice);
    return Success{};
  }
  return usage("value", "--color is auto, always or never", "write for example: lockstep --color never devices");
}

void takeVerbose(Arguments& arguments) {
  if (arguments.empty() || (arguments.front() != "-v" && arguments.front() != "--verbose")) return;
  arguments = arguments.subspan(1);
  console::speakUp();
}

/// What may stand in front of the verb, in any order.
Status takeGlobalOptions(Arguments& arguments) {
  for (size_t before = arguments.size() + 1; arguments.size() < before;) {
    before = arguments.size();
    LS_CHECK(takeColor(arguments));
    takeVerbose(arguments);
  }
  return Success{};
}

Result<ExitCode> dispatch(Arguments arguments) {
  LS_CHECK(takeGlobalOptions(arguments));
  if (arguments.empty()) return usage("verb", "no verb was given", "'lockstep --help' lists them");
  const std::string& name = arguments.front();
  if (name == kProbeVerb) return probeDriverVerb(arguments.subspan(1));
  checkDriversWith(leaveOutBadDrivers);
  if (name == "--help" || name == "-h" || name == "help") {
    printHelp();
    return ExitCode::Ok;
  }
  if (name == "--version") {
    const std::string_view commit = experiment::kBuildCommit;
    fmt::print("lockstep {}{}\n", experiment::kBuildVersion, commit.empty() ? "" : fmt::format(" ({})", commit));
    return ExitCode::Ok;
  }
  std::vector<std::string_view> names;
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return verb.function(arguments.subspan(1));
    names.push_back(verb.name);
  }
  return usage("verb", fmt::format("there is no verb '{}'", name), suggest(name, names));
}

/// Whether a place is in this program or the library, which are nothing that the user could change.
bool isOwn(const Location& where) {
  const std::string_view file = where.file;
  const bool is_source = file.ends_with(".cpp") || file.ends_with(".h");
  return is_source && (file.starts_with("tools/") || file.starts_with("frontend/") || file.starts_with("/usr/include/"));
}

Result<ExitCode> dispatchWithoutOwnPlaces(Arguments arguments) {
  try {
    return dispatch(arguments);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      if (isOwn(diagnostic.where)) diagnostic.where = {};
    }
    throw Error(std::move(diagnostics), error.exitCode());
  }
}

std::string started_as = "lockstep";

}  // namespace

const std::string& startedAs() { return started_as; }

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace lockstep::tools

int main(int argc, char** argv) {
  return lockstep::console::guardedMain(argc, argv, [&](lockstep::tools::Arguments arguments) {
    if (argc > 0) lockstep::tools::started_as = argv[0];
    return lockstep::tools::dispatchWithoutOwnPlaces(arguments);
  });
}
