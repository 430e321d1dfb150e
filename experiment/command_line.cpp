// SPDX-License-Identifier: Apache-2.0
#include "experiment/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <vector>

#include "console/guarded_main.h"
#include "console/interrupt.h"
#include "console/options.h"
#include "console/terminal.h"
#include "experiment/training_run.h"
#include "frontend/train/compiled.h"
#include "ir/support/nearest.h"

namespace lockstep {
namespace experiment {
namespace {

using console::usage;

struct Choices {
  std::string name, seed, out, sanitize, precision;
  int64_t steps = 0, memory_limit = 0;
  bool resume = false, no_out = false;
};

Result<uint64_t> seedOf(const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  return usage("seed", fmt::format("--seed '{}' is not a whole number of at least 0", text));
}

/// The folder of a run to resume: the one that was named, or the latest of the recipe.
Result<RunFolder> earlierRun(const Choices& choices) {
  if (!choices.out.empty()) return RunFolder(choices.out);
  if (const auto latest = choices.name.empty() ? std::nullopt : latestRunFolder(choices.name)) return RunFolder(*latest);
  return fail("folder.missing",
              choices.name.empty() ? "--resume does not say which run" : fmt::format("there is no run of '{}' in runs/", choices.name), {},
              "--out names the folder of the run");
}

/// The ones that mixed() takes.
const std::vector<std::string> kPrecisions{"f32", "bf16", "f16"};

Result<Precision> precisionOf(const std::string& name) {
  if (std::ranges::find(kPrecisions, name) == kPrecisions.end())
    return usage("value", fmt::format("--precision '{}' is not a precision", name), suggest(name, kPrecisions));
  return mixed(*graph::findDType(name));
}

/// What the earlier run was asked for; a choice that contradicts it is refused.
Status takeOver(const RunConfig& config, const Choices& choices, const Recipe& recipe, ExperimentOptions& options) {
  if (config.recipe != recipe.name) {
    return usage("resume", fmt::format("the run is one of '{}', not of '{}'", config.recipe, recipe.name), "omit the name");
  }
  if (!choices.seed.empty() && options.seed != config.seed) {
    return usage("resume", fmt::format("the run has seed {}, not {}", config.seed, options.seed), "omit --seed");
  }
  if (!options.data.empty() && options.data != config.data) {
    return usage("resume", fmt::format("the run has the data of '{}'", config.data), "omit --data");
  }
  if (!options.from.empty() && options.from != config.from) {
    return usage("resume",
                 fmt::format("the run began with {}", config.from.empty() ? "random parameters" : fmt::format("'{}'", config.from)),
                 "omit --from");
  }
  if (!choices.precision.empty() && choices.precision != config.precision)
    return usage("resume", fmt::format("the run has the precision {}, not {}", config.precision, choices.precision), "omit --precision");
  LS_TRY(options.precision, precisionOf(config.precision));
  options.seed = config.seed;
  options.data = config.data;
  options.from = config.from;
  if (choices.steps == 0) options.steps = config.steps;
  if (options.device == "auto") options.device = config.device;
  return Success{};
}

Status checkPasses(const std::vector<std::string>& names) {
  const std::vector<std::string> known = pass_names();
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end())
      return usage("pass", fmt::format("there is no pass '{}'", name), suggest(name, known));
  }
  return Success{};
}

std::string lineOf(const Recipe& recipe) { return fmt::format("{:<14}{} ({} steps)", recipe.name, recipe.summary, recipe.steps); }

std::string summaryOf(std::span<const Recipe> recipes) {
  if (recipes.size() == 1) return fmt::format("Trains {}: {} ({} steps).", recipes[0].name, recipes[0].summary, recipes[0].steps);
  std::string summary = "Trains a sample:";
  for (const Recipe& recipe : recipes) summary += "\n  " + lineOf(recipe);
  return summary;
}

Failure noSample(std::span<const Recipe> recipes, const std::string& command) {
  Failure failure = usage("sample", "no sample was named", fmt::format("name one: {} {}", command, recipes.front().name));
  for (const Recipe& recipe : recipes) failure.diagnostics.front().notes.push_back({lineOf(recipe), {}});
  return failure;
}

/// Of the recipes that take such a thing.
std::string namesWith(std::span<const Recipe> recipes, std::string Recipe::* what) {
  std::string names;
  for (const Recipe& recipe : recipes) {
    if (!(recipe.*what).empty()) names += (names.empty() ? "" : ", ") + recipe.name;
  }
  return names;
}

/// As a shell reads it back.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What config.json does not hold is said once more.
std::string resumeCommand(const std::string& started_as, const std::string& name, const RunFolder& folder, const ExperimentOptions& options,
                          const std::string& save) {
  std::string command = fmt::format("{}{} --resume --out {}", started_as, name.empty() ? "" : " " + name, quoted(folder.path().string()));
  for (const std::string& pass : options.disable) command += fmt::format(" --disable-pass {}", quoted(pass));
  if (!save.empty()) command += fmt::format(" --save {}", quoted(save));
  if (options.memory_limit > 0) command += fmt::format(" --memory-limit {}", options.memory_limit);
  return command;
}

}  // namespace

Result<const Recipe*> findRecipe(std::span<const Recipe> recipes, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : recipes) {
    if (name == recipe.name || (!recipe.alias.empty() && name == recipe.alias)) return &recipe;
    names.push_back(recipe.name);
    if (!recipe.alias.empty()) names.push_back(recipe.alias);
  }
  return usage("sample", fmt::format("there is no sample '{}'", name), suggest(name, names));
}

Status checkData(std::span<const Recipe> recipes, const Recipe& recipe, const std::string& data) {
  if (data.empty() || !recipe.data.empty()) return Success{};
  const std::string others = namesWith(recipes, &Recipe::data);
  return usage("data", fmt::format("'{}' makes its own data and takes no --data", recipe.name),
               others.empty() ? "omit --data" : fmt::format("omit --data; these take some: {}", others));
}

namespace {

/// --from and --save.
Status checkModel(std::span<const Recipe> recipes, const Recipe& recipe, const ExperimentOptions& options, const std::string& save) {
  if (!recipe.model.empty() || (options.from.empty() && save.empty())) return Success{};
  const std::string flag = options.from.empty() ? "--save" : "--from", others = namesWith(recipes, &Recipe::model);
  return usage("model", fmt::format("'{}' takes no {}", recipe.name, flag),
               others.empty() ? "omit " + flag : fmt::format("omit {}; these take it: {}", flag, others));
}

}  // namespace

Result<ExitCode> trainCommand(std::span<const Recipe> recipes, std::span<const std::string> arguments, const std::string& command,
                              const std::string& started_as) {
  Choices choices;
  ExperimentOptions options;
  RunSettings settings;
  std::string save;
  console::Options parser(command, summaryOf(recipes));
  if (recipes.size() > 1) {
    std::vector<std::string> names;
    for (const Recipe& recipe : recipes) names.push_back(recipe.name);
    parser.argument(choices.name, "NAME", "which sample", false);
    parser.choices("NAME", names);
  }
  parser.value(choices.steps, "--steps", "training steps; 0: as many as the sample needs");
  parser.value(choices.seed, "--seed", "of parameters and data; without it the sample's own");
  if (recipes.size() > 1) {
    parser.value(options.data, "--data,--text", fmt::format("file or folder with real data, for {}", namesWith(recipes, &Recipe::data)));
  } else if (!recipes[0].data.empty()) {
    parser.value(options.data, "--data,--text", recipes[0].data);
  }
  if (const std::string names = namesWith(recipes, &Recipe::model); !names.empty()) {
    const std::string of = recipes.size() > 1 ? fmt::format(", for {}", names) : "";
    parser.value(options.from, "--from", "trains this model further: a Hugging Face folder" + of);
    parser.value(save, "--save", "where the model goes after the last step; without it, model/ in the folder of the run" + of);
  }
  parser.value(options.device, "--device", console::kDevices);
  parser.choices("--device", {"auto", "reference", "vulkan"});
  parser.flagOrValue(
      choices.sanitize, "--sanitize", "all",
      "train on the reference and report races, memory, numbers, loops and barriers of kernels that go wrong; "
      "=race,memory,integer,float,loop,barrier,wrap,error: only those; wrap (every integer that does not fit 32 bits) and error (bounds of "
      "rounding errors) are off until they are named, as in =all,error. Exit code 5 if there is an error");
  parser.value(choices.out, "--out", "folder of the run; without it runs/NAME-1, runs/NAME-2, ...");
  parser.flag(choices.no_out, "--no-out", "write nothing");
  parser.flag(choices.resume, "--resume", "resume the run in --out, or the latest one of the sample");
  parser.flag(settings.json, "--json", "one JSON object per report, the last with \"final\": true");
  parser.flag(settings.quiet, "-q,--quiet", "only the last lines");
  parser.value(choices.precision, "--precision",
               "f32; bf16 or f16: what products of tensors read and make is kept in 16 bits, f16 with a scaled loss");
  parser.choices("--precision", kPrecisions);
  parser.value(options.dump_ir, "--dump-ir", "write the IR after each pass to this directory");
  parser.value(options.dump_steps, "--dump-steps", "of how many steps --dump-ir also writes the batches");
  parser.list(options.disable, "--disable-pass", "skip an optional pass");
  parser.value(choices.memory_limit, "--memory-limit", "bytes of temporaries of a step, at the cost of speed; 0: no limit");
  LS_TRY(const bool go, parser.parse(arguments));
  if (!go) return ExitCode::Ok;

  if (!choices.sanitize.empty()) {
    if (options.device != "auto" && options.device != "reference")
      return usage("device", fmt::format("--sanitize runs on the reference, not on '{}'", options.device), "leave out --device");
    options.device = "sanitizer:" + choices.sanitize;
  }
  if (choices.steps < 0) return usage("steps", fmt::format("--steps {} is negative", choices.steps));
  if (options.dump_steps < 1) return usage("value", fmt::format("--dump-steps {} is not at least 1", options.dump_steps));
  if (choices.memory_limit < 0) return usage("value", fmt::format("--memory-limit {} is negative", choices.memory_limit));
  if (choices.no_out && (choices.resume || !choices.out.empty())) return usage("out", "--no-out goes with neither --out nor --resume");
  LS_CHECK(checkPasses(options.disable));
  if (recipes.size() > 1 && choices.name.empty() && !choices.resume) return noSample(recipes, command);
  RunConfig earlier;
  if (choices.resume) {
    if (recipes.size() == 1) choices.name = recipes[0].name;
    if (!choices.name.empty()) {
      LS_TRY(const Recipe* named, findRecipe(recipes, choices.name));
      choices.name = named->name;
    }
    LS_TRY(const RunFolder folder, earlierRun(choices));
    settings.folder = folder;
    LS_TRY(earlier, folder.readConfig());
    if (choices.name.empty()) choices.name = earlier.recipe;
  }
  LS_TRY(const Recipe* recipe, findRecipe(recipes, choices.name.empty() ? recipes.front().name : choices.name));
  LS_CHECK(checkData(recipes, *recipe, options.data));
  LS_CHECK(checkModel(recipes, *recipe, options, save));
  settings.save = save;
  options.steps = choices.steps == 0 ? recipe->steps : choices.steps;
  options.memory_limit = static_cast<uint64_t>(choices.memory_limit);
  if (!choices.precision.empty()) {
    LS_TRY(options.precision, precisionOf(choices.precision));
  }
  options.seed = recipe->seed;
  if (!choices.seed.empty()) {
    LS_TRY(options.seed, seedOf(choices.seed));
  }
  settings.resume = choices.resume;
  if (choices.resume) {
    LS_CHECK(takeOver(earlier, choices, *recipe, options));
  } else if (!choices.no_out) {
    settings.folder = RunFolder(choices.out.empty() ? freshRunFolder(recipe->name) : std::filesystem::path(choices.out));
  }
  settings.live = !settings.json && !settings.quiet && console::isTerminal(stderr);
  if (settings.folder) {
    settings.resume_command = resumeCommand(started_as, recipes.size() > 1 ? recipe->name : "", *settings.folder, options, save);
  }
  settings.interrupted = &console::catchInterrupts();
  return runTraining(*recipe, options, settings);
}

}  // namespace experiment

int train(int argc, char** argv, const Recipe& recipe) {
  return console::guardedMain(argc, argv, [&](std::span<const std::string> arguments) {
    const std::string program = argc > 0 ? argv[0] : recipe.name;
    return experiment::trainCommand({&recipe, 1}, arguments, std::filesystem::path(program).filename().string(), program);
  });
}

}  // namespace lockstep
