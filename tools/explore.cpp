// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "console/text_format.h"
#include "examples/recipes.h"
#include "experiment/command_line.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "tools/explore_data.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kMeasuredSteps = 5;  ///< the median of each command counts

/// A folder for the dump of a sample, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / fmt::format("lockstep-explore-{}", ::getpid())) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

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

/// The folder and those above it: places in the user's source are relative to where it was compiled.
std::vector<fs::path> sourceFolders(const std::string& chosen) {
  std::vector<fs::path> folders;
  for (fs::path path = fs::absolute(chosen); folders.empty() || path != folders.back(); path = path.parent_path()) folders.push_back(path);
  return folders;
}

}  // namespace

Result<ExitCode> exploreVerb(Arguments arguments) {
  std::string input, device = "auto", output, sources = ".";
  bool json = false;
  Options options("lockstep explore", "Makes one HTML page that shows how a model became kernels.");
  options.argument(input, "NAME", "a sample, or a folder that --dump-ir wrote");
  options.value(device, "--device", "of a sample: auto, reference, vulkan, vulkan:N or vulkan:NAME");
  options.value(output, "-o,--out", "the file, - for the terminal; by default NAME.html");
  options.value(sources, "--sources", "where the model's source files lie, in this folder or one above it");
  options.flag(json, "--json", "only the data, on the terminal or with --out in a file");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  const Result<const Recipe*> found = experiment::findRecipe(examples::recipes(), input);
  if (!found.ok() && !fs::is_directory(input)) return found.failure();
  const Recipe* recipe = found.ok() ? *found : nullptr;
  ExploreFacts facts{.name = recipe != nullptr ? recipe->name : (fs::absolute(input) / "").parent_path().filename().string()};
  facts.sources = sourceFolders(sources);
  if (recipe != nullptr) facts.known = sampleSources();
  const TemporaryFolder temporary;
  if (recipe != nullptr) compileSample(*recipe, device, temporary.path(), facts);
  LS_TRY(std::string text, exploreData(recipe != nullptr ? temporary.path() : fs::path(input), facts));
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
