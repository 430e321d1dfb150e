// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "ir/graph/graph.h"
#include "ir/program/profile.h"
#include "ir/support/text.h"
#include "passes/kernel/kernel_pipeline.h"
#include "passes/pipeline.h"
#include "tools/kernel/kernel_file.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

/// By Disabling.
constexpr std::array<std::string_view, 3> kDisabling{"", ", can be left out", ", has a plain form"};
constexpr std::array<std::string_view, 3> kDisablingKeys{"refused", "left_out", "plain_form"};

void printPasses() {
  for (const passes::PassInfo& pass : passes::listPasses()) {
    fmt::print("{:<18}{} -> {}{}\n{:<18}{}\n", pass.name, toString(pass.before), toString(pass.after),
               kDisabling[static_cast<size_t>(pass.disabling)], "", pass.summary);
  }
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) {
    fmt::print("{:<18}kernel -> kernel, can be left out\n{:<18}{}\n", pass.name, "", pass.summary);
  }
}

io::Json passJson(std::string_view name, const std::string& before, std::string_view after, passes::Disabling disabling,
                  std::string_view summary) {
  return io::Json::object()
      .add("name", name)
      .add("before", before)
      .add("after", after)
      .add("disabling", kDisablingKeys[static_cast<size_t>(disabling)])
      .add("summary", summary);
}

io::Json passesJson() {
  io::Json list = io::Json::array();
  for (const passes::PassInfo& pass : passes::listPasses())
    list.add(passJson(pass.name, toString(pass.before), toString(pass.after), pass.disabling, pass.summary));
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) {
    list.add(passJson(pass.name, "kernel", "kernel", passes::Disabling::LeavesOut, pass.summary));
  }
  return io::Json::object().add("passes", list);
}

Result<std::string> onStage(const std::string& text, const std::string& path, const std::vector<std::string>& names,
                            const passes::CompileOptions& options, bool locations) {
  LS_TRY(passes::Form stage, passes::parseForm(text, path));
  for (const std::string& name : names) {
    Result<passes::Form> next = passes::runPasses(stage, {name}, options);
    if (!next.ok()) {
      // What a pass says of a line is about the stage before it; the user has the file.
      const bool graph = std::holds_alternative<graph::Graph>(stage);
      return pointInto(next.failure(), graph ? "graph" : "program", passes::print(stage), text, path);
    }
    stage = std::move(*next);
  }
  const auto* graph = std::get_if<graph::Graph>(&stage);
  return graph != nullptr ? graph::print(*graph, locations) : passes::print(stage);
}

Result<std::string> onKernel(const std::string& text, const std::string& path, const std::vector<std::string>& names, bool locations) {
  LS_TRY(kernel::Module module, readKernelText(text, path));
  LS_TRY(const kernel::ValidModule valid, kernel::validate(std::move(module)));
  LS_TRY(module, passes::runKernelPasses(*valid, names));
  return kernel::print(kernel::canonical(module, locations), locations);
}

/// Comments and blank lines may stand before the first line of a text; programs hold graphs and kernels.
bool isKernel(const std::string& text) {
  const size_t kernel = text.find("lockstep.kernel"), graph = text.find("lockstep.graph"), program = text.find("lockstep.program");
  return kernel < graph && kernel < program;
}

}  // namespace

Result<ExitCode> optVerb(Arguments arguments) {
  std::string path, output = "-", profile = "portable";
  std::vector<std::string> names;
  bool list = false, locations = false, json = false;
  Options options("lockstep opt", "Reads a graph, program or kernel text, runs passes on it and prints the result.");
  options.argument(path, "FILE", "a text: lockstep.graph 1, lockstep.program 1 or lockstep.kernel 1", false);
  options.commaList(names, "--passes", "passes in order, with commas; none: read, check and print");
  options.value(output, "-o,--output", "where the text goes, - for the terminal");
  options.value(profile, "--profile", "device profile: portable, webgpu_default, small_bindings, cpu");
  options.flag(locations, "--locations", "print source locations");
  options.flag(list, "--list", "list the passes");
  options.flag(json, "--json", "one JSON object for scripts: the text, or with --list the passes");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (list) {
    if (json) {
      fmt::print("{}\n", passesJson().text());
    } else {
      printPasses();
    }
    return ExitCode::Ok;
  }
  if (path.empty()) return usage("value", "FILE is required", "see 'lockstep opt --help'");

  passes::CompileOptions compile_options;
  LS_TRY(compile_options.profile, console::asUsage(program::findProfile(profile)));
  LS_TRY(const std::string text, io::readTextFile(path));
  LS_TRY(const std::string result,
         isKernel(text) ? onKernel(text, path, names, locations) : onStage(text, path, names, compile_options, locations));
  const bool shown = output == "-";
  if (!shown) LS_CHECK(io::writeFileAtomically(output, std::string_view(result)));
  if (json) {
    // "lockstep.graph 1" stands first in every text that is printed.
    const std::string form = result.substr(sizeof("lockstep.") - 1, result.find(' ') - (sizeof("lockstep.") - 1));
    fmt::print("{}\n", io::Json::object()
                           .add("form", form)
                           .add("text", shown ? io::Json(result) : io::Json())
                           .add("file", shown ? io::Json() : io::Json(output))
                           .text());
  } else if (shown) {
    fmt::print("{}", result);
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
