// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "frontend/io/file.h"
#include "ir/graph/graph.h"
#include "ir/program/profile.h"
#include "passes/pipeline.h"
#include "tools/options.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

void printPasses() {
  static constexpr std::array<std::string_view, 3> kDisabling{"", ", can be left out", ", has a plain form"};
  for (const passes::PassInfo& pass : passes::listPasses()) {
    fmt::print("{:<18}{} -> {}{}\n{:<18}{}\n", pass.name, pass.before, pass.after, kDisabling[static_cast<size_t>(pass.disabling)], "",
               pass.summary);
  }
}

}  // namespace

Result<ExitCode> optVerb(Arguments arguments) {
  std::string path, output = "-", profile = "portable";
  std::vector<std::string> names;
  bool list = false, locations = false;
  Options options("opt", "Reads a graph text, runs passes on it and prints the result.");
  options.argument(path, "FILE", "a graph text (lockstep.graph 1)", false);
  options.commaList(names, "--passes", "passes in order, with commas; none: read, check and print");
  options.value(output, "-o,--output", "where the text goes, - for the terminal");
  options.value(profile, "--profile", "device profile: portable, webgpu_default, small_bindings, cpu");
  options.flag(locations, "--locations", "print source locations");
  options.flag(list, "--list", "list the passes");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (list) {
    printPasses();
    return ExitCode::Ok;
  }
  if (path.empty()) return usage("value", "FILE is required", "see 'lockstep opt --help'");

  passes::CompileOptions compile_options;
  LS_TRY(compile_options.profile, program::findProfile(profile));
  LS_TRY(const std::string text, io::readTextFile(path));
  LS_TRY(graph::Graph graph, graph::parse(text, path));
  LS_CHECK(graph::validate(graph));
  LS_TRY(graph, passes::runGraphPasses(std::move(graph), names, compile_options));
  const std::string result = graph::print(graph, locations);
  if (output == "-") {
    fmt::print("{}", result);
  } else {
    LS_CHECK(io::writeFileAtomically(output, std::string_view(result)));
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
