// SPDX-License-Identifier: Apache-2.0
// The `lockstep` command: finds the verb, runs it, prints what went wrong and turns it into an exit code.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "console/guarded_main.h"
#include "ir/support/nearest.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

constexpr std::array kVerbs = {
    Verb{.name = "train", .summary = "train a sample model and report its progress", .function = trainVerb},
    Verb{.name = "devices", .summary = "list the devices and which one is chosen", .function = devicesVerb},
    Verb{.name = "doctor", .summary = "find out why a device is missing and what to do about it", .function = doctorVerb},
    Verb{.name = "run", .summary = "run one kernel (.wgsl or .kir) on arrays", .function = runVerb},
    Verb{.name = "explore", .summary = "make a page that shows how a model became kernels", .function = exploreVerb},
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

}  // namespace
}  // namespace lockstep::tools

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + (argc > 0 ? argc : 1));
  return lockstep::console::guardedMain([&] { return lockstep::tools::dispatch(arguments); });
}
