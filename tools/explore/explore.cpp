// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "console/text_format.h"
#include "examples/recipes.h"
#include "experiment/command_line.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/io/temporary_folder.h"
#include "tools/explore/explore_data.h"
#include "tools/language/measured_model.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kMeasuredSteps = 5;  ///< the median of each command counts

/// The median time of each command; the first step, which a driver may still compile in, does not count.
std::vector<double> measure(Experiment& experiment) {
  std::vector<std::vector<double>> times;
  for (int step = 0; step <= kMeasuredSteps; ++step) {
    const StepProfile profile = experiment.trainer().profile(experiment.batch(static_cast<uint64_t>(step) + 1));
    times.resize(profile.commands.size());
    for (size_t i = 0; step > 0 && i < times.size(); ++i) times[i].push_back(profile.commands[i].seconds);
  }
  std::vector<double> medians;
  for (std::vector<double>& series : times) {
    std::ranges::nth_element(series, series.begin() + kMeasuredSteps / 2);
    medians.push_back(series[kMeasuredSteps / 2]);
  }
  return medians;
}

/// The same of a token of a language model.
Status compileModel(const std::string& model, const std::string& device, const fs::path& folder, ExploreFacts& facts) {
  LS_TRY(llm::Generator generator, generatorToMeasure(model, device, {}, 0, folder.string()));
  try {
    for (const ProfiledCommand& command : measureProfile(stepOf(generator), kMeasuredSteps).commands)
      facts.seconds.push_back(command.seconds);
  } catch (const Error& error) {
    if (error.code() != "vulkan.timestamps") throw;
  }
  facts.device = fmt::format("{} ({})", generator.facts().device, generator.facts().device_name);
  return Success{};
}

/// Compiles a sample into the folder and measures its step.
void compileSample(const Recipe& recipe, const std::string& device, const fs::path& folder, ExploreFacts& facts) {
  ExperimentOptions options;
  options.steps = recipe.steps;
  options.seed = recipe.seed;
  options.device = device;
  options.dump_ir = folder.string();
  const std::unique_ptr<Experiment> experiment = recipe.make(options);
  try {
    facts.seconds = measure(*experiment);
  } catch (const Error& error) {
    if (error.code() != "vulkan.timestamps") throw;  // a device without clocks still has a plan to show
  }
  const ProgramFacts program = experiment->trainer().facts();
  facts.device = fmt::format("{} ({})", program.device, program.device_name);
}

/// The last part of a folder's path, of "." that of the folder itself.
std::string nameOf(const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(folder, ignored).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace

Result<ExitCode> exploreVerb(Arguments arguments) {
  std::string input, device = "auto", output, sources = ".";
  bool json = false;
  Options options("lockstep explore", "Makes one HTML page that shows how a model became kernels.");
  options.argument(input, "NAME", "a sample, a folder with a language model, or one that --dump-ir wrote");
  options.value(device, "--device", fmt::format("of a sample or a model: {}", console::kDevices));
  options.value(output, "-o,--out", "the file, - for the terminal; by default NAME.html");
  options.value(sources, "--sources", "the folder below which the model's source files lie; no other files are read");
  options.flag(json, "--json", "only the data, on the terminal or with --out in a file");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  std::error_code ignored;
  const Result<const Recipe*> found = experiment::findRecipe(examples::recipes(), input);
  if (!found.ok() && !fs::is_directory(input, ignored)) return found.failure();
  const Recipe* recipe = found.ok() ? *found : nullptr;
  ExploreFacts facts{.name = recipe != nullptr ? recipe->name : nameOf(input)};
  facts.sources = {sources};
  fs::path dump = input;
  std::optional<io::TemporaryFolder> temporary;
  const bool is_model = recipe == nullptr && isLanguageModel(input);
  if (recipe != nullptr || is_model) {
    LS_TRY(temporary, io::TemporaryFolder::make("lockstep-explore"));
    dump = temporary->path();
  }
  if (is_model) LS_CHECK(compileModel(input, device, dump, facts));
  if (recipe != nullptr) {
    facts.known = sampleSources();
    compileSample(*recipe, device, dump, facts);
  }
  LS_TRY(std::string text, exploreData(dump, facts));
  if (!json) text = explorePage(facts.name, std::move(text));

  if (output == "-" || (json && output.empty())) {
    fmt::print("{}\n", text);
    return ExitCode::Ok;
  }
  if (output.empty()) output = facts.name + ".html";
  LS_CHECK(io::writeFileAtomically(output, std::string_view(text)));
  if (json) {
    fmt::print("{}\n", io::Json::object().add("file", output).add("bytes", uint64_t{text.size()}).text());
  } else {
    fmt::print("{}: {}; open it in a browser\n", output, console::formatBytes(text.size()));
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
