// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "tools/new/new_project.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

/// The name becomes a target of CMake, which has these itself.
constexpr std::array<std::string_view, 9> kTargets = {"all",     "clean",          "edit_cache",    "help", "install",
                                                      "package", "package_source", "rebuild_cache", "test"};

Status checkName(const std::string& name) {
  const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.empty() || !isLetter(name[0]) || !std::ranges::all_of(name, [&](char c) { return isLetter(c) || isDigit(c); })) {
    return usage("name", fmt::format("'{}' is not a name", name), "use letters, digits and _, not a digit first");
  }
  if (std::ranges::find(kTargets, name) != kTargets.end()) {
    return usage("name", fmt::format("'{}' is a target that every CMake project has", name), "choose another name");
  }
  return Success{};
}

std::string filledIn(std::string text, std::string_view key, std::string_view value) {
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size())) text.replace(at, key.size(), value);
  return text;
}

}  // namespace

Result<ExitCode> newVerb(Arguments arguments) {
  std::string name;
  bool json = false;
  Options options("lockstep new", "Makes a folder with a program that trains its own model. Refuses to overwrite an existing folder.");
  options.argument(name, "NAME", "the name of the folder and of the program");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  LS_CHECK(checkName(name));

  // Making the folder is the test for it: what another process makes meanwhile is not written into either.
  std::error_code error;
  if (!fs::create_directory(name, error)) {
    if (error) return fail("file.directory", fmt::format("cannot make the folder '{}': {}", name, error.message()));
    return fail("new.exists", fmt::format("'{}' exists already", name), {}, "choose another name; nothing was changed");
  }
  io::Json files = io::Json::array();
  for (const ProjectFile& file : projectFiles()) {
    const std::string text = filledIn(filledIn(std::string(file.text), "@NAME@", name), "@VERSION@", LOCKSTEP_VERSION);
    LS_CHECK(io::writeFileAtomically(fs::path(name) / file.name, std::string_view(text)));
    files.add((fs::path(name) / file.name).string());
  }
  if (json) {
    fmt::print("{}\n", io::Json::object().add("folder", name).add("files", files).text());
    return ExitCode::Ok;
  }
  fmt::print("made {}/; now:\n  cd {} && cmake -B build && cmake --build build\n  build/{}\n", name, name, name);
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
