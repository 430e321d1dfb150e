// SPDX-License-Identifier: Apache-2.0
// What an error code or a lint rule means.
#include <fmt/format.h>

#include <filesystem>

#include "frontend/io/jsonl.h"
#include "ir/support/nearest.h"
#include "tools/explain/explanations.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

/// "docs/errors.md" with the folder of the installed pages, or as it is called in the repository.
std::string pageNamed(const std::string& page) {
  std::error_code error;
  const auto command = std::filesystem::canonical("/proc/self/exe", error);
  if (error) return page;
  const auto installed = (command.parent_path() / LOCKSTEP_DOCUMENTS / page).lexically_normal();
  return std::filesystem::exists(installed, error) ? installed.string() : page;
}

}  // namespace

Result<ExitCode> explainVerb(Arguments arguments) {
  std::string code;
  bool json = false;
  Options options("lockstep explain", "Says what an error code or a lint rule means: 'lockstep explain matmul.C3'.");
  options.argument(code, "CODE", "what follows 'error:' or 'warning:' in a message, or the name of a rule");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  const std::optional<Explanation> found = explanationOf(code);
  if (!found) {
    const std::string near = nearestName(code, explainedCodes());
    return usage("code", fmt::format("there is no error code or lint rule '{}'", code),
                 near.empty() ? fmt::format("{} lists them all", pageNamed("docs/errors.md")) : fmt::format("did you mean '{}'?", near));
  }
  const std::string link = pageNamed(found->page) + (found->anchor.empty() ? "" : "#" + found->anchor);
  if (json) {
    fmt::print("{}\n", io::Json::object().add("code", code).add("meaning", found->meaning).add("link", link).text());
  } else {
    fmt::print("{}: {}\n{}\n", code, found->meaning, link);
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
