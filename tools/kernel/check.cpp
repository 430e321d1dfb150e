// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with WGSL files, without running them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <ranges>

#include "backends/backend.h"
#include "console/diagnostic_text.h"
#include "console/findings_text.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/wgsl/check/limits.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/program/profile.h"
#include "ir/support/nearest.h"
#include "tools/kernel/kernel_file.h"
#include "tools/kernel/kernel_run.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

using wgsl::Severity;

constexpr std::array<std::string_view, 4> kSeverities{"off", "info", "warning", "error"};

/// What a profile says of a device. What it does not say is what every WebGPU device has if the profile is of one of them. On a real
/// device groups and bindings are numbered anew, and uniform buffers are bound as storage buffers.
wgsl::LimitSet limitsOf(const std::string& name, const program::DeviceProfile& profile, bool webgpu) {
  wgsl::LimitSet set = wgsl::portableLimits();
  set.name = name;
  if (!webgpu) set.maxima.fill(std::numeric_limits<uint64_t>::max());
  using wgsl::Limit;
  const std::array<std::pair<Limit, uint64_t>, 9> known{{{Limit::StorageBuffersPerShaderStage, profile.max_storage_buffers},
                                                         {Limit::StorageBufferBindingSize, profile.max_binding_bytes},
                                                         {Limit::ImmediateSize, profile.max_immediate_bytes},
                                                         {Limit::ComputeWorkgroupStorageSize, profile.max_workgroup_bytes},
                                                         {Limit::ComputeInvocationsPerWorkgroup, profile.max_workgroup_invocations},
                                                         {Limit::ComputeWorkgroupSizeX, profile.max_workgroup_size_x},
                                                         {Limit::ComputeWorkgroupSizeY, profile.max_workgroup_size_y},
                                                         {Limit::ComputeWorkgroupSizeZ, profile.max_workgroup_size_z},
                                                         {Limit::ComputeWorkgroupsPerDimension, profile.max_groups_per_dimension}}};
  for (const auto& [limit, maximum] : known) set.maxima[static_cast<size_t>(limit)] = maximum;
  if (webgpu) return set;
  set.maxima[static_cast<size_t>(Limit::UniformBuffersPerShaderStage)] = profile.max_storage_buffers;
  set.maxima[static_cast<size_t>(Limit::UniformBufferBindingSize)] = profile.max_binding_bytes;
  return set;
}

/// "portable", a profile's name or a device.
Result<wgsl::LimitSet> findLimits(const std::string& name) {
  if (name == "portable") return wgsl::portableLimits();
  std::vector<std::string_view> names{"portable", "auto", "reference", "vulkan"};
  for (const program::DeviceProfile& profile : program::namedProfiles()) {
    if (profile.name == name) return limitsOf(name, profile, profile.style == program::ExecutionStyle::Gpu);
    names.push_back(profile.name);
  }
  const bool device = name == "auto" || name == "reference" || name.starts_with("vulkan");
  if (!device) return usage("limits", fmt::format("'{}' is neither a profile nor a device", name), suggest(name, names));
  LS_TRY(const ChosenDevice chosen, chooseDevice(name));
  return limitsOf(chosen.info.name, chosen.info.profile, false);
}

/// What was found in one file.
struct Report {
  std::string file, text;
  std::vector<Diagnostic> errors;
  std::vector<wgsl::Warning> warnings;
};

struct CheckOptions {
  std::optional<wgsl::LimitSet> limits;
  std::map<std::string, double> overrides;
  std::array<uint32_t, 3> groups{};  ///< of a dispatch; zeros: not known
};

/// Storage buffers of any size that only some devices have room for. Nothing is said of a kernel for arrays of fixed sizes: it was made
/// for one device.
std::vector<Diagnostic> portableWarnings(const wgsl::Reflection& reflection) {
  std::vector<Diagnostic> warnings = wgsl::checkLimits(reflection, wgsl::portableLimits());
  const bool any_size = std::ranges::any_of(reflection.bindings, [](const wgsl::ReflectedBinding& binding) { return binding.stride != 0; });
  const std::string_view name = toString(wgsl::Limit::StorageBuffersPerShaderStage);
  std::erase_if(warnings, [&](const Diagnostic& each) { return !any_size || each.message.find(name) == std::string::npos; });
  return warnings;
}

Report checkFile(const std::string& file, std::string text, const CheckOptions& options) {
  Report report{.file = file, .text = std::move(text), .errors = {}, .warnings = {}};
  report.errors = wgsl::check(report.text, {.file_name = file, .overrides = {}, .groups = options.groups, .warnings = &report.warnings});
  const bool dispatched = options.groups[0] != 0;
  // Nine storage buffers are declared with nine words of that name.
  const bool many = std::ranges::distance(std::views::split(report.text, std::string_view("storage"))) > 8;
  if (!report.errors.empty() || (!options.limits && options.overrides.empty() && !dispatched && !many)) return report;
  const auto reflection = wgsl::reflect(report.text, {.file_name = file, .overrides = options.overrides});
  if (!reflection.ok()) {
    report.errors = reflection.diagnostics();
    return report;
  }
  const auto add = [](std::vector<Diagnostic>& list, std::vector<Diagnostic> more) { std::ranges::move(more, std::back_inserter(list)); };
  std::vector<Diagnostic> warnings;
  if (options.limits) {
    report.errors = wgsl::checkLimits(*reflection, *options.limits);
    if (dispatched) add(report.errors, wgsl::checkDispatch(*reflection, options.groups, *options.limits));
    warnings = wgsl::checkHeadroom(*reflection, *options.limits);
    add(warnings, wgsl::checkSharedGroups(*reflection));
  } else {
    warnings = portableWarnings(*reflection);
    if (dispatched) add(warnings, wgsl::checkDispatch(*reflection, options.groups, wgsl::portableLimits()));
  }
  for (Diagnostic& warning : warnings) report.warnings.push_back({.severity = Severity::Warning, .diagnostic = std::move(warning)});
  return report;
}

io::Json orNull(uint32_t number) { return number == 0 ? io::Json() : io::Json(number); }

/// Where a message is: the columns end before `end_column`.
io::Json& addPlace(io::Json& object, const Location& where, uint32_t length) {
  const bool has_end = where.column != 0 && length != 0;
  return object.add("line", orNull(where.line))
      .add("column", orNull(where.column))
      .add("end_column", orNull(has_end ? where.column + length : 0));
}

io::Json toJson(Severity severity, const Diagnostic& diagnostic) {
  io::Json notes = io::Json::array();
  for (const Note& note : diagnostic.notes) {
    io::Json object = io::Json::object();
    notes.add(addPlace(object.add("message", note.message), note.where, note.length));
  }
  io::Json object = io::Json::object();
  object.add("severity", kSeverities[static_cast<size_t>(severity)])
      .add("code", diagnostic.code)
      .add("message", diagnostic.message)
      .add("file", diagnostic.where.file);
  return addPlace(object, diagnostic.where, diagnostic.length)
      .add("notes", notes)
      .add("remedy", diagnostic.remedy.empty() ? io::Json() : io::Json(diagnostic.remedy));
}

/// As a run's findings are: what is told of a kernel has one form, wherever it comes from.
std::vector<Finding> findingsOf(const Report& report) {
  std::vector<Finding> findings;
  for (const Diagnostic& error : report.errors)
    findings.push_back({.severity = Finding::Severity::Error, .diagnostic = error, .invocation = {}});
  for (const wgsl::Warning& warning : report.warnings) {
    if (warning.severity == Severity::Warning)
      findings.push_back({.severity = Finding::Severity::Warning, .diagnostic = warning.diagnostic, .invocation = {}});
  }
  for (Finding& finding : findings) {
    for (Note& note : finding.diagnostic.notes) {
      if (note.where.file.empty()) note.where.file = report.file;
    }
  }
  return findings;
}

io::Json toJson(const Report& report) {
  io::Json list = io::Json::array();
  for (const Diagnostic& error : report.errors) list.add(toJson(Severity::Error, error));
  for (const wgsl::Warning& warning : report.warnings) list.add(toJson(warning.severity, warning.diagnostic));
  return io::Json::object().add("file", report.file).add("ok", report.errors.empty()).add("diagnostics", list);
}

void printReport(const Report& report) {
  for (const Diagnostic& error : report.errors) {
    fmt::print("{}", console::paintDiagnostic(wgsl::renderDiagnostics({error}, report.text), stdout));
  }
  for (const wgsl::Warning& warning : report.warnings) {
    fmt::print("{}", console::paintDiagnostic(wgsl::renderWarnings({warning}, report.text), stdout));
  }
}

}  // namespace

Result<ExitCode> checkVerb(Arguments arguments) {
  std::vector<std::string> paths, override_texts;
  std::string limit_name, dispatch;
  bool json = false;
  Options options("lockstep check",
                  "Says what is wrong with WGSL files: errors, and warnings from rules that the files leave on. Overrides need no\n"
                  "values. The exit code is 4 if there is an error.");
  options.arguments(paths, "FILE", "WGSL files");
  options.value(limit_name, "--limits", "also what the entry points need: portable (what every WebGPU device has), a profile or a device");
  options.choices("--limits", {"portable", "auto", "reference", "vulkan"});
  options.value(dispatch, "--dispatch", "X,Y,Z, the workgroups of a dispatch: what is too large for them is found, too");
  options.list(override_texts, "--override", "NAME=NUMBER, the value of an override constant; what depends on it is checked, too");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  CheckOptions known;
  LS_TRY(known.overrides, parseOverrides(override_texts));
  if (!limit_name.empty()) {
    LS_TRY(known.limits, findLimits(limit_name));
  }
  if (!dispatch.empty()) {
    LS_TRY(known.groups, console::asUsage(parseGroups(dispatch)));
  }
  io::Json files = io::Json::array();
  std::vector<Finding> findings;
  size_t errors = 0, warnings = 0;
  for (const std::string& path : paths) {
    LS_TRY(std::string text, io::readTextFile(path));
    const Report report = checkFile(path, std::move(text), known);
    errors += report.errors.size();
    warnings += report.warnings.size();
    if (json) {
      files.add(toJson(report));
      std::ranges::move(findingsOf(report), std::back_inserter(findings));
    } else {
      printReport(report);
    }
  }
  if (json) {
    fmt::print("{}\n", io::Json::object()
                           .add("files", files)
                           .add("findings", console::findingsJson(findings))
                           .add("errors", uint64_t{errors})
                           .add("warnings", uint64_t{warnings})
                           .text());
  } else {
    fmt::print("{} {}, {} {}, {} {}\n", paths.size(), paths.size() == 1 ? "file" : "files", errors, errors == 1 ? "error" : "errors",
               warnings, warnings == 1 ? "warning" : "warnings");
  }
  return errors == 0 ? ExitCode::Ok : ExitCode::BadInput;
}

}  // namespace lockstep::tools
