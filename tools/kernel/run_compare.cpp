// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/run_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "console/findings_text.h"
#include "console/options.h"
#include "frontend/io/npy.h"
#include "tools/kernel/buffer_compare.h"

namespace lockstep::tools {
namespace {

constexpr std::array<std::string_view, 5> kVerdicts{"equal", "rounding", "race", "wrong", "driver limit"};

/// "0.1=y.npy"
Result<Expectation> parseOne(const std::string& option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || !text.ends_with(".npy")) {
    return console::usage("expect", fmt::format("{} '{}' names no binding and file", option, text),
                          fmt::format("write {} GROUP.BINDING=FILE.npy", option));
  }
  LS_TRY(const Slot slot, console::asUsage(parseSlot(text.substr(0, equals))));
  return Expectation{.slot = slot, .file = text.substr(equals + 1), .within = {}};
}

/// The elements of a file for a binding that holds `like`.
Result<io::Array> readLike(const std::string& file, const io::Array& like, bool same_type) {
  LS_TRY(io::Array array, io::readNpy(file));
  if (array.elementCount() != like.elementCount() || (same_type && array.type != like.type)) {
    return fail("run.expect", fmt::format("'{}' is {} but the binding holds {}", file, io::describe(array), io::describe(like)), {},
                "save an array of the same type and size");
  }
  return array;
}

bool isWritten(const kernel::GlobalVariable& variable) {
  return variable.space == kernel::AddressSpace::Storage && variable.access != kernel::Access::Read;
}

/// A binding that a kernel writes, in two runs of it.
struct WrittenDifference {
  std::string element;  ///< "0.1 y[3].mass"
  ArrayDifference numbers;
};
/// In the order of the bindings.
std::vector<WrittenDifference> compareWritten(const kernel::Module& module, const std::map<Slot, Bytes>& got,
                                              const std::map<Slot, Bytes>& want, const FloatTolerance& tolerance) {
  std::vector<WrittenDifference> all;
  for (const auto& [slot, content] : want) {
    const kernel::GlobalVariable* variable = findVariable(module, slot);
    if (variable == nullptr || !isWritten(*variable)) continue;
    BufferDifference found = compareBuffers(module, *variable, got.at(slot), content, tolerance);
    all.push_back({.element = fmt::format("{} {}{}", toString(slot), variable->name, found.element), .numbers = found.numbers});
  }
  return all;
}

/// All that the runs of one device left.
struct Sample {
  std::string device;
  std::vector<std::map<Slot, Bytes>> results;
  std::optional<Failure> failure;
};

Sample runOn(const KernelRun& run, const std::string& device, size_t runs) {
  Sample sample{.device = device, .results = {}, .failure = {}};
  for (size_t i = 0; i < runs && !sample.failure; ++i) {
    KernelRun one = run;
    one.device = device;
    Result<KernelResult> result = runKernel(std::move(one));
    if (result.ok()) {
      sample.results.push_back(std::move(result->bytes));
    } else {
      sample.failure = result.failure();
    }
  }
  return sample;
}

/// A kernel with a fault that only the sanitizer sees; none where it cannot run.
std::vector<Finding> racesIn(const KernelRun& run) {
  KernelRun watched = run;
  watched.device = "auto";
  watched.sanitize = SanitizeOptions{.checks = parseSanitizeChecks("race", false).orThrow()};
  Result<KernelResult> result = runKernel(std::move(watched));
  if (!result.ok()) return {};
  std::vector<Finding> races = std::move(result->findings);
  std::erase_if(races, [](const Finding& finding) {
    return !finding.diagnostic.code.starts_with("race.") || finding.severity != Finding::Severity::Error;
  });
  return races;
}

std::string runsText(size_t runs) { return runs == 1 ? "1 run" : fmt::format("{} runs", runs); }

/// A run of a device that left other bits than its first one.
std::optional<std::string> findRace(const kernel::Module& module, const Sample& sample) {
  for (size_t i = 1; i < sample.results.size(); ++i) {
    for (const WrittenDifference& one : compareWritten(module, sample.results[i], sample.results[0], {})) {
      const ArrayDifference& numbers = one.numbers;
      if (numbers.equal()) continue;
      return fmt::format("on {} run {} did not repeat run 1: {} was {} and then {}; {} of {} numbers changed", sample.device, i + 1,
                         one.element, numberText(numbers.want), numberText(numbers.got), numbers.different, numbers.elements);
    }
  }
  return std::nullopt;
}

/// Two devices that each agree with themselves.
void compareTwo(DeviceComparison& comparison, const kernel::Module& module, const Sample& first, const Sample& other,
                const Tolerance& tolerance) {
  const FloatTolerance allowed{.relative = tolerance.rtol, .of_typical = tolerance.rtol, .absolute = tolerance.atol};
  for (const WrittenDifference& one : compareWritten(module, other.results.front(), first.results.front(), allowed)) {
    const ArrayDifference& numbers = one.numbers;
    const Verdict verdict = numbers.equal() ? Verdict::Equal : numbers.within() ? Verdict::Rounding : Verdict::Wrong;
    if (verdict == Verdict::Equal || verdict <= comparison.verdict) continue;
    comparison.verdict = verdict;
    comparison.why = fmt::format("{} is {} on {} and {} on {} ({}, allowed {:.3g}); ", one.element, numberText(numbers.got), other.device,
                                 numberText(numbers.want), first.device, ulpsText(numbers.ulps), numbers.bound);
    comparison.why += numbers.within()
                          ? fmt::format("{} of {} numbers differ, none by more than is allowed", numbers.different, numbers.elements)
                          : fmt::format("{} of {} numbers differ by more than is allowed", numbers.beyond, numbers.elements);
  }
}

}  // namespace

std::string_view toString(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

Result<std::vector<Expectation>> parseExpectations(const std::vector<std::string>& expects, const std::vector<std::string>& withins) {
  std::vector<Expectation> all;
  for (const std::string& text : expects) {
    LS_TRY(all.emplace_back(), parseOne("--expect", text));
  }
  for (const std::string& text : withins) {
    LS_TRY(const Expectation bound, parseOne("--within", text));
    const auto found = std::ranges::find(all, bound.slot, &Expectation::slot);
    if (found == all.end()) return console::usage("expect", fmt::format("binding {} of --within has no --expect", toString(bound.slot)));
    found->within = bound.file;
  }
  return all;
}

Result<std::vector<ExpectationResult>> compareExpected(const std::vector<Expectation>& expectations, const Tolerance& tolerance,
                                                       const kernel::Module& module, const std::map<Slot, Bytes>& bytes) {
  std::vector<ExpectationResult> results;
  for (const Expectation& one : expectations) {
    const auto found = bytes.find(one.slot);
    const kernel::GlobalVariable* variable = findVariable(module, one.slot);
    if (found == bytes.end() || variable == nullptr)
      return console::usage("expect", fmt::format("binding {} of --expect has no --bind", toString(one.slot)));
    const io::Array got = toArray(found->second, module, *variable);
    LS_TRY(const io::Array want, readLike(one.file, got, true));
    ExpectationResult& result = results.emplace_back(ExpectationResult{.slot = one.slot, .variable = variable->name, .file = one.file});
    if (one.within.empty()) {
      BufferDifference found =
          compareBuffers(module, *variable, got.data, want.data, {.relative = tolerance.rtol, .absolute = tolerance.atol});
      result.numbers = found.numbers;
      result.element = std::move(found.element);
    } else {
      LS_TRY(const io::Array within, readLike(one.within, got, false));
      result.numbers = compareArrays(got, want, within.toDoubles());
      result.element = fmt::format("[{}]", result.numbers.worst);
    }
  }
  return results;
}

std::string toText(const ExpectationResult& result) {
  const std::string what = fmt::format("{} {}", toString(result.slot), result.variable);
  if (result.numbers.equal()) return fmt::format("{} is equal to {} in {} elements", what, result.file, result.numbers.elements);
  const std::string numbers = toText(result.numbers, result.variable + result.element);
  return fmt::format("{} {} {}: {}", what, result.numbers.within() ? "agrees with" : "differs from", result.file, numbers);
}

io::Json toJson(const ExpectationResult& result) {
  return io::Json::object()
      .add("name", toString(result.slot))
      .add("file", result.file)
      .add("within", result.numbers.within())
      .add("numbers", toJson(result.numbers));
}

Result<DeviceComparison> compareDevices(const KernelRun& run, const std::vector<std::string>& devices, size_t runs,
                                        const Tolerance& tolerance) {
  std::vector<Sample> samples;
  for (const std::string& device : devices) {
    // A selector that names nothing is no verdict about the kernel.
    LS_CHECK(chooseDevice(device));
    samples.push_back(runOn(run, device, runs));
  }
  DeviceComparison comparison;
  for (const Sample& sample : samples)
    comparison.devices.push_back({sample.device, sample.results.size(), sample.failure ? toString(sample.failure->diagnostics) : ""});
  if (std::ranges::all_of(samples, [](const Sample& sample) { return sample.failure.has_value(); })) return *samples.front().failure;

  comparison.findings = racesIn(run);
  const Sample* reference = nullptr;
  for (const Sample& sample : samples) {
    if (std::optional<std::string> race = findRace(run.module, sample)) {
      comparison.verdict = Verdict::Race;
      comparison.why = *std::move(race);
      return comparison;
    }
    if (!sample.failure && reference == nullptr) reference = &sample;
  }
  if (!comparison.findings.empty()) {
    comparison.verdict = Verdict::Race;
    const Diagnostic& race = comparison.findings.front().diagnostic;
    comparison.why = fmt::format("the sanitizer found {}: {}", race.code, race.message);
    return comparison;
  }
  for (const Sample& sample : samples) {
    if (!sample.failure) continue;
    comparison.verdict = Verdict::DriverLimit;
    comparison.why = fmt::format("the kernel ran on {} and failed on {}: {}", reference->device, sample.device,
                                 sample.failure->diagnostics.front().message);
    return comparison;
  }
  for (const Sample& sample : samples) compareTwo(comparison, run.module, *reference, sample, tolerance);
  if (comparison.verdict == Verdict::Equal) comparison.why = fmt::format("the same bits in {}", runsText(devices.size() * runs));
  return comparison;
}

std::string toText(const DeviceComparison& comparison) {
  std::string text = fmt::format("verdict: {}: {}\n", toString(comparison.verdict), comparison.why);
  for (const DeviceRuns& one : comparison.devices)
    text += fmt::format("  {}: {}\n", one.device, one.error.empty() ? runsText(one.runs) : one.error);
  return text;
}

io::Json toJson(const DeviceComparison& comparison) {
  io::Json devices = io::Json::array();
  for (const DeviceRuns& one : comparison.devices)
    devices.add(io::Json::object()
                    .add("device", one.device)
                    .add("runs", uint64_t{one.runs})
                    .add("error", one.error.empty() ? io::Json() : io::Json(one.error)));
  return io::Json::object()
      .add("verdict", toString(comparison.verdict))
      .add("why", comparison.why)
      .add("devices", devices)
      .add("findings", console::findingsJson(comparison.findings));
}

}  // namespace lockstep::tools
