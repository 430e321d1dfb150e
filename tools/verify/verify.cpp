// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "ir/support/nearest.h"
#include "tools/verb.h"
#include "tools/verify/golden_executor.h"
#include "tools/verify/golden_training.h"
#include "tools/verify/language_verify.h"
#include "tools/verify/program_verify.h"
#include "tools/verify/sample_verify.h"

namespace lockstep::tools {

namespace {

/// A failure of one case is that case's result; only the code says whether anything is wrong with us. A device or a machine that fails ends
/// it all: nothing was compared, and the next case would do no better.
Result<CaseReport> reportFailure(std::string name, std::string op, const Failure& failure) {
  const auto machines = {ExitCode::NoDevice, ExitCode::OutOfMemory, ExitCode::DeviceLost};
  if (std::ranges::find(machines, failure.exit_code) != machines.end()) return failure;
  const Diagnostic& first = failure.diagnostics.front();
  CaseReport report{.name = std::move(name), .op = std::move(op)};
  report.status = first.code == kUnsupportedCode ? CaseStatus::Unsupported : CaseStatus::Fail;
  report.why = first.code == kUnsupportedCode ? first.message : first.code + ": " + first.message;
  return report;
}

Result<CaseReport> runCase(GoldenExecutor& executor, const GoldenCase& golden) {
  try {
    const Result<OpOutcome> outcome = executor.runOp(golden);
    if (!outcome.ok()) return reportFailure(golden.name, golden.op, outcome.failure());
    return compareCase(golden, *outcome, executor.exact());
  } catch (const Error& error) {
    return reportFailure(golden.name, golden.op, {.diagnostics = error.diagnostics(), .exit_code = error.exitCode()});
  } catch (const InternalError& error) {
    // One broken case must not hide the others.
    return reportFailure(golden.name, golden.op, fail("internal", error.what()));
  }
}

Result<CaseReport> runTraining(GoldenExecutor& executor, const GoldenTraining& golden) {
  const auto failed = [&](const Failure& failure) -> Result<CaseReport> {
    LS_TRY(CaseReport report, reportFailure(golden.model, "train", failure));
    report.training = true;
    return report;
  };
  try {
    const Result<TrainingOutcome> outcome = executor.runTraining(golden);
    if (!outcome.ok()) return failed(outcome.failure());
    CaseReport report = compareTraining(golden, *outcome, executor.exact());
    if (report.status == CaseStatus::Pass || executor.exact()) return report;
    // Nine runs of the evaluator, so only where they decide.
    const Result<TrainingSensitivity> sensitivity = trainingSensitivity(golden);
    if (!sensitivity.ok()) return failed(sensitivity.failure());
    report = compareTraining(golden, *outcome, false, *sensitivity);
    if (report.status == CaseStatus::Pass) report.why = "no further than roundings alone move the exact run";
    return report;
  } catch (const Error& error) {
    return failed({.diagnostics = error.diagnostics(), .exit_code = error.exitCode()});
  } catch (const InternalError& error) {
    return failed(fail("internal", error.what()));
  }
}

/// The standard library reads and matches regular expressions by recursion, so that both texts have a limit: its stack has one too.
class Filter {
 public:
  static Result<Filter> parse(const std::string& text) {
    if (text.size() > kLongest) return usage("filter", fmt::format("--filter has {} characters, more than {}", text.size(), kLongest));
    try {
      return Filter(std::regex(text, std::regex::ECMAScript));
    } catch (const std::regex_error& error) {
      return usage("filter", fmt::format("--filter '{}' is not a regular expression: {}", text, error.what()));
    }
  }
  /// Of a longer name the first part counts.
  [[nodiscard]] bool takes(const std::string& name) const { return std::regex_search(name.substr(0, kLongest), pattern_); }

 private:
  explicit Filter(std::regex pattern) : pattern_(std::move(pattern)) {}
  static constexpr size_t kLongest = 1000;
  std::regex pattern_;
};

Result<ExitCode> verifyGolden(const std::string& path, const std::string& device, const std::string& filter, bool json) {
  LS_TRY(const Filter wanted, Filter::parse(filter));
  LS_TRY(const GoldenFile file, readGolden(path));
  LS_TRY(const std::unique_ptr<GoldenExecutor> executor, makeGoldenExecutor(device));
  std::vector<CaseReport> reports;
  const auto keep = [&](CaseReport report) {
    if (!json) fmt::print("{}\n", reportText(report));
    reports.push_back(std::move(report));
  };
  if (const auto& training = file.training) {
    if (wanted.takes(training->model)) {
      LS_TRY(CaseReport report, runTraining(*executor, *training));
      keep(std::move(report));
    }
  } else {
    for (const GoldenCase& golden : file.cases) {
      if (!wanted.takes(golden.name)) continue;
      LS_TRY(CaseReport report, runCase(*executor, golden));
      keep(std::move(report));
    }
  }
  if (reports.empty()) return usage("filter", fmt::format("no case of '{}' matches '{}'", path, filter));

  std::array<size_t, 3> counts{};
  for (const CaseReport& report : reports) ++counts[static_cast<size_t>(report.status)];
  if (json) {
    fmt::print("{}\n", reportJson(executor->device(), reports).text());
  } else {
    fmt::print("{} passed, {} failed, {} unsupported on {}\n", counts[0], counts[1], counts[2], executor->device());
  }
  return counts[1] + counts[2] == 0 ? ExitCode::Ok : ExitCode::NumericCheck;
}

constexpr std::array<std::string_view, 5> kKinds = {"golden", "llm", "samples", "train", "program"};

/// Ends at the first failure of the command itself; a difference does not hide those of the next name.
template <class VerifyOne>
Result<ExitCode> verifyEach(const std::vector<std::string>& names, VerifyOne verify_one) {
  ExitCode worst = ExitCode::Ok;
  for (const std::string& name : names) {
    LS_TRY(const ExitCode code, verify_one(name));
    if (code != ExitCode::Ok) worst = code;
  }
  return worst;
}

}  // namespace

Result<ExitCode> verifyVerb(Arguments arguments) {
  std::string what, filter;
  WeightChoices kept;
  std::vector<std::string> names;
  ProgramVerifyOptions program;
  int64_t steps = 20;
  Options options(
      "lockstep verify",
      "Compares a device with a golden file, a language model with what another program made of it, whole samples with the f64 evaluator, "
      "or a program with the reference, kernel by kernel.");
  options.argument(what, "WHAT", "golden, llm, samples, train or program");
  options.choices("WHAT", {"golden", "llm", "samples", "train", "program"});
  options.arguments(names, "NAME",
                    "golden: files (.safetensors) of ops or of a training run; llm: folders of checkpoints with expected.safetensors; "
                    "samples: a name, or all; train: a sample, whose first step is "
                    "compared kernel by kernel; program: a .program of a --dump-ir folder");
  options.value(program.device, "--device", fmt::format("{}; of golden and llm also evaluate (the f64 evaluator)", console::kDevices));
  options.choices("--device", {"auto", "reference", "vulkan", "evaluate"});
  options.value(program.against, "--against", "of train and program: the device that is right");
  options.value(filter, "--filter", "of golden: only the cases whose name contains this regular expression");
  options.value(steps, "--steps",
                "of samples: how many training steps; of train and program: runs on the same inputs, 2 unless it is given");
  options.value(program.inputs, "--inputs", "of program: its parameters, states and inputs; by default the inputs.safetensors beside it");
  kept.addTo(options, "of llm: ");
  options.value(program.out, "--out", "of train and program: the folder of the first kernel that differs; by default verify-NAME");
  options.flag(program.json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  const auto kind = std::ranges::find(kKinds, what);
  if (kind == kKinds.end()) return usage("verify", fmt::format("there is nothing named '{}' to verify", what), suggest(what, kKinds));
  const bool given = std::ranges::any_of(arguments, [](const std::string& one) { return one.starts_with("--steps"); });
  if (steps < 1) return usage("steps", fmt::format("--steps {} is less than 1", steps));
  if (given) program.rounds = steps;
  return verifyEach(names, [&](const std::string& name) -> Result<ExitCode> {
    if (what == "golden") return verifyGolden(name, program.device, filter, program.json);
    if (what == "llm") return verifyLanguage(name, program.device, kept, program.json);
    if (what == "samples") return verifySamples(name, program.device, steps, program.json);
    if (what == "train") return verifyTrain(name, program);
    return verifyProgram(name, program);
  });
}

}  // namespace lockstep::tools
