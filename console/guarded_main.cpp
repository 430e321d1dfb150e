// SPDX-License-Identifier: Apache-2.0
#include "console/guarded_main.h"

#include <fmt/format.h>

#include <new>
#include <vector>

#include "console/diagnostic_text.h"

namespace lockstep::console {
namespace {

int report(const std::vector<Diagnostic>& diagnostics, ExitCode code) {
  std::fflush(stdout);
  fmt::print(stderr, "{}", renderWithSource(diagnostics));
  return static_cast<int>(code);
}

}  // namespace

int guardedMain(const std::function<Result<ExitCode>()>& body) {
  try {
    Result<ExitCode> result = body();
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

}  // namespace lockstep::console
