// SPDX-License-Identifier: Apache-2.0
// What earlier runs of the command left: run folders, checkpoints, dumps, caches.
#include <nlohmann/json.hpp>

#include "experiment/run_folder.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/small_model.h"
#include "tools/explore/explore_data.h"
#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/pipeline_cache.h"
#endif

namespace lockstep::fuzz {

bool readRun(std::span<const std::byte> input) {
  constexpr int64_t kStep = 20;
  const experiment::RunFolder folder(emptyFolder());
  writeSections(textOf(input));
  const Result<experiment::RunConfig> config = folder.readConfig();
  requireAnswer(config);
  const Result<experiment::History> history = folder.readHistory(kStep);
  requireAnswer(history);
  (void)folder.readExhibits(kStep);
  if (!history.ok()) return false;
  require(history->losses.size() == kStep, "a loss for each step");
  const Result<experiment::History> again = folder.readHistory(kStep);
  require(again.ok() && again->reports.size() == history->reports.size(), "what was read is written so that it reads again");
  return config.ok();
}

namespace {

Trainer& smallTrainer() {
  static Trainer trainer = compileSmallModel();
  return trainer;
}

}  // namespace

bool readCheckpoint(std::span<const std::byte> input) {
  Trainer& trainer = smallTrainer();
  emptyFolder();
  const std::filesystem::path file = writeFile("input.safetensors", input);
  const uint64_t before = trainer.step_count();
  try {
    trainer.load(file.string());
  } catch (const Error& error) {
    requireDiagnostic(error.diagnostics().front());
    require(trainer.step_count() == before, "a refused checkpoint changes nothing");
    return false;
  }
  try {
    (void)trainer.step({{"x", std::vector<float>(6, 0.5f)}});
  } catch (const Error& error) {  // its rate may be none at this step
    requireDiagnostic(error.diagnostics().front());
  }
  return true;
}

bool readDump(std::span<const std::byte> input) {
  const std::filesystem::path& folder = emptyFolder();
  writeSections(textOf(input));
  const Result<std::string> data = tools::exploreData(folder, {.name = "model"});
  requireAnswer(data);
  if (!data.ok()) return false;
  require(nlohmann::json::accept(*data), "the page gets JSON");
  const std::string page = tools::explorePage("model", *data);
  // The page's own end is the last one.
  require(page.find("</html>") == page.rfind("</html>"), "no text of a dump ends the page");
  return true;
}

bool readCache(std::span<const std::byte> input) {
#ifdef LOCKSTEP_VULKAN
  emptyFolder();
  require(vulkan::readPipelineCache(writeFile("input", input)).size() <= input.size(), "a cache is a part of its file");
#else
  (void)input;
#endif
  return true;
}

}  // namespace lockstep::fuzz
