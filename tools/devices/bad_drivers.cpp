// SPDX-License-Identifier: Apache-2.0
#include "tools/devices/bad_drivers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "console/diagnostic_text.h"
#include "ir/support/narrate.h"
#include "tools/devices/driver_child.h"

namespace lockstep::tools {
namespace {

using Kind = InstanceOutcome::Kind;

DriverChild::Clock::time_point endOf(const ProbePaths& paths) {
  return DriverChild::Clock::now() + std::chrono::seconds(paths.timeout_seconds);
}

InstanceOutcome outcomeOf(const ChildEnd& end) {
  switch (end.kind) {
    case ChildEnd::Kind::Answered:
      break;
    case ChildEnd::Kind::Crashed:
      return {.kind = Kind::Crashed, .result = end.signal};
    case ChildEnd::Kind::TimedOut:
      return {.kind = Kind::TimedOut};
    case ChildEnd::Kind::Unknown:
      return {.kind = Kind::SystemFailed};
  }
  std::istringstream words(end.answer);
  int kind = 0;
  InstanceOutcome outcome;
  if (!(words >> kind >> outcome.result >> outcome.device_count)) return {.kind = Kind::SystemFailed};
  outcome.kind = static_cast<Kind>(kind);
  return outcome;
}

/// Of the drivers that did harm; none alone may have.
Diagnostic explain(const InstanceOutcome& together, const BadDrivers& found) {
  Diagnostic what{.code = "vulkan.bad_driver", .message = {}, .where = {}, .notes = {}, .remedy = {}};
  std::vector<std::string> drivers;
  for (const BadDriver& each : found.bad)
    drivers.push_back(fmt::format("the driver of '{}' {}", each.manifest.string(), harmOf(each.outcome)));
  if (drivers.empty()) {
    what.message = fmt::format("a Vulkan driver or layer {} while all of them were being loaded, and none does so alone", harmOf(together));
    what.remedy = "choose one with VK_DRIVER_FILES, as 'lockstep doctor' lists them; --device reference loads none";
    return what;
  }
  what.message = fmt::format("{} while it was being loaded; ", fmt::join(drivers, ", "));
  const bool late = std::ranges::any_of(found.bad, [](const BadDriver& each) { return each.outcome.kind == Kind::TimedOut; });
  what.remedy = late ? "update or remove it, or give it more seconds with LOCKSTEP_DRIVER_TIMEOUT; " : "update or remove it; ";
  if (found.others.empty()) {
    what.message += "there is no other, so there are no Vulkan devices";
    what.remedy += "VK_DRIVER_FILES takes the file of another one; --device reference loads none";
  } else {
    what.message += "it is left out";
    what.remedy += fmt::format("until then export VK_DRIVER_FILES={}; --device reference loads none", found.others);
  }
  return what;
}

void warn(const Diagnostic& what) {
  std::string text = toString(what);
  if (const size_t at = text.find("error:"); at != std::string::npos) text.replace(at, 6, "warning:");
  fmt::print(stderr, "{}\n", console::paintDiagnostic(std::move(text), stderr));
}

}  // namespace

InstanceOutcome askDrivers(const ProbePaths& paths, const Question& question, const std::filesystem::path& manifest) {
  return outcomeOf(DriverChild(paths.command, question, manifest).wait(endOf(paths)));
}

std::string answerText(const InstanceOutcome& outcome) {
  return fmt::format("{} {} {}\n", static_cast<int>(outcome.kind), outcome.result, outcome.device_count);
}

bool isHarmful(const InstanceOutcome& outcome) { return outcome.kind == Kind::Crashed || outcome.kind == Kind::TimedOut; }

std::string harmOf(const InstanceOutcome& outcome) {
  if (outcome.kind == Kind::TimedOut) return "did not answer in time";
  return outcome.result == 0 ? "ended the process" : fmt::format("crashed with signal {}", outcome.result);
}

BadDrivers findBadDrivers(const ProbePaths& paths, const Question& question) {
  const std::vector<std::filesystem::path> manifests = driverManifests(paths);
  std::vector<DriverChild> children;
  for (const std::filesystem::path& manifest : manifests) children.emplace_back(paths.command, question, manifest);
  const auto until = endOf(paths);
  BadDrivers found;
  for (size_t i = 0; i < manifests.size(); ++i) {
    const InstanceOutcome alone = outcomeOf(children[i].wait(until));
    if (isHarmful(alone)) found.bad.push_back({manifests[i], alone});
    if (alone.kind != Kind::Done || alone.device_count == 0) continue;
    found.others += (found.others.empty() ? "" : ":") + manifests[i].string();
    found.device_count += alone.device_count;
  }
  return found;
}

std::string loadingProblem(const ProbePaths& paths, const std::string& library) {
  const ChildEnd end = DriverChild(paths.command, {"library", library}).wait(endOf(paths));
  switch (end.kind) {
    case ChildEnd::Kind::Answered:
      return end.answer.substr(1);
    case ChildEnd::Kind::Crashed:
      return end.signal == 0 ? "it ends the process" : fmt::format("it crashes with signal {}", end.signal);
    case ChildEnd::Kind::TimedOut:
      return "it does not come to an end";
    case ChildEnd::Kind::Unknown:
      return "";
  }
  return "";
}

Result<int> driverTimeout() {
  const char* text = std::getenv("LOCKSTEP_DRIVER_TIMEOUT");
  if (text == nullptr || *text == '\0') return ProbePaths{}.timeout_seconds;
  const std::string_view digits = text;
  int seconds = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), seconds);
  if (error == std::errc() && end == digits.end() && seconds >= 0 && seconds <= 3600) return seconds;
  return fail("vulkan.driver_timeout", fmt::format("LOCKSTEP_DRIVER_TIMEOUT is '{}', wanted a number of seconds from 0 to 3600", digits),
              {}, "set it to a number, or unset it for 30 seconds");
}

Status leaveOutBadDrivers() {
  ProbePaths paths = ProbePaths::system();
  // A wrong number is no reason to go on without Vulkan.
  paths.timeout_seconds = driverTimeout().orThrow();
  if (paths.timeout_seconds == 0) return Success{};
  const Question question = {"devices"};
  const InstanceOutcome together = askDrivers(paths, question);
  if (together.kind == Kind::SystemFailed)
    narrate([] { return std::string("drivers: they could not be tried in a process of their own"); });
  if (!isHarmful(together)) return Success{};
  const BadDrivers found = findBadDrivers(paths, question);
  const Diagnostic what = explain(together, found);
  warn(what);
  if (found.bad.empty() || found.others.empty()) {
    return Failure{.diagnostics = {what}, .exit_code = ExitCode::NoDevice};
  }
  // Few threads exist before a device is chosen, and none of ours reads the environment meanwhile.
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) ::setenv(variable, found.others.c_str(), 1);
  return Success{};
}

}  // namespace lockstep::tools
