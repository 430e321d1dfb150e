// SPDX-License-Identifier: Apache-2.0
#include "console/guarded_main.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <vector>

#include "console/diagnostic_text.h"
#include "frontend/io/jsonl.h"

namespace lockstep::console {
namespace {

constexpr const char* kBugRemedy = "this is a bug in lockstep, not in your program; please report it with the command that led here";

io::Json placeJson(const Location& where) { return where.file.empty() && !where.known() ? io::Json() : io::Json(toString(where)); }

io::Json errorJson(const Diagnostic& diagnostic) {
  io::Json notes = io::Json::array();
  for (const Note& note : diagnostic.notes) notes.add(io::Json::object().add("message", note.message).add("place", placeJson(note.where)));
  return io::Json::object()
      .add("code", diagnostic.code)
      .add("message", diagnostic.message)
      .add("place", placeJson(diagnostic.where))
      .add("remedy", diagnostic.remedy.empty() ? io::Json() : io::Json(diagnostic.remedy))
      .add("notes", notes);
}

int report(bool json, const std::vector<Diagnostic>& diagnostics, ExitCode code) {
  if (json) {
    io::Json errors = io::Json::array();
    for (const Diagnostic& diagnostic : diagnostics) errors.add(errorJson(diagnostic));
    fmt::print("{}\n", io::Json::object().add("exit_code", static_cast<int>(code)).add("errors", errors).text());
  }
  std::fflush(stdout);
  if (!json) fmt::print(stderr, "{}", renderWithSource(diagnostics));
  return static_cast<int>(code);
}

}  // namespace

int guardedMain(std::span<const std::string> arguments, const std::function<Result<ExitCode>()>& body) {
  const bool json = std::ranges::find(arguments, "--json") != arguments.end();
  try {
    Result<ExitCode> result = body();
    if (!result.ok()) return report(json, result.diagnostics(), result.failure().exit_code);
    return static_cast<int>(*result);
  } catch (const Error& error) {
    return report(json, error.diagnostics(), error.exitCode());
  } catch (const std::bad_alloc&) {
    const Failure failure = fail("memory.host", "the machine has no memory left", {}, "use a smaller batch or model");
    return report(json, failure.diagnostics, ExitCode::OutOfMemory);
  } catch (const std::exception& exception) {
    // InternalError and whatever escaped from a library.
    if (json) return report(true, fail("internal", exception.what(), {}, kBugRemedy).diagnostics, ExitCode::Internal);
    std::fflush(stdout);
    fmt::print(stderr, "{}\n  {}\n", exception.what(), kBugRemedy);
    return static_cast<int>(ExitCode::Internal);
  }
}

}  // namespace lockstep::console
