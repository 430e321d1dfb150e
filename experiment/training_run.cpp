// SPDX-License-Identifier: Apache-2.0
#include "experiment/training_run.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "console/color.h"
#include "console/findings_text.h"
#include "console/text_format.h"
#include "experiment/goal_watch.h"
#include "experiment/live_view.h"
#include "experiment/pace.h"
#include "experiment/run_pictures.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/io/temporary_folder.h"

namespace lockstep::experiment {
namespace {

using Clock = std::chrono::steady_clock;
using console::formatBytes;
using console::formatDuration;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string stepsText(int64_t count) { return count == 1 ? "1 step" : fmt::format("{} steps", count); }

/// Whether the selector leaves open which device it is; who names the CPU knows.
bool isLeftOpen(const std::string& selector) { return selector.empty() || selector == "auto" || selector == "vulkan"; }

/// Whether no device is what was asked for, or a selector has a part that is none.
bool isOfSelector(const Error& error) {
  constexpr std::array<std::string_view, 3> kParts{"device.fault", "device.perturb", "sanitize.check"};
  return error.exitCode() == ExitCode::NoDevice || std::ranges::find(kParts, error.code()) != kParts.end();
}

std::string metricsText(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format("{}{} {:.4g}", text.empty() ? "" : "  ", name, value);
  return text;
}

io::Json metricsJson(const Metrics& metrics) {
  io::Json json = io::Json::object();
  for (const auto& [name, value] : metrics) json.add(name, value);
  return json;
}

class Run {
 public:
  Run(const Recipe& recipe, const ExperimentOptions& options, const RunSettings& settings)
      : recipe_(recipe),
        options_(options),
        settings_(settings),
        folder_(settings.folder),
        view_(stderr, settings.live, titleOf(recipe)),
        pictures_(view_),
        goal_(recipe.goal) {}

  Result<ExitCode> run() {
    LS_CHECK(checkRecipe());
    LS_CHECK(checkSave());
    const Clock::time_point compile_start = Clock::now();
    LS_TRY(experiment_, make());
    if (folder_) LS_CHECK(open());
    facts_ = trainer().facts();
    introduce(secondsSince(compile_start));
    start_ = last_checkpoint_ = Clock::now();
    LS_TRY(const bool interrupted, trainOrRescue());
    view_.clear();
    if (!finite_) return stopNotFinite();
    LS_CHECK(finish(interrupted));
    const std::vector<Finding> findings = trainer().findings();
    finalReport(interrupted, findings);
    return interrupted ? ExitCode::Interrupted : hasError(findings) ? ExitCode::NumericCheck : ExitCode::Ok;
  }

 private:
  static std::string titleOf(const Recipe& recipe) { return fmt::format("{}: {}", recipe.name, recipe.summary); }
  [[nodiscard]] Trainer& trainer() const { return experiment_->trainer(); }
  [[nodiscard]] int64_t done() const { return static_cast<int64_t>(history_.losses.size()); }
  [[nodiscard]] RunConfig config() const {
    return {.recipe = recipe_.name,
            .seed = options_.seed,
            .steps = options_.steps,
            .data = options_.data,
            .from = options_.from,
            .device = options_.device,
            .precision = std::string(toString(options_.precision.dtype))};
  }

  /// A device that cannot be had is an error at the option that names it, not at the line of the sample that opens it.
  [[nodiscard]] Result<std::unique_ptr<Experiment>> make() const {
    try {
      return recipe_.make(options_);
    } catch (const Error& error) {
      if (!isOfSelector(error)) throw;
      Failure failure{.diagnostics = error.diagnostics(), .exit_code = error.exitCode()};
      failure.diagnostics.front().where = {.file = "--device"};
      return failure;
    }
  }

  [[nodiscard]] Status checkRecipe() const {
    if (recipe_.make == nullptr) {
      return fail("recipe.make", fmt::format("the recipe '{}' makes no experiment", recipe_.name), {},
                  "set Recipe::make, for example to make_experiment<E>");
    }
    if (recipe_.report_every < 1 || recipe_.chunk < 1 || recipe_.measure_every < 0) {
      return fail("recipe.steps",
                  fmt::format("the recipe '{}' reports every {} steps, measures every {} and submits {} at once", recipe_.name,
                              recipe_.report_every, recipe_.measure_every, recipe_.chunk),
                  {}, "report_every and chunk are 1 at least, measure_every is 0 at least");
    }
    return Success{};
  }

  /// What is there already, or a place where nothing can be, must not show itself after an hour of training.
  [[nodiscard]] Status checkSave() const {
    std::error_code error;
    if (settings_.save.empty()) return Success{};
    if (!std::filesystem::exists(settings_.save, error)) {
      const std::filesystem::path parent = std::filesystem::absolute(settings_.save, error).parent_path();
      LS_CHECK(io::makeDirectories(parent));
      if (::access(parent.c_str(), W_OK | X_OK) == 0) return Success{};
      return fail("file.directory", fmt::format("nothing can be made in '{}': {}", parent.string(), std::generic_category().message(errno)),
                  {}, "name another folder with --save");
    }
    if (std::filesystem::is_directory(settings_.save, error) && std::filesystem::is_empty(settings_.save, error)) return Success{};
    return fail("folder.exists", fmt::format("'{}' is there already", settings_.save.string()), {}, "name another folder with --save");
  }

  Status open() {
    LS_TRY(lock_, folder_->lock(!settings_.resume));
    // A folder that cannot be made must not show itself after an hour of training.
    LS_CHECK(settings_.resume ? resume() : folder_->begin(config(), recordOf(trainer())));
    pictures_.open(*folder_, done());
    return Success{};
  }

  Status resume() {
    LS_CHECK(folder_->loadCheckpoint(trainer()));
    LS_TRY(history_, folder_->readHistory(static_cast<int64_t>(trainer().step_count())));
    written_ = saved_ = begun_at_ = done();
    if (!history_.reports.empty()) seconds_before_ = history_.reports.back().seconds;
    goal_.lookBack(history_, recipe_.report_every);
    return folder_->noteResumption(config(), recordOf(trainer()), done());
  }

  /// Until the last step; gives whether it was interrupted before.
  Result<bool> trainAll() {
    bool interrupted = false;
    while (done() < options_.steps && !interrupted && finite_) {
      train(std::min(untilReport(), options_.steps - done()));
      interrupted = settings_.interrupted != nullptr && settings_.interrupted->load();
      const bool due = done() % recipe_.report_every == 0 || done() == 1;
      if (done() < options_.steps && !interrupted && finite_ && due) LS_CHECK(report());
    }
    return interrupted;
  }

  /// What fails between two steps (data, a measurement, a disk) takes nothing away that was reached.
  Result<bool> trainOrRescue() {
    try {
      Result<bool> interrupted = trainAll();
      if (!interrupted.ok()) rescue();
      return interrupted;
    } catch (...) {
      rescue();
      throw;
    }
  }

  /// The first failure is the news, so a second one is not told.
  void rescue() {
    view_.clear();
    try {
      // Within a submission that failed nobody knows what the parameters are.
      const bool between = finite_ && trainer().step_count() == static_cast<uint64_t>(done());
      if (!folder_ || !between || saved_ == done() || done() == begun_at_) return;
      (void)writeLosses();
      save(false);
    } catch (const std::exception&) {
      return;
    }
  }

  /// What cannot be made again comes first, what is only looked at last.
  Status finish(bool interrupted) {
    if (folder_) {
      const Status losses = writeLosses();
      save(true);
      if (!losses.ok()) return losses;
    }
    LS_CHECK(saveModel(interrupted));
    metrics_ = experiment_->measure();
    LS_CHECK(note());
    pictures_.exhibit(*experiment_, done());
    pictures_.writePages(title(), [&] { return pageData(false); });
    return Success{};
  }

  /// The run's own folder has the model as it is; another one gets it when it is done, so that nothing is in the way of resuming.
  Status saveModel(bool interrupted) {
    const bool elsewhere = !settings_.save.empty();
    if (recipe_.model.empty() || (elsewhere ? interrupted : !folder_)) return Success{};
    const std::filesystem::path path = elsewhere ? settings_.save : folder_->path() / "model";
    LS_TRY(io::TemporaryFolder made, io::TemporaryFolder::makeBeside(path));
    LS_CHECK(experiment_->saveModel(made.path()));
    LS_CHECK(made.moveTo(path, !elsewhere));
    saved_model_ = path;
    return Success{};
  }

  void save(bool last) {
    folder_->saveCheckpoint(trainer(), config(), last);
    saved_ = done();
    last_checkpoint_ = Clock::now();
  }

  /// Steps in the next submission: the first step alone (it shows early that all works), then chunks that end on report lines.
  [[nodiscard]] int64_t untilReport() const {
    if (done() == begun_at_) return 1;
    const int64_t to_report = recipe_.report_every - done() % recipe_.report_every;
    return std::clamp<int64_t>(recipe_.chunk, 1, to_report);
  }

  void train(int64_t count) {
    const Clock::time_point begin = Clock::now();
    const uint64_t first = trainer().step_count() + 1;
    std::vector<StepResult> results;
    if (count == 1) {
      // An experiment may run forward programs of the trainer to make its data; within a submission it cannot.
      results.push_back(trainer().step(experiment_->batch(first), {}, trainer().compiled_at()));
    } else {
      results =
          trainer().steps(static_cast<size_t>(count), [&](size_t i) { return experiment_->batch(first + i); }, {}, trainer().compiled_at());
    }
    pace_.add(secondsSince(begin), count);
    for (const StepResult& result : results) {
      // A loss that is not finite is a loss; the run reports it.
      if (!result.completed() && result.failure->kind != FailureKind::NonFinite) (void)result.or_throw();
      history_.losses.push_back(result.loss);
      lr_ = result.lr;
      grad_norm_ = result.grad_norm;
      loss_scale_ = result.loss_scale;
      if (result.completed()) continue;
      failure_ = result.failure;
      finite_ = false;
      break;
    }
    view_.update(progress(), history_.losses);
  }

  [[nodiscard]] Progress progress() const {
    return {.step = done(),
            .steps = options_.steps,
            .loss = history_.losses.empty() ? 0 : history_.losses.back(),
            .steps_per_second = pace_.stepsPerSecond(),
            .device = facts_.device,
            .memory_bytes = facts_.planned_bytes,
            .metrics = metricsText(metrics_),
            .lr = lr_,
            .grad_norm = grad_norm_,
            .trends = settings_.live ? trends() : std::vector<Trend>()};
  }

  [[nodiscard]] std::vector<Trend> trends() const {
    std::vector<Trend> trends;
    for (const History::Report& report : history_.reports) {
      for (const auto& [name, value] : report.metrics) {
        auto trend = std::ranges::find(trends, name, &Trend::name);
        if (trend == trends.end()) trend = trends.insert(trends.end(), Trend{.name = name, .values = {}});
        trend->values.push_back(value);
        trend->step = report.step;
      }
    }
    return trends;
  }

  void say(const std::string& text, bool last = false) {
    if (settings_.json || (settings_.quiet && !last)) return;
    view_.clear();
    print(text);
  }

  /// A reader that went away is noticed at the end of the program; fmt::print would throw.
  static void print(const std::string& text) {
    (void)std::fputs((text + "\n").c_str(), stdout);
    (void)std::fflush(stdout);
  }

  void introduce(double seconds) {
    say(fmt::format("device {} ({}): {}", facts_.device, facts_.device_name, facts_.device_reason));
    if (facts_.on_cpu && isLeftOpen(options_.device))
      say(console::painted(stdout, console::Paint::Loud,
                           "NO GPU: this runs on the CPU and is slow; 'lockstep doctor' says what is missing"));
    say(fmt::format("{}: {}, {} parameters, seed {}{}", recipe_.name, stepsText(options_.steps), facts_.parameters, options_.seed,
                    begun_at_ > 0 ? fmt::format(", resumed after step {}", begun_at_) : ""));
    say(fmt::format("{} dispatches in {} levels per step, {} kernels, {} planned; ready after {}", facts_.dispatches, facts_.levels,
                    facts_.distinct_kernels, formatBytes(facts_.planned_bytes), formatDuration(seconds)));
  }

  /// Looks at the goal and writes the losses and the report of this step.
  Status note() {
    goal_.look(done(), metrics_, history_.losses);
    if (!history_.reports.empty() && history_.reports.back().step == done()) history_.reports.pop_back();
    history_.reports.push_back(
        {.step = done(), .metrics = metrics_, .lr = lr_, .grad_norm = grad_norm_, .seconds = seconds_before_ + secondsSince(start_)});
    LS_CHECK(writeLosses());
    return folder_ ? folder_->addReport(history_.reports.back()) : Success{};
  }

  Status writeLosses() {
    if (!folder_) return Success{};
    LS_CHECK(folder_->addLosses(written_, std::span(history_.losses).subspan(static_cast<size_t>(written_))));
    written_ = done();
    return Success{};
  }

  Status report() {
    const bool measured = (recipe_.measure_every > 0 && done() % recipe_.measure_every == 0) || done() == recipe_.goal.by_step;
    metrics_.clear();
    if (measured) metrics_ = experiment_->measure();
    LS_CHECK(note());
    // The first one comes at the first report, so that a run which dies early has one.
    const bool due = folder_ && (saved_ == 0 || secondsSince(last_checkpoint_) >= settings_.checkpoint_seconds);
    if (due) save(false);
    if (measured) pictures_.exhibit(*experiment_, done());
    if (due) pictures_.writePagesSometimes(title(), [&] { return pageData(true); });
    const Progress now = progress();
    say(progressLine(now));
    if (!settings_.json || settings_.quiet) return Success{};
    io::Json line = io::Json::object()
                        .add("step", now.step)
                        .add("loss", now.loss)
                        .add("lr", lr_)
                        .add("seconds", secondsSince(start_))
                        .add("steps_per_second", now.steps_per_second ? io::Json(*now.steps_per_second) : io::Json());
    if (grad_norm_) line.add("grad_norm", static_cast<double>(*grad_norm_));
    if (loss_scale_) line.add("loss_scale", static_cast<double>(*loss_scale_));
    if (measured) line.add("metrics", metricsJson(metrics_));
    print(line.text());
    return Success{};
  }

  [[nodiscard]] std::string title() const { return fmt::format("{} on {}", recipe_.name, facts_.device); }

  [[nodiscard]] ReportData pageData(bool running) const {
    ReportData data{.recipe = recipe_.name,
                    .summary = recipe_.summary,
                    .seed = options_.seed,
                    .facts = trainer().facts(),
                    .history = history_,
                    .exhibits = {},
                    .settings = {},
                    .step_seconds = pace_.medianSeconds(),
                    .running = running};
    constexpr std::string_view kPrefix = "lockstep.";
    for (const auto& [name, value] : trainer().settings()) {
      if (name.starts_with(kPrefix)) data.settings.emplace(name.substr(kPrefix.size()), value);
    }
    if (goal_.due(done())) {
      data.goal = goal_.text();
      data.goal_reached = goal_.reachedAt().has_value();
    }
    return data;
  }

  [[nodiscard]] bool sanitized() const { return facts_.device.starts_with("sanitizer"); }

  void finalReport(bool interrupted, const std::vector<Finding>& findings) {
    const double seconds = secondsSince(start_), step_median = pace_.medianSeconds();
    const double loss = history_.losses.empty() ? 0.0 : history_.losses.back();
    const std::optional<int64_t> reached_at = goal_.reachedAt();
    if (!settings_.json) {
      if (goal_.due(done()))
        say(fmt::format("goal: {}: {}", goal_.text(), reached_at ? fmt::format("reached at step {}", *reached_at) : "not reached"), true);
      say(fmt::format("{}: {} in {}, {} per step (median), loss {:.4g}{}{}", interrupted ? "interrupted" : "done", stepsText(done()),
                      formatDuration(seconds), formatDuration(step_median), loss, metrics_.empty() ? "" : ", ", metricsText(metrics_)),
          true);
      if (folder_) say(fmt::format("wrote {}", folder_->path().string()), true);
      if (!saved_model_.empty()) say(fmt::format("the model is in {}", saved_model_.string()), true);
      if (folder_ && interrupted && !settings_.resume_command.empty()) say(fmt::format("to resume: {}", settings_.resume_command), true);
      if (sanitized()) console::printFindings(findings);
      return;
    }
    io::Json line = io::Json::object()
                        .add("final", true)
                        .add("name", recipe_.name)
                        .add("device", facts_.device)
                        .add("seed", options_.seed)
                        .add("steps", done())
                        .add("loss", loss)
                        .add("metrics", metricsJson(metrics_))
                        .add("seconds", seconds)
                        .add("step_seconds_median", step_median)
                        .add("dispatches_per_step", int64_t{facts_.dispatches})
                        .add("levels_per_step", int64_t{facts_.levels})
                        .add("distinct_kernels", int64_t{facts_.distinct_kernels})
                        .add("planned_bytes", facts_.planned_bytes)
                        .add("parameters", facts_.parameters);
    if (goal_.exists()) line.add("goal_reached_at", reached_at ? io::Json(*reached_at) : io::Json());
    if (folder_) line.add("folder", folder_->path().string());
    if (!saved_model_.empty()) line.add("model", saved_model_.string());
    if (sanitized()) line.add("findings", console::findingsJson(findings));
    print(line.text());
  }

  Result<ExitCode> stopNotFinite() {
    LS_CHECK(writeLosses());
    pictures_.writePages(title(), [&] { return pageData(false); });
    Failure failure = fail("train.not_finite", fmt::format("the loss of step {} is {}", done(), history_.losses.back()), {},
                           "try another --seed, or --device reference to find where the value comes from");
    failure.exit_code = ExitCode::NumericCheck;
    if (failure_) failure.diagnostics.insert(failure.diagnostics.end(), failure_->diagnostics.begin(), failure_->diagnostics.end());
    console::addFindings(failure, trainer().findings());
    return failure;
  }

  const Recipe& recipe_;
  const ExperimentOptions& options_;
  const RunSettings& settings_;
  std::optional<RunFolder> folder_;
  std::optional<RunLock> lock_;
  LiveView view_;
  RunPictures pictures_;
  std::unique_ptr<Experiment> experiment_;
  ProgramFacts facts_;
  Clock::time_point start_, last_checkpoint_;
  double seconds_before_ = 0;  ///< of training, before the run was resumed
  History history_;
  Pace pace_;
  GoalWatch goal_;
  Metrics metrics_;                  ///< of this step; none if nothing was measured
  double lr_ = 0;                    ///< of the last step
  std::optional<float> grad_norm_;   ///< likewise
  std::optional<float> loss_scale_;  ///< likewise
  std::filesystem::path saved_model_;
  int64_t written_ = 0;   ///< losses that are in the folder
  int64_t begun_at_ = 0;  ///< steps of the run before it was resumed
  int64_t saved_ = 0;     ///< the step of the last checkpoint; 0: there is none
  std::optional<StepFailure> failure_;
  bool finite_ = true;
};

}  // namespace

Result<ExitCode> runTraining(const Recipe& recipe, const ExperimentOptions& options, const RunSettings& settings) {
  return Run(recipe, options, settings).run();
}

}  // namespace lockstep::experiment
