// SPDX-License-Identifier: Apache-2.0
// Gives WGSL files the standard layout.
#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/wgsl/syntax/format.h"
#include "frontend/wgsl/wgsl.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

Result<std::string> readInput(const std::string& path) {
  if (path != "-") return io::readTextFile(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

}  // namespace

Result<ExitCode> fmtVerb(Arguments arguments) {
  std::vector<std::string> paths;
  bool check = false, json = false;
  Options options("lockstep fmt",
                  "Gives WGSL files the standard layout: one statement per line, two spaces per level. Tokens, comments and line breaks\n"
                  "within a statement stay. A file with syntax errors is left as it is.");
  options.arguments(paths, "FILE", "files to rewrite; - reads the standard input and prints the result");
  options.flag(check, "--check", "change nothing; name the files that would change and exit with 4");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  // All texts are read first, so that a mistake in one file changes none.
  std::vector<std::pair<std::string, std::string>> changed;
  for (const std::string& path : paths) {
    LS_TRY(const std::string text, readInput(path));
    LS_TRY(std::string layout, wgsl::format(text, path == "-" ? "standard input" : path));
    if (path == "-" && !check) {
      fmt::print("{}", layout);
    } else if (layout != text) {
      changed.emplace_back(path, std::move(layout));
    }
  }
  io::Json names = io::Json::array();
  for (const auto& [path, layout] : changed) {
    names.add(path);
    if (!check) LS_CHECK(io::writeFileAtomically(path, std::string_view(layout)));
    if (!json) fmt::print("{}\n", path);
  }
  if (json) fmt::print("{}\n", io::Json::object().add("checked", uint64_t{paths.size()}).add("changed", names).text());
  return check && !changed.empty() ? ExitCode::BadInput : ExitCode::Ok;
}

}  // namespace lockstep::tools
