// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/checkpoint_folder.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/io/plot.h"

namespace lockstep::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRuns = "runs";
constexpr const char *kConfig = "config.json", *kLosses = "losses.jsonl", *kMetrics = "metrics.jsonl", *kCheckpoints = "checkpoints";

Status append(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << text;
  out.flush();
  if (!out) return fail("file.write", fmt::format("cannot write '{}'", path.string()), {}, "is there space, and may it be written?");
  return Success{};
}

io::Json toJson(const Metrics& metrics) {
  io::Json json = io::Json::object();
  for (const auto& [name, value] : metrics) json.add(name, value);
  return json;
}

std::string measurementLine(const History::Measurement& measurement) {
  return io::Json::object().add("step", measurement.step).add("metrics", toJson(measurement.metrics)).text() + "\n";
}

std::string lossLine(int64_t step, float loss) {
  return io::Json::object().add("step", step).add("loss", static_cast<double>(loss)).text() + "\n";
}

/// The complete lines of a file of JSON; a process that was killed may leave a part of one at the end.
Result<std::vector<nlohmann::ordered_json>> readLines(const fs::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  if (!fs::exists(path)) return lines;
  LS_TRY(const std::string text, io::readTextFile(path));
  for (size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    auto line = nlohmann::ordered_json::parse(text.begin() + static_cast<ptrdiff_t>(start), text.begin() + static_cast<ptrdiff_t>(end),
                                              nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) break;
    lines.push_back(std::move(line));
  }
  return lines;
}

/// A loss or metric that is not finite is null in JSON.
double numberOf(const nlohmann::ordered_json& value) { return value.is_number() ? value.get<double>() : NAN; }

std::optional<int> numberOfRun(const fs::path& path, const std::string& recipe) {
  const std::string name = path.filename().string(), prefix = recipe + "-";
  if (!name.starts_with(prefix)) return {};
  int number = 0;
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return number;
}

int highestRun(const std::string& recipe) {
  int highest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(kRuns), error)) {
    highest = std::max(highest, numberOfRun(entry.path(), recipe).value_or(0));
  }
  return highest;
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {}

Status RunFolder::begin(const RunConfig& config) const {
  if (fs::exists(path_ / kConfig)) {
    return fail("folder.exists", fmt::format("'{}' holds a run already", path_.string()), {},
                "go on with it (--resume), or give another folder (--out)");
  }
  LS_CHECK(io::makeDirectories(path_));
  const io::Json json = io::Json::object()
                            .add("recipe", config.recipe)
                            .add("seed", std::to_string(config.seed))  // as text: JSON numbers are doubles to many readers
                            .add("steps", config.steps)
                            .add("data", config.data)
                            .add("device", config.device);
  return io::writeFileAtomically(path_ / kConfig, std::string_view(json.text() + "\n"));
}

Result<RunConfig> RunFolder::readConfig() const {
  const fs::path path = path_ / kConfig;
  if (!fs::exists(path))
    return fail("folder.missing", fmt::format("there is no run in '{}'", path_.string()), {}, "--out names its folder");
  LS_TRY(const std::string text, io::readTextFile(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  try {
    if (!json.is_discarded()) {
      return RunConfig{.recipe = json.at("recipe").get<std::string>(),
                       .seed = std::stoull(json.at("seed").get<std::string>()),
                       .steps = json.at("steps").get<int64_t>(),
                       .data = json.at("data").get<std::string>(),
                       .device = json.at("device").get<std::string>()};
    }
  } catch (const std::exception&) {
    // The same failure as for a text that is no JSON.
  }
  return fail("folder.config", fmt::format("'{}' is not the config of a run", path.string()), {}, "begin a new run in another folder");
}

Result<History> RunFolder::readHistory(int64_t step) const {
  History history;
  std::string losses, measurements;
  LS_TRY(const auto loss_lines, readLines(path_ / kLosses));
  for (const auto& line : loss_lines) {
    const auto next = static_cast<int64_t>(history.losses.size()) + 1;
    if (line["step"].get<int64_t>() != next || next > step || !line.contains("loss")) break;
    history.losses.push_back(static_cast<float>(numberOf(line["loss"])));
    losses += lossLine(next, history.losses.back());
  }
  // Steps whose lines were lost between a checkpoint and the end of the process.
  for (auto at = static_cast<int64_t>(history.losses.size()); at < step; ++at) {
    history.losses.push_back(NAN);
    losses += lossLine(at + 1, NAN);
  }
  LS_TRY(const auto metric_lines, readLines(path_ / kMetrics));
  for (const auto& line : metric_lines) {
    History::Measurement measurement{.step = line["step"].get<int64_t>(), .metrics = {}};
    if (measurement.step > step || !line.contains("metrics")) break;
    for (const auto& [name, value] : line["metrics"].items()) measurement.metrics.emplace_back(name, numberOf(value));
    measurements += measurementLine(measurement);
    history.measurements.push_back(std::move(measurement));
  }
  LS_CHECK(io::writeFileAtomically(path_ / kLosses, std::string_view(losses)));
  LS_CHECK(io::writeFileAtomically(path_ / kMetrics, std::string_view(measurements)));
  return history;
}

Status RunFolder::addLosses(int64_t step, std::span<const float> losses) const {
  std::string text;
  for (const float loss : losses) text += lossLine(++step, loss);
  return append(path_ / kLosses, text);
}

Status RunFolder::addMeasurement(const History::Measurement& measurement) const {
  return append(path_ / kMetrics, measurementLine(measurement));
}

Status RunFolder::addExhibits(int64_t step, const std::vector<Exhibit>& exhibits) const {
  if (exhibits.empty()) return Success{};
  LS_CHECK(io::makeDirectories(path_ / "exhibits"));
  for (const Exhibit& exhibit : exhibits) {
    const std::string stem = fmt::format("{:06}-{}", step, exhibit.name);
    if (const auto* picture = std::get_if<io::Image>(&exhibit.content)) {
      LS_CHECK(io::writePng(path_ / "exhibits" / (stem + ".png"), *picture));
    } else {
      LS_CHECK(io::writeFileAtomically(path_ / "exhibits" / (stem + ".txt"), std::string_view(std::get<std::string>(exhibit.content))));
    }
  }
  return Success{};
}

Status RunFolder::writeCurve(const std::string& title, const std::vector<float>& losses) const {
  io::Series series{.name = "loss", .x = {}, .y = {}};
  for (size_t i = 0; i < losses.size(); ++i) {
    series.x.push_back(static_cast<double>(i + 1));
    series.y.push_back(losses[i]);
  }
  // A policy's loss is negative half of the time.
  const bool positive = std::ranges::none_of(losses, [](float loss) { return loss <= 0; });
  return io::writePng(path_ / "loss.png", io::plot({series}, {.title = title, .log_y = positive}));
}

void RunFolder::saveCheckpoint(const Trainer& trainer, const RunConfig& config, bool last) const {
  const DataCursor cursor = {{"recipe", config.recipe}};
  (void)CheckpointFolder(path_ / kCheckpoints).save(trainer, cursor);
  if (last) trainer.save(path_ / "checkpoint.safetensors", cursor);
}

Status RunFolder::loadCheckpoint(Trainer& trainer) const {
  if (CheckpointFolder(path_ / kCheckpoints).resume(trainer)) return Success{};
  return fail("folder.checkpoint", fmt::format("'{}' has no checkpoint to go on from", path_.string()), {},
              "the run ended before its first one; begin it again in another folder");
}

fs::path freshRunFolder(const std::string& recipe) { return fs::path(kRuns) / fmt::format("{}-{}", recipe, highestRun(recipe) + 1); }

std::optional<fs::path> latestRunFolder(const std::string& recipe) {
  const int highest = highestRun(recipe);
  if (highest == 0) return {};
  return fs::path(kRuns) / fmt::format("{}-{}", recipe, highest);
}

}  // namespace lockstep::experiment
