// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "console/color.h"
#include "examples/recipes.h"
#include "experiment/command_line.h"
#include "frontend/io/file.h"
#include "tools/language/measured_model.h"
#include "tools/profile/profile_text.h"
#include "tools/tune/sample_kernels.h"
#include "tools/tune/tuner.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

struct Choices {
  std::string name, second, trace;
  WeightChoices weights = {};
  int64_t steps = 20, context = 0;
  bool json = false, all = false, alternatives = false, remeasure = false, diff = false;
};

Result<ExitCode> printDiff(const Choices& choices) {
  if (choices.second.empty()) return usage("argument", "--diff compares two files", "lockstep profile --diff BEFORE.json AFTER.json");
  LS_TRY(const std::string before_text, io::readTextFile(choices.name));
  LS_TRY(const std::string after_text, io::readTextFile(choices.second));
  LS_TRY(const ProfileSummary before, readProfile(before_text, choices.name));
  LS_TRY(const ProfileSummary after, readProfile(after_text, choices.second));
  if (choices.json) {
    fmt::print("{}\n", diffJson(before, after));
  } else {
    fmt::print("{}", diffText(before, after));
  }
  return ExitCode::Ok;
}

Result<Peaks> peaksOf(const DeviceInfo& device, bool remeasure) {
  const std::filesystem::path file = peaksFile(device);
  LS_TRY(const KnownPeaks known, knownPeaks(file, remeasure, [&]() -> Result<Peaks> {
           fmt::print(stderr, "measuring what {} can do at best ...\n", device.id);
           LS_TRY(const std::unique_ptr<Backend> backend, openDevice(device));
           return measurePeaks(*backend);
         }));
  if (known.not_kept) fmt::print(stderr, "the device's peaks are not kept: {}\n", known.not_kept->diagnostics.front().message);
  return known.peaks;
}

/// Measures the plans that the longest kernels may have; of a merged kernel those of its largest part. A kernel that cannot be measured,
/// perhaps because the device has no memory for it beside the step, is named and left out.
Status addAlternatives(Profile& profile, const std::string& sample, const ExperimentOptions& options) {
  constexpr size_t kKernels = 8, kOthers = 3;
  LS_TRY(const ChosenDevice device, chooseDevice(options.device));
  LS_TRY(const std::unique_ptr<Backend> backend, openDevice(device.info));
  LS_TRY(const auto kernels, finalKernelsOfSample(sample, options));
  const std::vector<ProfileRow> rows = rowsOf(profile, false);
  for (size_t i = 0; i < std::min(rows.size(), kKernels); ++i) {
    const auto found = kernels.find(rows[i].kernel);
    if (found == kernels.end()) continue;
    fmt::print(stderr, "measuring the plans of {} ...\n", rows[i].kernel);
    const Result<std::optional<TunedWork>> tuned = tuneKernel(*backend, found->second);
    if (!tuned.ok()) fmt::print(stderr, "{}\n", toString(tuned.diagnostics()));
    if (!tuned.ok() || !*tuned) continue;
    std::vector<TimedPlan> plans = (*tuned)->finalists;
    std::ranges::stable_partition(plans, [&](const TimedPlan& one) { return one.plan == found->second.plan; });
    plans.resize(std::min(plans.size(), 1 + kOthers));
    for (const TimedPlan& one : plans) profile.alternatives[rows[i].kernel].push_back({program::print(one.plan), one.seconds, one.facts});
  }
  return Success{};
}

void setDevice(Profile& profile, const DeviceInfo& device, const Peaks& peaks, const ProgramFacts& facts) {
  profile.device = device.id;
  profile.device_name = device.name;
  profile.driver = device.driver;
  profile.peaks = peaks;
  profile.plans = facts.plans;
  profile.measured_plans = facts.measured_plans;
}

Status printMeasured(const Choices& choices, const Profile& profile) {
  if (!choices.trace.empty()) LS_CHECK(io::writeFileAtomically(choices.trace, std::string_view(traceJson(profile))));
  if (choices.json) {
    fmt::print("{}\n", profileJson(profile));
  } else {
    fmt::print("{}", profileText(profile, {.all = choices.all, .colour = console::hasColors(stdout)}));
  }
  return Success{};
}

Result<ExitCode> printModelProfile(const Choices& choices, const ExperimentOptions& options) {
  if (choices.alternatives || !options.data.empty() || !options.disable.empty())
    return usage("argument",
                 fmt::format("--alternatives, --data and --disable-pass are for samples, and '{}' is a language model", choices.name),
                 "leave them out");
  LS_TRY(const ChosenDevice device, chooseDevice(options.device));
  LS_TRY(const Peaks peaks, peaksOf(device.info, choices.remeasure));
  LS_TRY(llm::Generator generator, generatorToMeasure(choices.name, device.info.id, choices.weights, choices.context));
  Profile profile = measureProfile(stepOf(generator), choices.steps);
  profile.sample = choices.name;
  setDevice(profile, device.info, peaks, generator.facts());
  LS_CHECK(printMeasured(choices, profile));
  if (!choices.json) fmt::print("{}\n", memoryText(generator.memory()));
  return ExitCode::Ok;
}

Result<ExitCode> printProfile(const Choices& choices, ExperimentOptions options) {
  std::error_code ignored;
  const Result<const Recipe*> found = experiment::findRecipe(examples::recipes(), choices.name);
  // A folder without a config.json is one of a model that lacks it.
  if (isLanguageModel(choices.name) || (!found.ok() && std::filesystem::is_directory(choices.name, ignored)))
    return printModelProfile(choices, options);
  LS_TRY(const Recipe* recipe, found);
  LS_CHECK(experiment::checkData(examples::recipes(), *recipe, options.data));
  LS_TRY(const std::optional<nn::WeightFormat> format, choices.weights.weights());
  LS_TRY(const graph::DType cache, choices.weights.cache());
  if (format || cache != graph::DType::F32 || choices.context != 0)
    return usage("argument", fmt::format("--weights, --cache and --context are for language models, and {} is a sample", recipe->name),
                 "leave them out, or give the folder of a model");
  options.steps = recipe->steps;  // schedules are those of a whole run
  options.seed = recipe->seed;
  LS_TRY(const ChosenDevice device, chooseDevice(options.device));
  LS_TRY(const Peaks peaks, peaksOf(device.info, choices.remeasure));
  options.device = device.info.id;
  const std::unique_ptr<Experiment> experiment = recipe->make(options);
  Profile profile = measureProfile(experiment->trainer(), [&](uint64_t step) { return experiment->batch(step); }, choices.steps);
  profile.sample = recipe->name;
  setDevice(profile, device.info, peaks, experiment->trainer().facts());
  if (choices.alternatives) LS_CHECK(addAlternatives(profile, choices.name, options));
  LS_CHECK(printMeasured(choices, profile));
  return ExitCode::Ok;
}

}  // namespace

Result<ExitCode> profileVerb(Arguments arguments) {
  Choices choices;
  ExperimentOptions options;
  Options parser("lockstep profile", "Shows where the time of a training step, or of a token, goes; docs/profile.md says how to read it.");
  parser.argument(choices.name, "NAME", "which sample, or a folder with a language model; with --diff a profile before");
  parser.argument(choices.second, "AFTER", "with --diff a profile after", false);
  parser.value(options.device, "--device", console::kDevices);
  parser.value(choices.steps, "--steps", "steps that are measured; times are their medians");
  parser.value(options.data, "--data", "file or folder with real data, for samples that have some");
  choices.weights.addTo(parser);
  parser.value(choices.context, "--context", "of a language model: room for so many tokens, half of which are fed; 0: 1024 at most");
  parser.list(options.disable, "--disable-pass", "leave out an optional pass");
  parser.flag(choices.all, "--all", "one line per dispatch, not one per kernel");
  parser.flag(choices.alternatives, "--alternatives", "measure other plans of the longest kernels, too");
  parser.flag(choices.json, "--json", "one JSON object for scripts and for --diff");
  parser.value(choices.trace, "--trace", "write one step as a Chrome trace, which ui.perfetto.dev opens");
  parser.flag(choices.remeasure, "--remeasure", "measure the device's peaks again");
  parser.flag(choices.diff, "--diff", "compare two files that --json printed");
  LS_TRY(const bool go, parser.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (choices.diff) return printDiff(choices);
  if (!choices.second.empty()) return usage("argument", fmt::format("'{}' is one argument too many", choices.second));
  if (choices.all && choices.alternatives)
    return usage("argument", "--alternatives lists plans of kernels, and --all has a line for each dispatch", "leave out one of them");
  if (choices.steps < 1) return usage("steps", fmt::format("--steps {} is less than 1", choices.steps));
  return printProfile(choices, std::move(options));
}

}  // namespace lockstep::tools
