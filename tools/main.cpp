// SPDX-License-Identifier: Apache-2.0
// The `lockstep` command: finds the verb, runs it, prints what went wrong and turns it into an exit code.
#include <fmt/format.h>

#include <array>
#include <new>
#include <vector>

#include "ir/support/nearest.h"
#include "tools/diagnostic_text.h"
#include "tools/options.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

constexpr std::array kVerbs = {
    Verb{.name = "train", .summary = "train a sample model and report its progress", .function = trainVerb},
    Verb{.name = "devices", .summary = "list the devices and which one is chosen", .function = devicesVerb},
    Verb{.name = "doctor", .summary = "find out why a device is missing and what to do about it", .function = doctorVerb},
    Verb{.name = "run", .summary = "run one kernel (.wgsl or .kir) on arrays", .function = runVerb},
    Verb{.name = "opt", .summary = "run passes on a graph, program or kernel text", .function = optVerb},
    Verb{.name = "verify", .summary = "compare a device with golden data", .function = verifyVerb},
};

void printHelp() {
  fmt::print("lockstep: compiles and trains neural networks on any Vulkan GPU\n\nusage: lockstep VERB [ARGUMENTS]\n\n");
  for (const Verb& verb : kVerbs) fmt::print("  {:<10}{}\n", verb.name, verb.summary);
  fmt::print("\n'lockstep VERB --help' has the arguments of a verb.\n");
}

Result<ExitCode> dispatch(Arguments arguments) {
  if (arguments.empty()) return usage("verb", "no verb was given", "'lockstep --help' lists them");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    printHelp();
    return ExitCode::Ok;
  }
  if (name == "--version") {
    fmt::print("lockstep {}\n", LOCKSTEP_VERSION);
    return ExitCode::Ok;
  }
  std::vector<std::string_view> names;
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return verb.function(arguments.subspan(1));
    names.push_back(verb.name);
  }
  return usage("verb", fmt::format("there is no verb '{}'", name), suggest(name, names));
}

int report(const std::vector<Diagnostic>& diagnostics, ExitCode code) {
  std::fflush(stdout);
  fmt::print(stderr, "{}", renderWithSource(diagnostics));
  return static_cast<int>(code);
}

int guardedMain(Arguments arguments) {
  try {
    Result<ExitCode> result = dispatch(arguments);
    if (!result.ok()) return report(result.diagnostics(), result.failure().exit_code);
    return static_cast<int>(*result);
  } catch (const Error& error) {
    return report(error.diagnostics(), error.exitCode());
  } catch (const std::bad_alloc&) {
    const Failure failure = fail("memory.host", "the machine has no memory left", {}, "use a smaller batch or model");
    return report(failure.diagnostics, ExitCode::OutOfMemory);
  } catch (const std::exception& exception) {
    // InternalError and whatever escaped from a library.
    std::fflush(stdout);
    fmt::print(stderr, "{}\n  this is a bug in lockstep, not in your program; please report it with the command that led here\n",
               exception.what());
    return static_cast<int>(ExitCode::Internal);
  }
}

}  // namespace
}  // namespace lockstep::tools

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + (argc > 0 ? argc : 1));
  return lockstep::tools::guardedMain(arguments);
}
