// SPDX-License-Identifier: Apache-2.0
#include "experiment/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "console/color.h"
#include "console/text_format.h"
#include "experiment/live_view.h"
#include "experiment/report.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"

namespace lockstep::experiment {
namespace {

using Clock = std::chrono::steady_clock;
using console::formatBytes;
using console::formatDuration;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
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
      : recipe_(recipe), options_(options), settings_(settings), view_(stderr, settings.live, titleOf(recipe)) {}

  Result<ExitCode> run() {
    LS_CHECK(checkRecipe());
    const Clock::time_point compile_start = Clock::now();
    experiment_ = recipe_.make(options_);
    if (settings_.resume) {
      LS_CHECK(goOn());
    } else if (settings_.folder) {
      // A folder that cannot be made must not show itself after an hour of training.
      LS_CHECK(settings_.folder->begin(config()));
    }
    facts_ = trainer().facts();
    introduce(secondsSince(compile_start));
    start_ = last_checkpoint_ = Clock::now();
    bool interrupted = false;
    while (done() < options_.steps && !interrupted && finite_) {
      train(std::min(untilReport(), options_.steps - done()));
      interrupted = settings_.interrupted != nullptr && settings_.interrupted->load();
      const bool due = done() % recipe_.report_every == 0 || done() == 1;
      if (done() < options_.steps && !interrupted && finite_ && due) LS_CHECK(report());
    }
    view_.clear();
    if (!finite_) return stopNotFinite();
    LS_CHECK(measure());
    LS_CHECK(writeLosses());
    if (settings_.folder) {
      settings_.folder->saveCheckpoint(trainer(), config(), true);
      LS_CHECK(writePages());
    }
    finalReport(interrupted);
    return interrupted ? ExitCode::Interrupted : ExitCode::Ok;
  }

 private:
  static std::string titleOf(const Recipe& recipe) { return fmt::format("{}: {}", recipe.name, recipe.summary); }
  [[nodiscard]] Trainer& trainer() const { return experiment_->trainer(); }
  [[nodiscard]] int64_t done() const { return static_cast<int64_t>(history_.losses.size()); }
  [[nodiscard]] RunConfig config() const {
    return {.recipe = recipe_.name, .seed = options_.seed, .steps = options_.steps, .data = options_.data, .device = options_.device};
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

  Status goOn() {
    LS_CHECK(settings_.folder->loadCheckpoint(trainer()));
    LS_TRY(history_, settings_.folder->readHistory(static_cast<int64_t>(trainer().step_count())));
    written_ = done();
    begun_at_ = done();
    // A goal that was reached before is reached.
    for (int64_t step = recipe_.report_every; step <= done(); step += recipe_.report_every) checkGoal(step, metricsAt(step));
    return Success{};
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
      results.push_back(trainer().step(experiment_->batch(first)));
    } else {
      results = trainer().steps(static_cast<size_t>(count), [&](size_t i) { return experiment_->batch(first + i); });
    }
    const double each = secondsSince(begin) / static_cast<double>(count);
    for (const StepResult& result : results) {
      // A loss that is not finite is a loss; the run reports it.
      if (!result.completed() && result.failure->kind != FailureKind::NonFinite) (void)result.or_throw();
      history_.losses.push_back(result.loss);
      step_seconds_.push_back(each);
      if (result.completed()) continue;
      failure_ = result.failure;
      finite_ = false;
      break;
    }
    view_.update(progress(), history_.losses);
  }

  [[nodiscard]] Progress progress() const {
    // The last hundred steps: the first ones include the driver's own compilation.
    const size_t window = std::min<size_t>(step_seconds_.size(), 100);
    const double recent = std::accumulate(step_seconds_.end() - static_cast<ptrdiff_t>(window), step_seconds_.end(), 0.0);
    const double rate = recent > 0 ? static_cast<double>(window) / recent : 0;
    return {.step = done(),
            .steps = options_.steps,
            .loss = history_.losses.empty() ? 0 : history_.losses.back(),
            .steps_per_second = rate,
            .eta_seconds = rate > 0 ? static_cast<double>(options_.steps - done()) / rate : -1,
            .device = facts_.device,
            .memory_bytes = facts_.planned_bytes,
            .metrics = metricsText(metrics_)};
  }

  void say(const std::string& text, bool last = false) {
    if (settings_.json || (settings_.quiet && !last)) return;
    view_.clear();
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  void introduce(double seconds) {
    say(fmt::format("device {} ({}): {}", facts_.device, facts_.device_name, facts_.device_reason));
    if (facts_.on_cpu)
      say(console::painted(stdout, console::Paint::Loud,
                           "NO GPU: this runs on the CPU and is slow; 'lockstep doctor' says what is missing"));
    say(fmt::format("{}: {} steps, {} parameters, seed {}{}", recipe_.name, options_.steps, facts_.parameters, options_.seed,
                    begun_at_ > 0 ? fmt::format(", going on after step {}", begun_at_) : ""));
    say(fmt::format("{} dispatches in {} levels a step, {} kernels, {} planned; ready after {}", facts_.dispatches, facts_.levels,
                    facts_.distinct_kernels, formatBytes(facts_.planned_bytes), formatDuration(seconds)));
  }

  Status measure() {
    metrics_ = experiment_->measure();
    if (!metrics_.empty()) history_.measurements.push_back({done(), metrics_});
    exhibits_ = experiment_->exhibits();
    for (const Exhibit& exhibit : exhibits_) {
      if (const auto* text = std::get_if<std::string>(&exhibit.content)) view_.sample(*text);
    }
    checkGoal(done(), metrics_);
    if (!settings_.folder) return Success{};
    if (!metrics_.empty()) LS_CHECK(settings_.folder->addMeasurement(history_.measurements.back()));
    return settings_.folder->addExhibits(done(), exhibits_);
  }

  /// The mean of the last 20 losses up to a step.
  [[nodiscard]] double recentLoss(int64_t step) const {
    const auto window = std::min<int64_t>(step, 20);
    const auto end = history_.losses.begin() + step;
    return std::accumulate(end - window, end, 0.0) / static_cast<double>(std::max<int64_t>(1, window));
  }

  [[nodiscard]] Metrics metricsAt(int64_t step) const {
    const auto found = std::ranges::find(history_.measurements, step, &History::Measurement::step);
    return found == history_.measurements.end() ? Metrics{} : found->metrics;
  }

  void checkGoal(int64_t step, const Metrics& metrics) {
    const Goal& goal = recipe_.goal;
    if (goal.metric.empty() || reached_at_ || step > goal.by_step) return;
    double value = NAN;
    if (goal.metric == "loss") value = recentLoss(step);
    for (const auto& [name, metric] : metrics) {
      if (name == goal.metric) value = metric;
    }
    if (goal.kind == Goal::Kind::AtMost ? value <= goal.value : value >= goal.value) reached_at_ = step;
  }

  Status writeLosses() {
    if (!settings_.folder) return Success{};
    LS_CHECK(settings_.folder->addLosses(written_, std::span(history_.losses).subspan(static_cast<size_t>(written_))));
    written_ = done();
    return Success{};
  }

  Status report() {
    const bool measured = (recipe_.measure_every > 0 && done() % recipe_.measure_every == 0) || done() == recipe_.goal.by_step;
    metrics_.clear();
    if (measured) {
      LS_CHECK(measure());
    } else {
      checkGoal(done(), metrics_);
    }
    LS_CHECK(writeLosses());
    if (settings_.folder && secondsSince(last_checkpoint_) >= settings_.checkpoint_seconds) {
      settings_.folder->saveCheckpoint(trainer(), config(), false);
      last_checkpoint_ = Clock::now();
    }
    const Progress now = progress();
    say(progressLine(now));
    if (!settings_.json || settings_.quiet) return Success{};
    io::Json line = io::Json::object()
                        .add("step", now.step)
                        .add("loss", now.loss)
                        .add("seconds", secondsSince(start_))
                        .add("steps_per_second", now.steps_per_second);
    if (measured) line.add("metrics", metricsJson(metrics_));
    fmt::print("{}\n", line.text());
    std::fflush(stdout);
    return Success{};
  }

  /// loss.png and report.html.
  Status writePages() const {
    LS_CHECK(settings_.folder->writeCurve(fmt::format("{} on {}", recipe_.name, facts_.device), history_.losses));
    ReportData data{.recipe = recipe_.name,
                    .summary = recipe_.summary,
                    .seed = options_.seed,
                    .facts = trainer().facts(),
                    .history = history_,
                    .exhibits = exhibits_,
                    .settings = {},
                    .step_seconds = median(step_seconds_)};
    // A checkpoint says all that there is to know about optimizer, schedule and inputs.
    constexpr std::string_view kPrefix = "lockstep.";
    for (const auto& [name, value] : trainer().checkpoint().metadata) {
      if (name.starts_with(kPrefix)) data.settings.emplace(name.substr(kPrefix.size()), value);
    }
    if (goalDue()) {
      data.goal = goalText();
      data.goal_reached = reached_at_.has_value();
    }
    LS_TRY(const std::string page, reportPage(data));
    return io::writeFileAtomically(settings_.folder->path() / "report.html", std::string_view(page));
  }

  [[nodiscard]] bool goalDue() const { return !recipe_.goal.metric.empty() && (reached_at_ || done() >= recipe_.goal.by_step); }
  [[nodiscard]] std::string goalText() const {
    const Goal& goal = recipe_.goal;
    return fmt::format("{} {} {:.4g} by step {}", goal.metric, goal.kind == Goal::Kind::AtMost ? "at most" : "at least", goal.value,
                       goal.by_step);
  }

  void finalReport(bool interrupted) {
    const double seconds = secondsSince(start_), step_median = median(step_seconds_);
    const double loss = history_.losses.empty() ? 0.0 : history_.losses.back();
    if (!settings_.json) {
      if (goalDue())
        say(fmt::format("goal: {}: {}", goalText(), reached_at_ ? fmt::format("reached at step {}", *reached_at_) : "not reached"), true);
      say(fmt::format("{}: {} steps in {}, {} a step (median), loss {:.4g}{}{}", interrupted ? "interrupted" : "done", done(),
                      formatDuration(seconds), formatDuration(step_median), loss, metrics_.empty() ? "" : ", ", metricsText(metrics_)),
          true);
      if (settings_.folder) {
        say(fmt::format("wrote {}{}", settings_.folder->path().string(),
                        interrupted
                            ? fmt::format("; go on with 'train {} --resume --out {}'", recipe_.name, settings_.folder->path().string())
                            : ""),
            true);
      }
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
    if (!recipe_.goal.metric.empty()) line.add("goal_reached_at", reached_at_ ? io::Json(*reached_at_) : io::Json());
    if (settings_.folder) line.add("folder", settings_.folder->path().string());
    fmt::print("{}\n", line.text());
  }

  Result<ExitCode> stopNotFinite() {
    LS_CHECK(writeLosses());
    if (settings_.folder) LS_CHECK(writePages());
    Failure failure = fail("train.not_finite", fmt::format("the loss of step {} is {}", done(), history_.losses.back()), {},
                           "try another --seed, or --device reference to find where the value comes from");
    failure.exit_code = ExitCode::NumericCheck;
    if (failure_) failure.diagnostics.insert(failure.diagnostics.end(), failure_->diagnostics.begin(), failure_->diagnostics.end());
    return failure;
  }

  const Recipe& recipe_;
  const ExperimentOptions& options_;
  const RunSettings& settings_;
  LiveView view_;
  std::unique_ptr<Experiment> experiment_;
  ProgramFacts facts_;
  Clock::time_point start_, last_checkpoint_;
  History history_;
  std::vector<double> step_seconds_;
  Metrics metrics_;
  std::vector<Exhibit> exhibits_;  ///< the last ones
  int64_t written_ = 0;            ///< losses that are in the folder
  int64_t begun_at_ = 0;           ///< steps of the run that is gone on with
  std::optional<int64_t> reached_at_;
  std::optional<StepFailure> failure_;
  bool finite_ = true;
};

}  // namespace

Result<ExitCode> runTraining(const Recipe& recipe, const ExperimentOptions& options, const RunSettings& settings) {
  return Run(recipe, options, settings).run();
}

}  // namespace lockstep::experiment
