// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/io/plot.h"
#include "frontend/io/sealed.h"
#include "ir/support/where.h"

namespace lockstep::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRuns = "runs";
constexpr const char *kConfig = "config.json", *kLosses = "losses.jsonl", *kMetrics = "metrics.jsonl", *kCheckpoints = "checkpoints",
                     *kLastCheckpoint = "checkpoint.safetensors", *kExhibits = "exhibits";
constexpr std::string_view kPicture = ".png", kText = ".txt";
/// Losses are written before the checkpoint of their step, so only a lost disk block or a user takes them away.
constexpr int64_t kMostMissing = 1'000'000;
constexpr int64_t kMostSteps = int64_t{1} << 53;
constexpr size_t kKept = 3;

/// Also where the system does not tell: then reading the file says why.
bool mayBeThere(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) || error;
}

io::Json toJson(const Metrics& metrics) {
  io::Json json = io::Json::object();
  for (const auto& [name, value] : metrics) json.add(name, value);
  return json;
}

std::string reportLine(const History::Report& report) {
  io::Json line = io::Json::object().add("step", report.step).add("lr", report.lr);
  if (report.grad_norm) line.add("grad_norm", *report.grad_norm);
  return line.add("seconds", report.seconds).add("metrics", toJson(report.metrics)).text() + "\n";
}

std::string lossLine(int64_t step, float loss) {
  return io::Json::object().add("step", step).add("loss", static_cast<double>(loss)).text() + "\n";
}

/// The complete lines of a file of JSON; a process that was killed may leave a part of one at the end.
Result<std::vector<nlohmann::ordered_json>> readLines(const fs::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  if (!mayBeThere(path)) return lines;
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

/// A double beyond the range of float has no float.
float lossOf(const nlohmann::ordered_json& value) {
  const double number = numberOf(value);
  if (std::abs(number) > double{FLT_MAX}) return number > 0 ? INFINITY : -INFINITY;
  return static_cast<float>(number);
}

std::optional<History::Report> reportOf(const nlohmann::ordered_json& line) {
  if (!line.contains("metrics") || !line["metrics"].is_object()) return {};
  History::Report report{.step = line["step"].get<int64_t>()};
  for (const auto& [name, value] : line["metrics"].items()) report.metrics.emplace_back(name, numberOf(value));
  if (line.contains("lr")) report.lr = numberOf(line["lr"]);
  if (line.contains("grad_norm")) report.grad_norm = numberOf(line["grad_norm"]);
  // Times of resumed runs are added to it.
  if (line.contains("seconds")) report.seconds = numberOf(line["seconds"]);
  if (!std::isfinite(report.seconds) || report.seconds < 0) report.seconds = 0;
  return report;
}

template <class T>
std::optional<T> wholeNumber(const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

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
  for (const fs::path& path : io::entriesOf(fs::path(kRuns))) highest = std::max(highest, numberOfRun(path, recipe).value_or(0));
  return highest;
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {}

Result<RunLock> RunFolder::lock(bool make) const {
  std::error_code error;
  if (make) {
    LS_CHECK(io::makeDirectories(path_));
  } else if (!fs::is_directory(path_, error)) {
    return fail("folder.missing", fmt::format("there is no run in '{}'", path_.string()), {}, "--out names its folder");
  }
  LS_TRY(RunLock taken, RunLock::take(path_));
  // What a run left that was killed while it wrote; the folder of checkpoints looks after itself.
  for (const fs::path& folder : {path_, path_ / kExhibits}) {
    if (fs::is_directory(folder, error)) LS_CHECK(io::removeAbandonedWrites(folder));
  }
  return taken;
}

Status RunFolder::begin(const RunConfig& config, const RunRecord& record) const {
  if (mayBeThere(path_ / kConfig)) {
    return fail("folder.exists", fmt::format("'{}' holds a run already", path_.string()), {},
                "resume it (--resume), or name another folder (--out)");
  }
  LS_CHECK(io::makeDirectories(path_));
  io::Json json = io::Json::object()
                      .add("recipe", config.recipe)
                      .add("seed", std::to_string(config.seed))  // as text: JSON numbers are doubles to many readers
                      .add("steps", config.steps)
                      .add("data", config.data)
                      .add("from", config.from)
                      .add("device_asked", config.device)
                      .add("precision", config.precision);
  addStart(json, record);
  json.add("optimizer", record.optimizer).add("learning_rate", record.learning_rate);
  return io::writeFileAtomically(path_ / kConfig, std::string_view(json.text() + "\n"));
}

Status RunFolder::noteResumption(const RunConfig& config, const RunRecord& record, int64_t step) const {
  LS_TRY(const std::string text, io::readTextFile(path_ / kConfig));
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) return Success{};
  io::Json start = io::Json::object().add("after_step", step).add("steps", config.steps);
  addStart(start, record);
  json["steps"] = config.steps;
  json["device_asked"] = config.device;
  if (!json["resumed"].is_array()) json["resumed"] = nlohmann::ordered_json::array();
  json["resumed"].push_back(nlohmann::ordered_json::parse(start.text()));
  const std::string changed = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return io::writeFileAtomically(path_ / kConfig, std::string_view(changed + "\n"));
}

Result<RunConfig> RunFolder::readConfig() const {
  const fs::path path = path_ / kConfig;
  if (!mayBeThere(path))
    return fail("folder.missing", fmt::format("there is no run in '{}'", path_.string()), {}, "--out names its folder");
  LS_TRY(const std::string text, io::readTextFile(path));
  const Failure damaged =
      fail("folder.config", fmt::format("'{}' is not the config of a run", path.string()), {}, "begin a new run in another folder");
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return damaged;
  try {
    const auto seed = wholeNumber<uint64_t>(json.at("seed").get<std::string>());
    const auto& steps = json.at("steps");
    // As the largest type there is: a greater one would wrap to a number that looks right.
    if (!seed || !steps.is_number_unsigned() || steps.get<uint64_t>() > uint64_t{kMostSteps}) return damaged;
    return RunConfig{.recipe = json.at("recipe").get<std::string>(),
                     .seed = *seed,
                     .steps = steps.get<int64_t>(),
                     .data = json.at("data").get<std::string>(),
                     .from = json.contains("from") ? json.at("from").get<std::string>() : "",
                     // Older runs have nothing but what was asked for.
                     .device = json.at(json.contains("device_asked") ? "device_asked" : "device").get<std::string>(),
                     .precision = json.contains("precision") ? json.at("precision").get<std::string>() : "f32"};
  } catch (const std::exception&) {
    return damaged;
  }
}

Result<History> RunFolder::readHistory(int64_t step) const {
  History history;
  std::string losses, reports;
  LS_TRY(const auto loss_lines, readLines(path_ / kLosses));
  for (const auto& line : loss_lines) {
    const auto next = static_cast<int64_t>(history.losses.size()) + 1;
    if (line["step"].get<int64_t>() != next || next > step || !line.contains("loss")) break;
    history.losses.push_back(lossOf(line["loss"]));
    losses += lossLine(next, history.losses.back());
  }
  const auto missing = step - static_cast<int64_t>(history.losses.size());
  if (step < 0 || missing > kMostMissing) {
    return fail(
        "folder.history",
        fmt::format("the checkpoint is of step {}, but '{}' ends after step {}", step, (path_ / kLosses).string(), history.losses.size()),
        {}, "one of them is damaged or of another run; move the checkpoint away to resume from the one before");
  }
  // Steps whose lines were lost between a checkpoint and the end of the process.
  for (auto at = static_cast<int64_t>(history.losses.size()); at < step; ++at) {
    history.losses.push_back(NAN);
    losses += lossLine(at + 1, NAN);
  }
  LS_TRY(const auto report_lines, readLines(path_ / kMetrics));
  for (const auto& line : report_lines) {
    std::optional<History::Report> report = reportOf(line);
    const int64_t last = history.reports.empty() ? 1 : history.reports.back().step;
    if (!report || report->step < last || report->step > step) break;
    // The end of a run that was resumed later has a line of its own.
    if (!history.reports.empty() && report->step == last) history.reports.pop_back();
    history.reports.push_back(std::move(*report));
  }
  for (const History::Report& report : history.reports) reports += reportLine(report);
  LS_CHECK(io::writeFileAtomically(path_ / kLosses, std::string_view(losses)));
  LS_CHECK(io::writeFileAtomically(path_ / kMetrics, std::string_view(reports)));
  return history;
}

Status RunFolder::addLosses(int64_t step, std::span<const float> losses) const {
  std::string text;
  for (const float loss : losses) text += lossLine(++step, loss);
  return io::appendToFile(path_ / kLosses, text);
}

Status RunFolder::addReport(const History::Report& report) const { return io::appendToFile(path_ / kMetrics, reportLine(report)); }

Result<StoredExhibit> RunFolder::addExhibit(int64_t step, const Exhibit& exhibit) const {
  LS_CHECK(io::makeDirectories(path_ / kExhibits));
  StoredExhibit stored{.step = step, .name = exhibit.name};
  const fs::path path = path_ / kExhibits / fmt::format("{:06}-{}", step, exhibit.name);
  if (const auto* picture = std::get_if<io::Image>(&exhibit.content)) {
    LS_TRY(stored.png, io::formatPng(*picture));
    LS_CHECK(io::writeFileAtomically(path.string() + std::string(kPicture), std::span(std::as_const(stored.png))));
  } else {
    stored.text = std::get<std::string>(exhibit.content);
    LS_CHECK(io::writeFileAtomically(path.string() + std::string(kText), std::string_view(stored.text)));
  }
  return stored;
}

std::vector<StoredExhibit> RunFolder::readExhibits(int64_t step) const {
  std::vector<StoredExhibit> stored;
  for (const fs::path& path : io::entriesOf(path_ / kExhibits)) {
    const std::string stem = path.stem().string(), ending = path.extension().string();
    StoredExhibit each;
    const auto [end, problem] = std::from_chars(stem.data(), stem.data() + stem.size(), each.step);
    if (problem != std::errc() || end == stem.data() + stem.size() || *end != '-' || each.step < 0 || each.step > step) continue;
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) continue;
    each.name = std::string(end + 1, stem.data() + stem.size());
    if (ending == kPicture) {
      auto bytes = io::readFile(path);
      if (!bytes.ok()) continue;
      each.png = std::move(*bytes);
    } else if (ending == kText) {
      auto text = io::readTextFile(path);
      if (!text.ok()) continue;
      each.text = std::move(*text);
    } else {
      continue;
    }
    stored.push_back(std::move(each));
  }
  std::ranges::sort(stored, {}, [](const StoredExhibit& exhibit) { return std::pair(exhibit.step, exhibit.name); });
  return stored;
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

void RunFolder::saveCheckpoint(const Trainer& trainer, const RunConfig& config, bool last) {
  const DataCursor cursor = {{"recipe", config.recipe}};
  // An error names a line of the program, not one of this file.
  const Where where = trainer.compiled_at();
  if (!checkpoints_) checkpoints_.emplace(path_ / kCheckpoints, kKept, where);
  (void)checkpoints_->save(trainer, cursor, where);
  if (last) trainer.save(path_ / kLastCheckpoint, cursor, where);
}

Status RunFolder::loadCheckpoint(Trainer& trainer) const {
  const Where where = trainer.compiled_at();
  const CheckpointFolder folder(path_ / kCheckpoints, kKept, where);
  if (folder.latest()) {
    (void)folder.resume(trainer, where);
    return Success{};
  }
  const fs::path last = path_ / kLastCheckpoint;
  if (io::readSealed(last).ok()) {
    (void)trainer.load(last, where);
    return Success{};
  }
  std::vector<fs::path> damaged = folder.list();
  if (mayBeThere(last)) damaged.push_back(last);
  if (damaged.empty()) {
    return fail("folder.checkpoint", fmt::format("'{}' has no checkpoint to resume from", path_.string()), {},
                "the run ended before its first one; begin it again in another folder");
  }
  Failure failure = fail("folder.checkpoint", fmt::format("every checkpoint in '{}' is damaged", path_.string()), {},
                         "begin the run again in another folder");
  for (const fs::path& path : damaged) {
    const auto read = io::readSealed(path);
    if (read.ok()) continue;
    failure.diagnostics.front().notes.push_back({fmt::format("{}: {}", path.filename().string(), read.diagnostics().front().message), {}});
  }
  return failure;
}

fs::path freshRunFolder(const std::string& recipe) { return fs::path(kRuns) / fmt::format("{}-{}", recipe, highestRun(recipe) + 1); }

std::optional<fs::path> latestRunFolder(const std::string& recipe) {
  const int highest = highestRun(recipe);
  if (highest == 0) return {};
  return fs::path(kRuns) / fmt::format("{}-{}", recipe, highest);
}

}  // namespace lockstep::experiment
