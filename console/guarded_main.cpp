// SPDX-License-Identifier: Apache-2.0
#include "console/guarded_main.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

#include "console/diagnostic_text.h"
#include "console/standard_streams.h"
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

void printError(const std::string& text) { std::fputs(text.c_str(), stderr); }

int report(bool json, const std::vector<Diagnostic>& diagnostics, ExitCode code) {
  if (json) {
    io::Json errors = io::Json::array();
    for (const Diagnostic& diagnostic : diagnostics) errors.add(errorJson(diagnostic));
    std::puts(io::Json::object().add("exit_code", static_cast<int>(code)).add("errors", errors).text().c_str());
  }
  const bool arrived = !flushStandardOutput();
  if (!json || !arrived) printError(renderWithSource(diagnostics));
  return static_cast<int>(code);
}

int report(bool json, const Failure& failure) { return report(json, failure.diagnostics, failure.exit_code); }

Failure outOfMemory() {
  Failure failure = fail("memory.host", "the machine has no memory left", {}, "use a smaller batch or model");
  failure.exit_code = ExitCode::OutOfMemory;
  return failure;
}

/// What nobody could foresee: a folder that may not be read, a limit on processes.
Failure refusedBySystem(const std::system_error& error) {
  const bool memory = error.code() == std::errc::not_enough_memory || error.code() == std::errc::resource_unavailable_try_again;
  Failure failure = fail("system.refused", fmt::format("the operating system refused: {}", error.what()), {},
                         memory ? "raise the limit on processes or memory, or use fewer threads" : "check the path and its permissions");
  if (memory) failure.exit_code = ExitCode::OutOfMemory;
  return failure;
}

Failure lostOutput(const std::string& why) {
  return fail("file.write", fmt::format("the standard output cannot be written: {}", why), {},
              "check that what it goes to is open and has room");
}

constexpr char kNoMemory[] = "error: memory.host: the machine has no memory left\n";

std::terminate_handler other_handler = nullptr;

/// Memory may also end where nothing can catch: before main, in a thread of a library, in a function that may not throw. What is on the
/// disk is whole at any moment, so that the process may end there.
[[noreturn]] void onTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    (void)!::write(STDERR_FILENO, kNoMemory, sizeof(kNoMemory) - 1);
    ::_exit(static_cast<int>(ExitCode::OutOfMemory));
  } catch (...) {
    if (other_handler != nullptr) other_handler();
  }
  std::abort();
}

/// Before every other object of the program is made; those of libraries allocate, too.
struct TerminateHandler {
  TerminateHandler() { other_handler = std::set_terminate(onTerminate); }
};
[[gnu::init_priority(101)]] const TerminateHandler terminate_handler;

/// Whatever went wrong as an exit code. A success counts only when all that was printed has arrived.
int runGuarded(bool json, const std::function<Result<ExitCode>()>& body) {
  try {
    const Result<ExitCode> result = body();
    if (!result.ok()) return report(json, result.failure());
    if (const std::optional<std::string> why = flushStandardOutput()) {
      printError(renderWithSource(lostOutput(*why).diagnostics));
      return static_cast<int>(*result == ExitCode::Ok ? ExitCode::BadInput : *result);
    }
    return static_cast<int>(*result);
  } catch (const Error& error) {
    return report(json, error.diagnostics(), error.exitCode());
  } catch (const std::bad_alloc&) {
    return report(json, outOfMemory());
  } catch (const std::system_error& error) {
    // The printing functions throw when a part of the text could not be written.
    if (std::ferror(stdout) != 0) return report(false, lostOutput(error.code().message()));
    return report(json, refusedBySystem(error));
  } catch (const std::exception& exception) {
    // InternalError and whatever escaped from a library.
    if (json) return report(true, fail("internal", exception.what(), {}, kBugRemedy).diagnostics, ExitCode::Internal);
    (void)flushStandardOutput();
    printError(fmt::format("{}\n  {}\n", withoutControls(exception.what()), kBugRemedy));
    return static_cast<int>(ExitCode::Internal);
  }
}

}  // namespace

int guardedMain(int count, char** arguments, const GuardedBody& body) {
  reserveStandardStreams();
  try {
    const std::vector<std::string> given(arguments + std::min(count, 1), arguments + std::max(count, 0));
    const bool json = std::ranges::find(given, "--json") != given.end();
    const int code = runGuarded(json, [&] { return body(given); });
    // The end of a process waits for the threads of its drivers; those of a device that does not answer may never end.
    if (code == static_cast<int>(ExitCode::DeviceLost)) std::_Exit(code);
    return code;
  } catch (const std::exception&) {
    // There was no memory left even to say so with a place.
    std::fputs(kNoMemory, stderr);
    return static_cast<int>(ExitCode::OutOfMemory);
  }
}

}  // namespace lockstep::console
